"""`pods/NAME/log`: which container is meant, whether there is anything to read yet, and then its lines as they come."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

from aiohttp import web

from fullrank.api.meta import Json, name_of
from fullrank.controlplane.questions import LogOptions
from fullrank.errors import BadRequest
from fullrank.listener import Streams


class PodLogs(Protocol):
    """Whoever keeps the containers' output."""

    def read(self, pod: Json, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        """Whole lines, in any number at a time; when following, until the container has ended."""


async def logs(
    request: web.Request, streams: Streams, source: PodLogs, pod: Json, container: str, options: LogOptions
) -> web.StreamResponse:
    lines = source.read(pod, container_meant(pod, container, previous=options.previous), options)
    # A short log is asked for its first lines before the answer begins, so that trouble can still be told as such.
    first = b"" if options.follow else await anext(lines, b"")
    response, write = _messages() if request.headers.get("Upgrade", "").lower() == "websocket" else _text()
    await response.prepare(request)
    left = options.limit_bytes
    with suppress(ConnectionResetError):  # the client has left
        with streams.lasting():
            left = await _send(write, first, left)
            async for chunk in lines:
                left = await _send(write, chunk, left)
                if left == 0:
                    break
        await (response.close() if isinstance(response, web.WebSocketResponse) else response.write_eof())
    return response


Write: TypeAlias = Callable[[bytes], Awaitable[None]]


def _text() -> tuple[web.StreamResponse, Write]:
    response = web.StreamResponse(
        headers={"Content-Type": "text/plain", "Cache-Control": "no-cache, private"}
    )
    response.enable_chunked_encoding()
    return response, response.write


def _messages() -> tuple[web.StreamResponse, Write]:
    """The same as messages of a WebSocket, which browsers can follow."""
    socket = web.WebSocketResponse(protocols=("binary.k8s.io",))
    return socket, socket.send_bytes


async def _send(write: Write, chunk: bytes, left: int | None) -> int | None:
    sent = chunk if left is None else chunk[:left]
    if sent:
        await write(sent)
    return None if left is None else left - len(sent)


def container_meant(pod: Json, asked: str, *, previous: bool) -> str:
    """The container asked for, or the only one there is; BadRequest, as a kubelet words it, if it has no log yet."""
    spec, name = pod["spec"], name_of(pod)
    own = [each["name"] for each in spec.get("containers") or []]
    init = [each["name"] for each in spec.get("initContainers") or []]
    if asked and asked not in (*own, *init):
        raise BadRequest(f"container {asked} is not valid for pod {name}")
    if not asked and len(own) != 1:
        choice = f"a container name must be specified for pod {name}, choose one of: [{' '.join(own)}]"
        raise BadRequest(f"{choice} or one of the init containers: [{' '.join(init)}]" if init else choice)
    container = asked or own[0]
    _check_started(pod, container, previous=previous)
    return container


def _check_started(pod: Json, container: str, *, previous: bool) -> None:
    status = pod.get("status", {})
    known = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    found: Json = next((each for each in known if each.get("name") == container), {})
    where = f'container "{container}" in pod "{name_of(pod)}"'
    state, before = found.get("state", {}), "terminated" in found.get("lastState", {})
    if previous and not before:
        raise BadRequest(f"previous terminated {where} not found")
    if not before and "running" not in state and "terminated" not in state:
        waiting = state.get("waiting") or {}
        raise BadRequest(f"{where} is waiting to start: {waiting.get('reason') or 'ContainerCreating'}")
