"""Kubernetes' semantics over the store: what a write means, for any kind.

Between reading the latest state of an object and staging its successor nothing is awaited, so every verb here is a
compare-and-set that cannot lose. Objects that come out are shared with the store: nobody may change them.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio

from fullrank.api.meta import (
    Json,
    is_terminating,
    name_of,
    namespace_of,
    revision_of,
    stamp,
    uid_of,
)
from fullrank.api.scheme import CONFIG_MAP, NAMESPACE, POD, SERVICE_ACCOUNT, Kind, Scheme
from fullrank.api.selectors import field_selector, label_selector
from fullrank.client.port import Key, PatchType, Propagation
from fullrank.clock import Clock
from fullrank.controlplane import lifecycle
from fullrank.controlplane import metadata as meta
from fullrank.controlplane.paging import Page, page
from fullrank.controlplane.store import Place, Record, Store
from fullrank.controlplane.watching import Watching
from fullrank.errors import (
    AlreadyExists,
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    FullrankError,
    Invalid,
    NotFound,
)

STANDARD_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease", "kubeflow")
IMMORTAL_NAMESPACES = frozenset(("default", "kube-system", "kube-public"))


class Admit(Protocol):
    """Defaults and complaints: returns the object to store, or raises Invalid. Pure."""

    def __call__(self, kind: Kind, obj: Json, old: Json | None) -> Json: ...


def unchanged(kind: Kind, obj: Json, old: Json | None) -> Json:  # noqa: ARG001
    return obj


class Sign(Protocol):
    """Writes into an object's managedFields who made it (of nothing, where `old` is None) what it is. Pure."""

    def __call__(self, old: Json | None, new: Json) -> Json: ...


def unsigned(old: Json | None, new: Json) -> Json:  # noqa: ARG001
    """How the home's own parts write: they do it often, and no field that people apply is theirs."""
    return new


@dataclass(frozen=True, slots=True)
class Deletion:
    """The object as it is now, and whether it is gone already or only on its way."""

    obj: Json
    gone: bool


@dataclass(frozen=True, slots=True)
class Preconditions:
    uid: str = ""
    revision: str = ""


ANY = Preconditions()


