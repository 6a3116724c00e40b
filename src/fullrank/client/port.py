"""The seam to any Kubernetes-shaped API: what every part may ask of it, and nothing more.

Two implementations: `controlplane.local` (straight into the embedded store) and `client.http` (ours or a real
cluster, over the wire). The contract suite runs over both and over a real kube-apiserver; what it does not say, nobody
may rely on.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from fullrank.api.meta import Json, name_of, namespace_of
from fullrank.api.scheme import Kind

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class Key(NamedTuple):
    """Which object: the only thing a reconcile is told."""

    kind: Kind
    namespace: str
    name: str

    @classmethod
    def of(cls, kind: Kind, obj: Json) -> "Key":
        return cls(kind, namespace_of(obj), name_of(obj))

    def __str__(self) -> str:
        where = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind.kind} {where}{self.name}"


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of objects and the revision at which they were all true: a watch from there misses nothing."""

    items: list[Json]
    revision: str
    proceed: str = ""  # the `continue` token; empty on the last page


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: EventType
    obj: Json


class Reader(Protocol):
    async def get(self, key: Key) -> Json:
        """The object, or NotFound."""

    async def select(
        self,
        kind: Kind,
        namespace: str = "",
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        proceed: str = "",
    ) -> Listing:
        """The objects of a kind, in one namespace or (empty) all, that match the selectors."""

    def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = ""
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Every change after `since`, in order, none twice; Gone when `since` is too old. May end: then watch again."""


class Writer(Protocol):
    async def create(self, kind: Kind, obj: Json) -> Json:
        """The stored object, or AlreadyExists, Invalid, Forbidden, NotFound (no such namespace)."""

    async def replace(self, kind: Kind, obj: Json, *, subresource: str = "") -> Json:
        """Writes the whole object (or its `status`); with a resourceVersion in it, only if that is current."""

    async def patch(
        self,
        key: Key,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
    ) -> Json:
        """Changes the named fields. A resourceVersion in a merge patch makes it a compare-and-set."""

    async def delete(
        self, key: Key, *, uid: str = "", grace: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        """Asks the object to go; with a `uid`, only that very one (else Conflict). NotFound if it is not there."""

    async def bind(self, pod: Key, node: str, *, uid: str = "") -> None:
        """Seats a pod on a node; Conflict if it sits already."""


class Client(Reader, Writer, Protocol):
    """Both halves."""
