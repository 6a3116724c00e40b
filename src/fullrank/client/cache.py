"""A local copy of one kind of object, kept true by list and watch, so that looking costs nothing.

A writer teaches the cache what it wrote (`learn`, `forget`), so that the next look already knows it: an older version
never replaces a newer one, and what was deleted does not come back with a late event.
"""

import logging
from collections import defaultdict
from collections.abc import Callable
from math import inf
from typing import TypeAlias

import anyio

from fullrank.api.meta import Json, controller_of, name_of, namespace_of, revision_of, uid_of
from fullrank.api.scheme import Kind
from fullrank.client.port import Key, Reader
from fullrank.errors import FullrankError, Gone, NotFound

PAGE = 500
SHORTEST_PAUSE, LONGEST_PAUSE = 0.1, 30.0
REMEMBERED = 10_000  # deleted uids; late news of one arrives within seconds

Listener: TypeAlias = Callable[[Json | None, Json | None], None]
Name: TypeAlias = tuple[str, str]

log = logging.getLogger(__name__)


class Cache:
    """`trim` may cut objects down to what is looked at, where there are many of them."""

    def __init__(
        self,
        client: Reader,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        trim: Callable[[Json], Json] = lambda obj: obj,
    ) -> None:
        self.kind = kind
        self._client = client
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._trim = trim
        self._objects: dict[Name, Json] = {}
        self._owned: defaultdict[str, dict[Name, Json]] = defaultdict(dict)
        self._gone: dict[str, float] = {}  # uid → no version up to this revision comes back
        self._listeners: list[Listener] = []
        self._revision = ""  # where the next watch starts; empty: list first
        self._reached = 0
        self._pause = SHORTEST_PAUSE
        self._complete = anyio.Event()

    # --- looking ---

    def get(self, key: Key) -> Json | None:
        return self._objects.get((key.namespace, key.name))

    def all(self) -> list[Json]:
        return list(self._objects.values())

    def owned_by(self, uid: str) -> list[Json]:
        """What has this uid as its controller."""
        return list(self._owned[uid].values()) if uid in self._owned else []

    def listen(self, listener: Listener) -> None:
        """Calls `listener(old, new)` at each change; None is what was not there before, or is not there any more."""
        self._listeners.append(listener)

    @property
    def complete(self) -> bool:
        return self._complete.is_set()

    async def synced(self) -> None:
        """Returns once everything that there was has been seen."""
        await self._complete.wait()

    # --- learning ---

    def learn(self, obj: Json) -> None:
        """Takes in an object as it was written or seen."""
        name, revision = (namespace_of(obj), name_of(obj)), revision_of(obj)
        known = self._objects.get(name)
        if (known is not None and revision_of(known) >= revision) or self._gone.get(
            uid_of(obj), -1
        ) >= revision:
            return
        if known is not None:
            self._drop(name, known)
        obj = self._objects[name] = self._trim(obj)
        if owner := controller_of(obj):
            self._owned[owner["uid"]][name] = obj
        self._tell(known, obj)

    def forget(self, obj: Json) -> None:
        """Takes note that this very object is gone for good."""
        self._remove(obj, inf)

    def _remove(self, obj: Json, revision: float) -> None:
        """No version of it up to `revision` will be believed; it may only have left the selection at that one."""
        name, uid = (namespace_of(obj), name_of(obj)), uid_of(obj)
        self._gone[uid] = max(revision, self._gone.pop(uid, 0))
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]
        known = self._objects.get(name)
        if known is not None and uid_of(known) == uid and revision_of(known) <= revision:
            self._drop(name, known)
            self._tell(known, None)

    def _drop(self, name: Name, known: Json) -> None:
        del self._objects[name]
        owner = controller_of(known)
        if owner and name in self._owned.get(owner["uid"], {}):
            del self._owned[owner["uid"]][name]
            if not self._owned[owner["uid"]]:
                del self._owned[owner["uid"]]

    def _tell(self, old: Json | None, new: Json | None) -> None:
        for listener in self._listeners:
            listener(old, new)

    # --- following ---

    async def run(self) -> None:
        """Keeps the copy true for as long as it is let; waits out a server that cannot be reached."""
        while True:
            try:
                if not self._revision:
                    await self._list()
                await self._follow()
            except Gone:
                self._revision = ""
            except NotFound as error:
                self._nothing_there()
                await self._wait(error)
            except FullrankError as error:
                await self._wait(error)

    async def _wait(self, error: FullrankError) -> None:
        if self._pause == SHORTEST_PAUSE:
            log.warning("cannot watch %s, will go on trying: %s", self.kind.group_resource, error)
        await anyio.sleep(self._pause)
        self._pause = min(self._pause * 2, LONGEST_PAUSE)

    def _nothing_there(self) -> None:
        """The server does not know the kind, so there are no objects of it; it may learn of it any time."""
        for known in self.all():
            self._remove(known, inf)
        self._revision = ""
        self._complete.set()

    async def _list(self) -> None:
        found: dict[Name, Json] = {}
        proceed = ""
        while True:
            page = await self._client.select(
                self.kind,
                self._namespace,
                labels=self._labels,
                fields=self._fields,
                limit=PAGE,
                proceed=proceed,
            )
            found |= {(namespace_of(obj), name_of(obj)): obj for obj in page.items}
            proceed = page.proceed
            if not proceed:
                break
        self._settle(found, int(page.revision))
        self._seen(page.revision)
        self._complete.set()

    def _settle(self, found: dict[Name, Json], revision: int) -> None:
        """Makes the copy what the list says, but for what was learnt of later than the list."""
        # A server that counts lower than before is another one: nothing of the old one is left.
        horizon = revision if revision >= self._reached else inf
        listed = {uid_of(obj) for obj in found.values()}
        for known in self.all():
            if uid_of(known) not in listed:
                self._remove(known, horizon)
        for obj in found.values():
            self.learn(obj)

    def _seen(self, revision: str) -> None:
        self._revision, self._reached = revision, int(revision)

    async def _follow(self) -> None:
        """One watch, from the last revision seen until the server ends it."""
        async with self._client.watch(
            self.kind, self._namespace, since=self._revision, labels=self._labels, fields=self._fields
        ) as events:
            self._pause = SHORTEST_PAUSE
            async for event in events:
                if event.type == "DELETED":
                    self._remove(event.obj, revision_of(event.obj))
                elif event.type != "BOOKMARK":
                    self.learn(event.obj)
                self._seen(event.obj["metadata"]["resourceVersion"])
