"""Answers that go on: a watch sends what happens until its time is up, its client leaves, or the server closes."""

from contextlib import suppress
from dataclasses import dataclass

import anyio
import msgspec
from aiohttp import web

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.clock import Clock
from fullrank.controlplane import tables
from fullrank.controlplane.answers import JSON, failure
from fullrank.controlplane.questions import Form, Query
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.store import Record
from fullrank.controlplane.views import View
from fullrank.controlplane.watching import Event, Watching
from fullrank.errors import FullrankError
from fullrank.listener import Streams

LONGEST_WATCH = 1800.0  # seconds; then clients begin anew, as they do with a cluster
BOOKMARK_EVERY = 60.0
MOST_AT_ONCE = 256  # events in one write to the socket
ENOUGH_AT_ONCE = 256 * 1024  # bytes: what a watcher that does not read costs us
INITIAL_END = {"k8s.io/initial-events-end": "true"}


@dataclass(frozen=True, slots=True)
class WatchRequest:
    """Everything a client said about the watch it wants."""

    kind: Kind
    namespace: str
    labels: str
    fields: str
    since: str
    seconds: float
    bookmarks: bool
    initial: bool | None  # sendInitialEvents: None where the client said nothing

    @classmethod
    def read(cls, view: View, namespace: str, name: str, query: Query) -> "WatchRequest":
        fields = view.selected(query.text("fieldSelector"))
        if name:
            fields = ",".join(part for part in (fields, f"metadata.name={name}") if part)
        return cls(
            kind=view.stored,
            namespace=namespace,
            labels=query.text("labelSelector"),
            fields=fields,
            since=query.text("resourceVersion"),
            seconds=min(query.number("timeoutSeconds") or LONGEST_WATCH, LONGEST_WATCH),
            bookmarks=query.flag("allowWatchBookmarks"),
            initial=query.flag("sendInitialEvents") if query.text("sendInitialEvents") else None,
        )


class Shapes:
    """Turns a record into what a watcher gets: the object as it is kept, its metadata, or a row of a table."""

    def __init__(self, view: View, form: Form, include: str, clock: Clock) -> None:
        self._view, self._form, self._include, self._clock = view, form, include, clock
        self._kind = view.kind
        self._header_sent = False

    def __call__(self, record: Record) -> bytes:
        record = self._view.record(record)
        if self._form == "table":
            return msgspec.json.encode(self._row(record))
        return msgspec.json.encode(tables.partial(record.obj)) if self._form == "partial" else record.raw

    def _row(self, record: Record) -> Json:
        metadata = {"resourceVersion": str(record.revision)}
        row = tables.table(
            self._kind, [record.obj], self._clock.now(), metadata=metadata, include=self._include
        )
        if self._header_sent:
            return tables.without_header(row)
        self._header_sent = True
        return row

    def bookmark(self, revision: int, annotations: Json | None = None) -> bytes:
        metadata: Json = {"resourceVersion": str(revision), "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = annotations
        kind, version = self._kind.kind, self._kind.api_version
        if self._form == "table":
            empty = tables.table(self._kind, [], self._clock.now(), metadata=metadata)
            return msgspec.json.encode(tables.without_header(empty))
        if self._form == "partial":
            kind, version = "PartialObjectMetadata", "meta.k8s.io/v1"
        return msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata})


async def watch(
    request: web.Request, registry: Registry, streams: Streams, wanted: WatchRequest, shape: Shapes
) -> web.StreamResponse:
    """An error before the first byte is the caller's to tell; a later one becomes an ERROR event."""
    kind, namespace, labels, fields = wanted.kind, wanted.namespace, wanted.labels, wanted.fields
    first, since = b"", wanted.since
    if wanted.initial:
        page = registry.select(kind, namespace, labels=labels, fields=fields)
        since = str(page.revision)
        first = b"".join(_event("ADDED", shape(record)) for record in page.records)
        first += _event("BOOKMARK", shape.bookmark(page.revision, INITIAL_END))
    elif wanted.initial is False and since in ("", "0"):
        since = str(registry.store.revision)
    response = web.StreamResponse(headers={"Content-Type": JSON, "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    with registry.watch(kind, namespace, since=since, labels=labels, fields=fields) as watching:
        await response.prepare(request)
        with suppress(ConnectionResetError):  # the client has left
            with streams.lasting(wanted.seconds):
                if first:
                    await response.write(first)
                await _pump(response, watching, wanted, shape)
            await response.write_eof()
    return response


async def _pump(
    response: web.StreamResponse, watching: Watching, wanted: WatchRequest, shape: Shapes
) -> None:
    try:
        while True:
            await response.write(await _news(watching, shape, BOOKMARK_EVERY if wanted.bookmarks else None))
    except FullrankError as error:  # history went on without a watcher as slow as this one
        await response.write(_event("ERROR", msgspec.json.encode(failure(error))))


async def _news(watching: Watching, shape: Shapes, pause: float | None) -> bytes:
    """The next event and those right behind it; a bookmark when nothing comes for a while."""
    event: Event | None = None
    with anyio.move_on_after(pause):
        event = await anext(watching)
    if event is None:
        return _event("BOOKMARK", shape.bookmark(watching.revision))
    lines, size = list[bytes](), 0
    while event is not None:
        lines.append(_event(event.type, shape(event.record)))
        size += len(lines[-1])
        event = watching.ready() if len(lines) < MOST_AT_ONCE and size < ENOUGH_AT_ONCE else None
    return b"".join(lines)


def _event(word: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (word.encode(), obj)
