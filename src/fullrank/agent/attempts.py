"""What every runtime shares: attempts are folders, and a nursery forks a parent for each that outlives the server.

What is known of an attempt is in its folder (see `fullrank.agent.nursery`): a runtime writes the launch and hands the
FIFO `alive` to the nursery; whoever reads end of file from it knows that the parent is gone, or will never be.
"""

import errno
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
from anyio.abc import Process

from fullrank.agent.alive import Alive
from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt, Execution, Exit, Run
from fullrank.api.meta import Json
from fullrank.clock import Clock
from fullrank.errors import Unavailable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TRIES = 3


class Attempts:
    """What the folders tell of attempts, and what the nursery does with them."""

    def __init__(self, places: Places, clock: Clock, nursery: "Nursery", engine: str = "process") -> None:
        self._places = places
        self._clock = clock
        self._nursery = nursery
        self._engine = engine

    def folder(self, attempt: Attempt) -> Path:
        return self._places.attempt(attempt)

    def pods(self) -> tuple[str, ...]:
        return tuple(sorted(folder.name for folder in folders_in(self._places.pods)))

    def of_pod(self, pod_uid: str) -> list[Attempt]:
        """The oldest first."""
        found = sorted(
            (int(folder.name), container.name)
            for container in folders_in(self._places.pod(pod_uid))
            for folder in folders_in(container)
        )
        return [Attempt(pod_uid, container, number) for number, container in found]

    async def settled(self, attempt: Attempt, lost: Callable[[Attempt], Awaitable[None]]) -> Run | None:
        """What became of an attempt: None if it never started and no longer can. `lost` sees to one without parent."""
        folder = self.folder(attempt)
        if not (folder / "alive").exists():
            return None
        with Alive(folder / "alive") as alive:
            while not (folder / "started.json").exists() and await alive.word():
                continue
            over = alive.at_end()
        if (ended := self.exit_of(attempt)) is not None:
            return Run(attempt, ended.started_at, ended, self._engine)
        started = read_record(folder / "started.json")
        if started is None:
            return None
        if over:
            await lost(attempt)
        return Run(attempt, moment(started["startedAt"]), self.exit_of(attempt), self._engine)

    def exit_of(self, attempt: Attempt) -> Exit | None:
        record = read_record(self.folder(attempt) / "exit.json")
        if record is None:
            return None
        began, ended = moment(record["startedAt"]), moment(record["finishedAt"])
        return Exit(record["code"], began, ended, record["reason"], record["message"])

    def record_exit(self, attempt: Attempt, code: int, reason: str, message: str) -> Exit:
        """Speaks for a parent that is gone without a word, once and for all."""
        folder = self.folder(attempt)
        started = read_record(folder / "started.json") or {"startedAt": 0}
        now = (self._clock.now() - EPOCH) // timedelta(microseconds=1) * 1000
        record = {
            "code": code,
            "startedAt": started["startedAt"],
            "finishedAt": now,
            "reason": reason,
            "message": message,
        }
        write_record(folder / "exit.json", record)
        return Exit(code, moment(started["startedAt"]), moment(now), reason, message)

    async def stop(self, attempt: Attempt, grace: float) -> None:
        """Has its parent ask it to end, and after so many seconds kill it."""
        folder = self.folder(attempt)
        with Alive(folder / "alive") as alive:
            if alive.at_end():
                return
            # Open for reading too: a word to a parent that is only just starting waits in the FIFO for it.
            control = os.open(folder / "control", os.O_RDWR | os.O_NONBLOCK)
            try:
                os.write(control, b"T")
                with anyio.move_on_after(grace):
                    await alive.end()
                    return
                os.write(control, b"K")
                await alive.end()
            finally:
                os.close(control)

    async def visit(self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]) -> Execution:
        """Has the nursery run a further program for an attempt; the streams are closed here once it has them."""
        result, writer = os.pipe()
        try:
            try:
                await self._nursery.visit_attempt(self.folder(attempt), argv, (*streams, writer))
            finally:
                for end in (*streams, writer):
                    os.close(end)
            os.set_blocking(result, False)
            text = b""
            while True:
                await anyio.wait_readable(result)
                if not (piece := os.read(result, 4096)):
                    break
                text += piece
        finally:
            os.close(result)
        told = json.loads(text or '{"code": 137, "message": "the program was lost"}')
        return Execution(told["code"], told["message"])


class Nursery:
    """The nursery as its one customer sees it; started anew should it ever be gone."""

    def __init__(self, home: Path, levels: tuple[str, ...]) -> None:
        self._home = home
        self._levels = levels
        self._socket: socket.socket | None = None
        self._process: Process | None = None
        self._lock = anyio.Lock()
        self.isolation = "none"

    async def open(self) -> None:
        ours, theirs = socket.socketpair(
            socket.AF_UNIX, socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
        )
        code = f"import sys; sys.path.append({str(Path(__file__).parent)!r}); from nursery.serve import main; main()"
        command = [sys.executable, "-I", "-S", "-c", code, str(self._home), *self._levels]
        (self._home / "pods").mkdir(parents=True, exist_ok=True)
        with theirs:
            # A session of its own: a Ctrl-C on the server's terminal is not meant for it.
            self._process = await anyio.open_process(
                command, stdin=theirs.fileno(), stdout=None, stderr=None, start_new_session=True
            )
        ours.setblocking(False)
        await anyio.wait_readable(ours)
        self.isolation = ours.recv(64).decode().strip() or "none"
        self._socket = ours

    async def ensure_open(self) -> None:
        async with self._lock:
            if self._socket is None:
                await self.open()

    async def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            with anyio.CancelScope(shield=True):
                await self._process.wait()
            self._process = None

    async def raise_attempt(self, folder: Path, kind: str = "process") -> None:
        writer = os.open(folder / "alive", os.O_WRONLY | os.O_NONBLOCK)
        try:
            async with self._lock:
                await self._send({"folder": str(folder), "kind": kind}, [writer])
        finally:
            os.close(writer)

    async def visit_attempt(self, folder: Path, argv: Sequence[str], ends: Sequence[int]) -> None:
        async with self._lock:
            await self._send({"folder": str(folder), "argv": list(argv)}, ends)

    async def _send(self, request: Json, ends: Sequence[int]) -> None:
        for _ in range(TRIES):
            if self._socket is None:
                await self.open()
            assert self._socket is not None
            try:
                await anyio.wait_writable(self._socket)
                socket.send_fds(self._socket, [json.dumps(request).encode()], list(ends))
            except BlockingIOError:
                continue
            except OSError as problem:
                if problem.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                    raise
                await self.close()
            else:
                return
        raise Unavailable(
            "the nursery of containers does not run: no container can be started on this machine"
        )


def make_fifos(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("alive", "control"):
        if not (folder / name).exists():
            os.mkfifo(folder / name, 0o600)


def write_record(path: Path, record: Json) -> None:
    part = path.with_suffix(".new")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(record, file)
    part.rename(path)


def read_record(path: Path) -> Json | None:
    try:
        record: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return record


def folders_in(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return [child for child in path.iterdir() if child.is_dir() and not child.name.startswith(".")]


def moment(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)
