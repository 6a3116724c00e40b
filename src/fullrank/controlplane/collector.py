"""Owner references: what has lost its owners goes, what is told to wait waits, what is told to stay stays.

It keeps only the ties between objects, by the owner's uid, so that the work follows what changed and not what exists.
Watches of different kinds do not keep step, so an owner that seems missing is asked for before anything is deleted.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

import anyio
import anyio.abc

from fullrank.api.meta import Json, is_terminating, name_of, namespace_of, uid_of
from fullrank.api.scheme import Kind, Scheme
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key, Propagation
from fullrank.controlplane.lifecycle import FOREGROUND, ORPHAN
from fullrank.errors import Conflict, FullrankError, NotFound

AT_ONCE = 64
SOON, LATER = 0.05, 1.0
_TIES = (
    "name", "namespace", "uid", "resourceVersion", "ownerReferences", "finalizers", "deletionTimestamp",
)  # fmt: skip

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Owners:
    """An object's owner references, by what has become of the owners."""

    solid: list[Json] = field(default_factory=list)
    waiting: list[Json] = field(
        default_factory=list
    )  # deleted in the foreground: they wait for this object to go
    gone: list[Json] = field(default_factory=list)


class Collector:
    def __init__(self, client: Client, scheme: Scheme) -> None:
        self._client = client
        self._scheme = scheme
        self._caches = {kind: Cache(client, kind, trim=only_ties) for kind in scheme}
        self._keys: dict[str, Key] = {}
        self._dependents: defaultdict[str, dict[str, Key]] = defaultdict(dict)
        self._due: dict[Key, None] = {}
        self._news = anyio.Event()
        for kind, cache in self._caches.items():
            cache.listen(partial(self._note, kind))

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for cache in self._caches.values():
                tasks.start_soon(cache.run)
            for cache in self._caches.values():
                await cache.synced()
            while True:
                await self._news.wait()
                due, self._due, self._news = list(self._due), {}, anyio.Event()
                for start in range(0, len(due), AT_ONCE):
                    async with anyio.create_task_group() as batch:
                        for key in due[start : start + AT_ONCE]:
                            batch.start_soon(self._attend, key, tasks)

    # --- what is known ---

    def _note(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Keeps the ties, and marks whoever may have to be looked at because of this change."""
        if old and new and _same_ties(old, new):
            return
        if old:
            self._untie(old)
            if new is None or uid_of(new) != uid_of(old):
                self._mark(self._dependents.get(uid_of(old), {}).values())
                self._mark(self._keys[owner["uid"]] for owner in owners_of(old) if owner["uid"] in self._keys)
        if new:
            key = Key(kind, namespace_of(new), name_of(new))
            self._keys[uid_of(new)] = key
            for owner in owners_of(new):
                self._dependents[owner["uid"]][uid_of(new)] = key
            if owners_of(new) or is_terminating(new):
                self._mark((key,))

    def _untie(self, obj: Json) -> None:
        self._keys.pop(uid_of(obj), None)
        for owner in owners_of(obj):
            dependents = self._dependents[owner["uid"]]
            dependents.pop(uid_of(obj), None)
            if not dependents:
                del self._dependents[owner["uid"]]

    def _mark(self, keys: Iterable[Key]) -> None:
        for key in list(keys):
            self._due[key] = None
            self._news.set()

    def _look(self, key: Key) -> Json | None:
        return self._caches[key.kind].get(key)

    # --- what is done about it ---

    async def _attend(self, key: Key, tasks: anyio.abc.TaskGroup) -> None:
        try:
            await self._settle(key)
        except NotFound:
            return  # gone already: its own event brings what follows from that
        except Conflict:
            tasks.start_soon(self._remind, key, SOON)
        except FullrankError as error:
            log.warning("cannot collect %s, will try again: %s", key, error)
            tasks.start_soon(self._remind, key, LATER)

    async def _remind(self, key: Key, pause: float) -> None:
        await anyio.sleep(pause)
        self._mark((key,))

    async def _settle(self, key: Key) -> None:
        obj = self._look(key)
        if obj is None:
            return
        if is_terminating(obj) and ORPHAN in finalizers_of(obj):
            await self._orphan(key, obj)
        elif is_terminating(obj) and FOREGROUND in finalizers_of(obj):
            await self._await_dependents(key, obj)
        elif owners_of(obj) and not is_terminating(obj):
            await self._judge(key, obj)

    async def _orphan(self, key: Key, owner: Json) -> None:
        """Its dependents stay and forget it; then it may go."""
        for dependent_key in list(self._dependents.get(uid_of(owner), {}).values()):
            if dependent := self._look(dependent_key):
                await self._drop_owners(dependent_key, dependent, {uid_of(owner)})
        await self._drop_finalizer(key, owner, ORPHAN)

    async def _await_dependents(self, key: Key, owner: Json) -> None:
        """It goes after the last dependent that blocks it; each of them is judged meanwhile."""
        dependents = self._dependents.get(uid_of(owner), {})
        blocking = [each for each in dependents.values() if _blocks(self._look(each), owner)]
        if not blocking:
            await self._drop_finalizer(key, owner, FOREGROUND)
            return
        self._mark(each for each in blocking if (known := self._look(each)) and not is_terminating(known))

    async def _judge(self, key: Key, obj: Json) -> None:
        owners = await self._owners(key, obj)
        if owners.solid:
            lost = {owner["uid"] for owner in (*owners.gone, *owners.waiting)}
            if lost:
                await self._drop_owners(key, obj, lost)
            return
        propagation: Propagation = "Background"
        if FOREGROUND in finalizers_of(obj) or (owners.waiting and self._dependents.get(uid_of(obj))):
            propagation = "Foreground"
        await self._client.delete(key, uid=uid_of(obj), propagation=propagation)

    async def _owners(self, key: Key, obj: Json) -> _Owners:
        found = _Owners()
        for reference in owners_of(obj):
            kind = self._scheme.named(reference["apiVersion"], reference["kind"])
            if kind is None:
                found.solid.append(
                    reference
                )  # of a kind we do not serve: nothing is known, so nothing is done
                continue
            owner = await self._owner(
                Key(kind, key.namespace if kind.namespaced else "", reference["name"]), reference
            )
            if owner is None:
                found.gone.append(reference)
            elif (
                is_terminating(owner)
                and FOREGROUND in finalizers_of(owner)
                and reference.get("blockOwnerDeletion")
            ):
                found.waiting.append(reference)
            else:
                found.solid.append(reference)
        return found

    async def _owner(self, key: Key, reference: Json) -> Json | None:
        """The very object that is referred to, from memory or, before it is declared missing, from the server."""
        owner = self._look(key)
        if owner is None or uid_of(owner) != reference["uid"]:
            try:
                owner = await self._client.get(key)
            except NotFound:
                return None
        return owner if uid_of(owner) == reference["uid"] else None

    async def _drop_owners(self, key: Key, obj: Json, uids: set[str]) -> None:
        kept = [owner for owner in owners_of(obj) if owner["uid"] not in uids]
        await self._patch(key, obj, {"ownerReferences": kept or None})

    async def _drop_finalizer(self, key: Key, obj: Json, finalizer: str) -> None:
        kept = [each for each in finalizers_of(obj) if each != finalizer]
        await self._patch(key, obj, {"finalizers": kept or None})

    async def _patch(self, key: Key, obj: Json, metadata: Json) -> None:
        """Only if it is still what was looked at: otherwise Conflict, and it is looked at again."""
        seen = {"uid": uid_of(obj), "resourceVersion": obj["metadata"]["resourceVersion"]}
        await self._client.patch(key, {"metadata": {**seen, **metadata}})


def only_ties(obj: Json) -> Json:
    return {"metadata": {field: obj["metadata"][field] for field in _TIES if field in obj["metadata"]}}


def _same_ties(old: Json, new: Json) -> bool:
    """Most changes are of no concern here."""
    return {**old["metadata"], "resourceVersion": ""} == {**new["metadata"], "resourceVersion": ""}


def owners_of(obj: Json) -> list[Json]:
    owners: list[Json] = obj["metadata"].get("ownerReferences") or []
    return owners


def finalizers_of(obj: Json) -> list[str]:
    finalizers: list[str] = obj["metadata"].get("finalizers") or []
    return finalizers


def _blocks(dependent: Json | None, owner: Json) -> bool:
    return dependent is not None and any(
        reference["uid"] == uid_of(owner) and reference.get("blockOwnerDeletion")
        for reference in owners_of(dependent)
    )