class Registry:
    """The verbs of the API. Reading is immediate; writing returns when the write is on disk."""

    def __init__(
        self,
        store: Store,
        scheme: Scheme,
        clock: Clock,
        new_uid: Callable[[], str],
        admit: Admit = unchanged,
        root_ca: str = "",
    ) -> None:
        self.store = store
        self.scheme = scheme
        self._clock = clock
        self._new_uid = new_uid
        self._admit = admit
        self._root_ca = root_ca

    # --- reading ---

    def get(self, key: Key) -> Record:
        record = self.store.get(_place(key))
        if record is None:
            raise _not_found(key)
        return record

    def exists(self, key: Key) -> bool:
        """Whether it is there for the next writer: it may be staged only."""
        return self.store.latest(_place(key)) is not None

    def select(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        proceed: str = "",
        at: int | None = None,
    ) -> Page:
        """A page of the objects that match, in order of namespace and name, all as of one revision (the last)."""
        chosen = _selection(kind, labels, fields)
        return page(self.store, kind, namespace, chosen=chosen, limit=limit, proceed=proceed, at=at)

    def watch(
        self, kind: Kind, namespace: str = "", *, since: str = "", labels: str = "", fields: str = ""
    ) -> Watching:
        """Events after `since`; with none (or 0), first an ADDED for everything there is. To be entered with `with`."""
        chosen = _selection(kind, labels, fields)
        revision = meta.revision_named(since)
        name = field_selector(fields, kind).exact("metadata.name")
        interest = Place(kind.group_resource, namespace, name)
        if not revision:
            initial = self.select(kind, namespace, labels=labels, fields=fields).records
            return Watching(self.store.watch(interest, self.store.revision), initial, chosen)
        return Watching(self.store.watch(interest, revision), [], chosen)

    # --- writing ---

    async def create(
        self, kind: Kind, obj: Json, *, namespace: str = "", dry_run: bool = False, sign: Sign = unsigned
    ) -> Json:
        """Stores a new object; a namespace comes with what is in every namespace, in the same commit."""
        wanted = meta.shaped(kind, obj)
        home = (namespace_of(wanted) or namespace) if kind.namespaced else ""
        async with self._settling(Place(kind.group_resource, home, name_of(wanted))):
            place, born = self._prepared(kind, wanted, namespace, sign)
        if dry_run:
            return born
        staged = self.store.put(place, born, expected=0)
        if kind == NAMESPACE:
            for other, furnishing in furnishings(place.name, self._root_ca):
                self.store.put(*self._prepared(other, meta.shaped(other, furnishing), place.name))
        return (await staged).obj

    async def replace(
        self, key: Key, obj: Json, *, subresource: str = "", dry_run: bool = False, sign: Sign = unsigned
    ) -> Json:
        """Writes the whole object (or its status); a resourceVersion in it must be the current one."""

        def replaced(old: Json) -> Json:
            new = meta.shaped(key.kind, obj)
            if not new["metadata"].get("resourceVersion") and _wants_revision(key.kind):
                why = "Invalid value: 0: must be specified for an update"
                raise Invalid(meta.named(key.kind, key.name), [Cause("metadata.resourceVersion", why)])
            if (uid := uid_of(new)) not in ("", uid_of(old)):
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(old)}"
                raise meta.conflict(key.kind, key.name, why)
            return new

        return await self.update(key, replaced, subresource=subresource, dry_run=dry_run, sign=sign)

    async def patch(
        self,
        key: Key,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
        dry_run: bool = False,
        sign: Sign = unsigned,
    ) -> Json:
        def patched(old: Json) -> Json:
            new = meta.shaped(key.kind, lifecycle.patched(key.kind, old, patch, type))
            if (uid := uid_of(new)) != uid_of(old):
                raise meta.invalid(
                    key.kind, key.name, [Cause("metadata.uid", f'Invalid value: "{uid}": field is immutable')]
                )
            return new

        return await self.update(key, patched, subresource=subresource, dry_run=dry_run, sign=sign)

    async def update(
        self,
        key: Key,
        change: Callable[[Json], Json],
        *,
        subresource: str = "",
        dry_run: bool = False,
        sign: Sign = unsigned,
    ) -> Json:
        """Replaces an object by what `change` makes of it. `change` must leave its argument as it is."""
        async with self._settling(_place(key)):
            current = self._latest(key)
            new = sign(current.obj, self._successor(key, change(current.obj), current.obj, subresource))
        if dry_run:
            return new
        if new == current.obj:
            await self.store.settled(_place(key))
            return new
        if lifecycle.is_over(new):
            await self.store.remove(_place(key), new)
            return new
        return (await self.store.put(_place(key), new)).obj

    async def delete(
        self,
        key: Key,
        *,
        preconditions: Preconditions = ANY,
        grace: int | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> Deletion:
        """Removes an object, or marks it as leaving while finalizers or a running pod hold it."""
        async with self._settling(_place(key)):
            current = self._latest(key)
            _check_preconditions(key, current.obj, preconditions)
        if key.kind == NAMESPACE and key.name in IMMORTAL_NAMESPACES:
            raise Forbidden(
                f"{meta.named(key.kind, key.name)} is forbidden: this namespace may not be deleted"
            )
        leaving = lifecycle.leaving(key.kind, current.obj, grace, propagation, self._clock.now())
        gone = lifecycle.is_over(leaving)
        last = current.obj if gone and key.kind != POD else leaving
        if dry_run:
            return Deletion(last, gone)
        if gone:
            last = (await self.store.remove(_place(key), last)).obj
        elif leaving != current.obj:
            last = (await self.store.put(_place(key), last)).obj
        else:
            await self.store.settled(_place(key))
        return Deletion(last, gone)

    async def delete_collection(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        grace: int | None = None,
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> list[Json]:
        """Deletes all that match, together; returns them as they were."""
        doomed = [record.obj for record in self.select(kind, namespace, labels=labels, fields=fields).records]
        unable: list[FullrankError] = []

        async def doom(obj: Json) -> None:
            key = Key(kind, namespace_of(obj), name_of(obj))
            try:
                await self.delete(key, grace=grace, propagation=propagation, dry_run=dry_run)
            except NotFound:
                return  # somebody was faster
            except FullrankError as error:
                unable.append(error)

        async with anyio.create_task_group() as tasks:
            for obj in doomed:
                tasks.start_soon(doom, obj)
        if unable:
            raise unable[0]
        return doomed

    async def bind(self, pod: Key, node: str, *, uid: str = "", dry_run: bool = False) -> Json:
        """Seats a pod on a node, once."""

        def bound(old: Json) -> Json:
            if uid not in ("", uid_of(old)):
                why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {uid_of(old)}"
                raise meta.conflict(POD, pod.name, why)
            if is_terminating(old):
                raise _unbindable(pod, f"pod {pod.name} is being deleted, cannot be assigned to a host")
            if seat := (old.get("spec") or {}).get("nodeName"):
                raise _unbindable(pod, f'pod {pod.name} is already assigned to node "{seat}"')
            status = old.get("status", {})
            conditions = [each for each in status.get("conditions", []) if each["type"] != "PodScheduled"]
            conditions.append(
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": stamp(self._clock.now()),
                }
            )
            return {
                **old,
                "spec": {**(old.get("spec") or {}), "nodeName": node},
                "status": {**status, "conditions": conditions},
            }

        return await self.update(pod, bound, subresource="binding", dry_run=dry_run)

    # --- what a write makes of an object ---

    @asynccontextmanager
    async def _settling(self, place: Place) -> AsyncIterator[None]:
        """A refusal may rest on a write that is only staged: it is told when its reason is on disk and can be read."""
        try:
            yield
        except FullrankError:
            await self.store.settled(place)
            raise

    def _latest(self, key: Key) -> Record:
        record = self.store.latest(_place(key))
        if record is None:
            raise _not_found(key)
        return record

    def _prepared(self, kind: Kind, obj: Json, namespace: str, sign: Sign = unsigned) -> tuple[Place, Json]:
        """A new object as it will be stored, and where; every reason to refuse it has been looked at."""
        fresh = self._newborn(kind, obj, namespace)
        for _ in range(8):  # a generated name may be taken: draw again
            born = self._christened(kind, fresh)
            place = Place(kind.group_resource, namespace_of(born), name_of(born))
            if name_of(fresh) or self.store.latest(place) is None:
                break
        causes = meta.metadata_complaints(kind, born["metadata"])
        try:
            admitted = self._admit(kind, born, None)
        except Invalid as error:
            causes += error.causes
        if causes:
            raise meta.invalid(kind, place.name, causes)
        if existing := self.store.latest(place):
            prefix = "object is being deleted: " if is_terminating(existing.obj) else ""
            raise AlreadyExists(f"{prefix}{meta.named(kind, place.name)} already exists")
        return place, sign(None, admitted)

    def _newborn(self, kind: Kind, obj: Json, namespace: str) -> Json:
        """The object as the server would begin it, still without a generated name."""
        given = obj["metadata"]
        if given.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        owned = {**given, "namespace": self._home_of(kind, given, namespace)}
        for field in (*meta.SERVER_OWNED, "resourceVersion", *(() if kind.namespaced else ("namespace",))):
            owned.pop(field, None)
        owned |= {"uid": self._new_uid(), "creationTimestamp": stamp(self._clock.now())}
        if kind.is_custom or kind.group_kind in lifecycle.COUNTED:
            owned["generation"] = 1
        born = {**obj, "metadata": owned}
        if "status" in kind.subresources and kind.kind != "Node":  # a node registers together with its status
            born.pop("status", None)
            if kind.group_kind in lifecycle.BORN_WITH:
                born["status"] = lifecycle.BORN_WITH[kind.group_kind]
        return born

    def _home_of(self, kind: Kind, given: Json, namespace: str) -> str:
        """The namespace an object goes to, which must be there and stay."""
        home: str = given.get("namespace") or namespace
        if namespace and home != namespace:
            raise BadRequest(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if not kind.namespaced:
            return ""
        if not home:
            raise BadRequest("an empty namespace may not be set during creation")
        record = self.store.latest(Place(NAMESPACE.group_resource, "", home))
        if record is None:
            raise NotFound(f"{meta.named(NAMESPACE, home)} not found")
        if is_terminating(record.obj):
            raise Forbidden(
                f"{meta.named(kind, given.get('name', ''))} is forbidden: "
                f"unable to create new content in namespace {home} because it is being terminated"
            )
        return home

    def _christened(self, kind: Kind, obj: Json) -> Json:
        prefix = obj["metadata"].get("generateName")
        if not name_of(obj) and prefix:
            obj = lifecycle.with_metadata(obj, name=meta.generated_name(prefix, self._new_uid()))
        return lifecycle.with_namespace_marks(obj) if kind == NAMESPACE else obj

    def _successor(self, key: Key, new: Json, old: Json, subresource: str) -> Json:
        """What a write makes of an object: the caller's part from `new`, the server's from `old`."""
        _check_identity(key, new)
        if new["metadata"].get("resourceVersion", "") not in ("", old["metadata"]["resourceVersion"]):
            raise meta.outdated(key.kind, key.name)
        metadata = meta.preserved(new["metadata"], old["metadata"])
        causes = meta.unknown_finalizers(metadata, old["metadata"])
        if metadata != old["metadata"]:
            causes += meta.metadata_complaints(key.kind, metadata)
        if causes:
            raise meta.invalid(key.kind, key.name, causes)
        merged = lifecycle.merged(key.kind, {**new, "metadata": metadata}, old, subresource)
        if not subresource:
            merged = self._admit(key.kind, merged, old)
        counted = "generation" in old["metadata"] and subresource != "binding"
        if counted and meta.differs_beyond(merged, old, ("metadata", "status")):
            merged = lifecycle.with_metadata(merged, generation=old["metadata"]["generation"] + 1)
        return merged


async def ensure_namespaces(registry: Registry) -> None:
    """The namespaces a home is born with, each with what is in every namespace."""
    for name in STANDARD_NAMESPACES:
        if registry.store.latest(Place(NAMESPACE.group_resource, "", name)) is None:
            await registry.create(NAMESPACE, {"metadata": {"name": name}})


def furnishings(namespace: str, root_ca: str) -> list[tuple[Kind, Json]]:
    """What every namespace has: an account for pods that name none, and the authority to trust."""
    return [
        (SERVICE_ACCOUNT, {"metadata": {"name": "default", "namespace": namespace}}),
        (
            CONFIG_MAP,
            {"metadata": {"name": "kube-root-ca.crt", "namespace": namespace}, "data": {"ca.crt": root_ca}},
        ),
    ]


def _place(key: Key) -> Place:
    return Place(key.kind.group_resource, key.namespace, key.name)


def _not_found(key: Key) -> NotFound:
    return NotFound(f"{meta.named(key.kind, key.name)} not found")


def _selection(kind: Kind, labels: str, fields: str) -> Callable[[Json], bool] | None:
    """What tells the chosen ones from the others; None when all are."""
    by_label, by_field = label_selector(labels), field_selector(fields, kind)
    if not by_label and not by_field:
        return None
    return lambda obj: by_label.matches(obj) and by_field.matches(obj)


def _wants_revision(kind: Kind) -> bool:
    """Kinds whose whole-object updates Kubernetes refuses to make blindly."""
    return kind.is_custom or kind.group_kind == "Lease.coordination.k8s.io"


def _check_identity(key: Key, new: Json) -> None:
    if name_of(new) != key.name:
        raise BadRequest(
            f"the name of the object ({name_of(new)}) does not match the name on the URL ({key.name})"
        )
    if namespace_of(new) not in ("", key.namespace):
        raise BadRequest("the namespace of the object does not match the namespace on the URL")


def _check_preconditions(key: Key, obj: Json, wanted: Preconditions) -> None:
    refusal = f'Operation cannot be fulfilled on {key.kind.group_kind} "{key.name}": the'
    if wanted.uid not in ("", uid_of(obj)):
        raise Conflict(
            f"{refusal} UID in the precondition ({wanted.uid}) does not match the UID in record ({uid_of(obj)}). "
            "The object might have been deleted and then recreated"
        )
    if wanted.revision not in ("", str(revision_of(obj))):
        raise Conflict(
            f"{refusal} ResourceVersion in the precondition ({wanted.revision}) does not match the ResourceVersion in "
            f"record ({revision_of(obj)}). The object might have been modified"
        )


def _unbindable(pod: Key, why: str) -> Conflict:
    return Conflict(f'Operation cannot be fulfilled on pods/binding "{pod.name}": {why}')
