"""The client port, straight into the registry: no socket, the same behaviour. What it hands out is a copy.

Every verb lets others run first, as a socket would: who tries again at once cannot starve the one it waits for.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio.lowlevel
import msgspec

from fullrank.api.meta import Json, name_of, namespace_of
from fullrank.api.scheme import Kind
from fullrank.client.port import Key, Listing, PatchType, Propagation, WatchEvent
from fullrank.controlplane.registry import Preconditions, Registry
from fullrank.controlplane.watching import Watching

Document = TypeVar("Document", Json, Json | list[Json])


class LocalClient:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get(self, key: Key) -> Json:
        await anyio.lowlevel.checkpoint()
        return self._registry.get(key).copy()

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
        await anyio.lowlevel.checkpoint()
        page = self._registry.select(
            kind, namespace, labels=labels, fields=fields, limit=limit, proceed=proceed
        )
        return Listing([record.copy() for record in page.records], str(page.revision), page.proceed)

    @asynccontextmanager
    async def watch(
        self, kind: Kind, namespace: str = "", *, since: str, labels: str = "", fields: str = ""
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        with self._registry.watch(kind, namespace, since=since, labels=labels, fields=fields) as watching:
            yield _Events(watching)

    async def create(self, kind: Kind, obj: Json) -> Json:
        await anyio.lowlevel.checkpoint()
        return _copied(await self._registry.create(kind, _copied(obj)))

    async def replace(self, kind: Kind, obj: Json, *, subresource: str = "") -> Json:
        await anyio.lowlevel.checkpoint()
        key = Key(kind, namespace_of(obj), name_of(obj))
        return _copied(await self._registry.replace(key, _copied(obj), subresource=subresource))

    async def patch(
        self,
        key: Key,
        patch: Json | list[Json],
        *,
        type: PatchType = "merge",  # noqa: A002
        subresource: str = "",
    ) -> Json:
        await anyio.lowlevel.checkpoint()
        return _copied(await self._registry.patch(key, _copied(patch), type=type, subresource=subresource))

    async def delete(
        self, key: Key, *, uid: str = "", grace: int | None = None, propagation: Propagation = "Background"
    ) -> None:
        await anyio.lowlevel.checkpoint()
        await self._registry.delete(
            key, preconditions=Preconditions(uid), grace=grace, propagation=propagation
        )

    async def bind(self, pod: Key, node: str, *, uid: str = "") -> None:
        await anyio.lowlevel.checkpoint()
        await self._registry.bind(pod, node, uid=uid)


def _copied(document: Document) -> Document:
    """Through JSON: much faster than `deepcopy`, and nothing that is not JSON gets past it."""
    copy: Document = msgspec.json.decode(msgspec.json.encode(document))
    return copy


class _Events:
    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def __aiter__(self) -> "_Events":
        return self

    async def __anext__(self) -> WatchEvent:
        event = await anext(self._watching)
        return WatchEvent(event.type, event.record.copy())
