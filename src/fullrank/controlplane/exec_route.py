"""`pods/NAME/exec`: a program in a running container, its input and output as channels of one WebSocket.

Each message begins with the number of its channel. Version 5 of the protocol differs from version 4 in one thing: a
client can say that its standard input has ended. The oldest, without a version, tells an error in plain words, and
success not at all.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Protocol

import anyio
import msgspec
from aiohttp import WSMsgType, web
from multidict import MultiMapping

from fullrank.api.meta import Json, name_of
from fullrank.controlplane.answers import failure
from fullrank.controlplane.questions import Query
from fullrank.errors import BadRequest, FullrankError
from fullrank.listener import Streams

OLDEST = "channel.k8s.io"
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io", OLDEST)
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
LARGEST_SIDE = 0xFFFF  # of a terminal, in characters


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client wants to run, and which ends of it."""

    container: str
    command: tuple[str, ...]
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool

    @classmethod
    def read(cls, values: MultiMapping[str]) -> "Wish":
        query = Query(values)
        wish = cls(
            container=query.text("container"),
            command=tuple(values.getall("command", [])),
            stdin=query.flag("stdin"),
            stdout=query.flag("stdout"),
            stderr=query.flag("stderr"),
            tty=query.flag("tty"),
        )
        if not wish.command:
            raise BadRequest("you must specify at least 1 command: ?command=WORD&command=WORD…")
        if not (wish.stdin or wish.stdout or wish.stderr):
            raise BadRequest("you must specify at least 1 of stdin, stdout, stderr")
        if wish.tty and wish.stderr:
            raise BadRequest("tty and stderr cannot both be true: a terminal has one output")
        return wish


class Outcome(Protocol):
    """How a program ended and, if it could not be run at all, why."""

    @property
    def code(self) -> int: ...

    @property
    def message(self) -> str: ...


class Conversation(Protocol):
    """A program that runs, as the one who asked for it speaks to it."""

    async def write(self, text: bytes) -> None:
        """Gives it input; what it does not want to read any more is dropped."""

    def end_input(self) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    def outputs(self) -> AsyncIterator[tuple[int, bytes]]:
        """What it writes, with 1 for stdout and 2 for stderr, until it has ended."""

    async def outcome(self) -> Outcome: ...


class PodExec(Protocol):
    """Whoever can run a further program in a container that runs; leaving the context ends the program."""

    def conversation(
        self, pod: Json, container: str, wish: Wish
    ) -> AbstractAsyncContextManager[Conversation]: ...


async def execute(
    request: web.Request, streams: Streams, containers: PodExec, pod: Json
) -> web.StreamResponse:
    wish = Wish.read(request.query)
    container = running_container(pod, wish.container)
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise BadRequest(
            "a program is run over a WebSocket here and not over SPDY: use kubectl 1.30 or newer, "
            "without KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false"
        )
    offered = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if not {*offered} & {*PROTOCOLS}:
        raise BadRequest(f"unable to negotiate a protocol: the client offers {offered}, we {[*PROTOCOLS]}")
    socket = web.WebSocketResponse(protocols=PROTOCOLS)
    await socket.prepare(request)
    with suppress(ConnectionResetError), streams.lasting():  # the client has left, or the server closes
        async with containers.conversation(pod, container, wish) as program:
            await _converse(socket, program, wish)
    await socket.close()
    return socket


async def _converse(socket: web.WebSocketResponse, program: Conversation, wish: Wish) -> None:
    # Clients take the first message, whatever it says, for the sign that the connection stands.
    await socket.send_bytes(bytes([STDOUT if wish.stdout else STDERR if wish.stderr else ERROR]))
    async with anyio.create_task_group() as tasks:

        async def listen() -> None:
            await _listen(socket, program)
            tasks.cancel_scope.cancel()  # nobody is there any more

        tasks.start_soon(listen)
        async for channel, text in program.outputs():
            await socket.send_bytes(bytes([channel]) + text)
        verdict = status_of(await program.outcome())
        if socket.ws_protocol != OLDEST:
            await socket.send_bytes(bytes([ERROR]) + msgspec.json.encode(verdict))
        elif verdict["status"] != "Success":
            await socket.send_bytes(bytes([ERROR]) + verdict["message"].encode())
        tasks.cancel_scope.cancel()


async def _listen(socket: web.WebSocketResponse, program: Conversation) -> None:
    async for message in socket:
        if message.type is not WSMsgType.BINARY or not message.data:
            continue
        channel, text = message.data[0], message.data[1:]
        if channel == STDIN:
            await program.write(text)
        elif channel == RESIZE:
            _resize(program, text)
        elif channel == CLOSE and text == bytes([STDIN]):
            program.end_input()


def _resize(program: Conversation, text: bytes) -> None:
    try:
        size = msgspec.json.decode(text, type=dict[str, int])
    except msgspec.DecodeError:
        return  # nothing that a terminal could be made into
    columns, rows = size.get("Width", 0), size.get("Height", 0)
    if 0 < columns <= LARGEST_SIDE and 0 < rows <= LARGEST_SIDE:
        program.resize(columns, rows)


def status_of(outcome: Outcome) -> Json:
    """The last word on the error channel: clients take the exit code from its cause."""
    if outcome.message:
        why = f"error executing command in container: {outcome.message}"
        return failure(FullrankError(f"Internal error occurred: {why}"))
    if outcome.code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {outcome.code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(outcome.code)}]},
    }


def running_container(pod: Json, asked: str) -> str:
    """The container asked for, or the only one there is; BadRequest, as a cluster words it, if it does not run."""
    spec, name = pod["spec"], name_of(pod)
    own = [each["name"] for each in spec.get("containers") or []]
    init = [each["name"] for each in spec.get("initContainers") or []]
    if asked and asked not in (*own, *init):
        raise BadRequest(f"container {asked} is not valid for pod {name}")
    if not asked and len(own) != 1:
        raise BadRequest(
            f"a container name must be specified for pod {name}, choose one of: [{' '.join(own)}]"
        )
    if not spec.get("nodeName"):
        raise BadRequest(f"pod {name} does not have a host assigned")
    status = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        raise BadRequest(
            f"cannot exec into a container in a completed pod; current phase is {status['phase']}"
        )
    container = asked or own[0]
    listed = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    if not any(one.get("name") == container and "running" in (one.get("state") or {}) for one in listed):
        raise BadRequest(f'container not found ("{container}")')
    return container
