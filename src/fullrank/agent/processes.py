"""Containers as processes of this machine, each below a small parent that outlives the server.

What is known of an attempt is in its folder (see `fullrank.agent.nursery`): `start` writes the launch and hands the
FIFO `alive` to the nursery; whoever reads end of file from it knows that the attempt is over, or will never begin.
"""

import errno
import json
import os
import shutil
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import psutil
from anyio.abc import Process

from fullrank.agent.alive import Alive
from fullrank.agent.control_groups import ControlGroups, out_of_memory_records, remove, usage
from fullrank.agent.places import Places
from fullrank.agent.plain import without_namespaces
from fullrank.agent.runtime import Attempt, Execution, Exit, Launch, Run, Usage
from fullrank.api.meta import Json
from fullrank.clock import Clock
from fullrank.errors import Unavailable

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TRIES = 3
ISOLATION = ("root", "user")
LOST = "The container could not be located when the pod was terminated"


class ProcessRuntime:
    """A Runtime; use it as an async context manager, whose end closes the nursery and leaves the attempts running."""

    def __init__(self, home: Path, clock: Clock, *, isolation: tuple[str, ...] = ISOLATION) -> None:
        """`isolation`: the levels that may be used, the best first; which of them can be, is found out by trying."""
        self._places = Places(home)
        self._clock = clock
        self._nursery = _Nursery(home, isolation)
        self._groups = ControlGroups.of_this_machine(home)

    async def __aenter__(self) -> "ProcessRuntime":
        await self._nursery.ensure_open()
        self._groups.sweep()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._nursery.close()
        self._groups.sweep()

    async def start(self, launch: Launch) -> datetime:
        folder = self._places.attempt(launch.attempt)
        for _ in range(TRIES):
            if (run := await self._settled(launch.attempt)) is not None:
                return run.started_at
            groups = self._groups.make(launch.attempt, launch.limits)
            _prepare(folder, self._adapted(launch, folder), groups)
            with Alive(folder / "alive") as alive:
                await self._nursery.raise_attempt(folder)
                await alive.word()
        self._record_exit(
            launch.attempt,
            128,
            "StartError",
            "failed to create container: its parent process would not start",
        )
        return EPOCH

    async def wait(self, attempt: Attempt) -> Exit:
        with Alive(self._places.attempt(attempt) / "alive") as alive:
            await alive.end()
        return self._exit_of(attempt) or self._record_exit(attempt, 137, "ContainerStatusUnknown", LOST)

    async def stop(self, attempt: Attempt, grace: float) -> None:
        folder = self._places.attempt(attempt)
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

    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution:
        """Runs a further program in a running container, on these open files; they are closed here once it has them."""
        result, writer = os.pipe()
        try:
            try:
                await self._nursery.visit_attempt(self._places.attempt(attempt), argv, (*streams, writer))
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

    async def runs(self, pod_uid: str) -> tuple[Run, ...]:
        attempts = sorted(
            (int(folder.name), container.name)
            for container in _folders(self._places.pod(pod_uid))
            for folder in _folders(container)
        )
        found = [await self._settled(Attempt(pod_uid, container, number)) for number, container in attempts]
        return tuple(run for run in found if run is not None)

    def pods(self) -> tuple[str, ...]:
        return tuple(sorted(folder.name for folder in _folders(self._places.pods)))

    def forget(self, pod_uid: str) -> None:
        folder = self._places.pod(pod_uid)
        groups = [
            group for container in _folders(folder) for run in _folders(container) for group in _groups(run)
        ]
        shutil.rmtree(folder, ignore_errors=True)
        remove(groups)

    def usage(self, attempt: Attempt) -> Usage | None:
        folder = self._places.attempt(attempt)
        return usage(_groups(folder)) or _usage_of_tree(_read_record(folder / "started.json") or {})

    async def shortcomings(self) -> str:
        if self._nursery.isolation != "none":
            return ""
        return (
            "this machine allows no namespaces: paths of volumes and image files in command, workingDir and env were "
            "replaced by the folders behind them, and names of services in env by addresses"
        )

    def _adapted(self, launch: Launch, folder: Path) -> Launch:
        if self._nursery.isolation != "none":
            return launch
        plain = without_namespaces(launch)
        if os.path.isdir(plain.working_dir):
            return plain
        return replace(plain, working_dir=str(folder / "work"))

    async def _settled(self, attempt: Attempt) -> Run | None:
        """What became of an attempt: None if it never started and no longer can."""
        folder = self._places.attempt(attempt)
        if not (folder / "alive").exists():
            return None
        with Alive(folder / "alive") as alive:
            while not (folder / "started.json").exists() and await alive.word():
                continue
            over = alive.at_end()
        if (ended := self._exit_of(attempt)) is not None:
            return Run(attempt, ended.started_at, ended)
        started = _read_record(folder / "started.json")
        if started is None:
            return None
        if over:
            self._record_exit(attempt, 137, "ContainerStatusUnknown", LOST)
        return Run(attempt, _moment(started["startedAt"]), self._exit_of(attempt))

    def _exit_of(self, attempt: Attempt) -> Exit | None:
        record = _read_record(self._places.attempt(attempt) / "exit.json")
        if record is None:
            return None
        began, ended = _moment(record["startedAt"]), _moment(record["finishedAt"])
        return Exit(record["code"], began, ended, record["reason"], record["message"])

    def _record_exit(self, attempt: Attempt, code: int, reason: str, message: str) -> Exit:
        """Speaks for a parent that is gone without a word, once and for all."""
        folder = self._places.attempt(attempt)
        started = _read_record(folder / "started.json") or {"startedAt": 0}
        now = (self._clock.now() - EPOCH) // timedelta(microseconds=1) * 1000
        record = {
            "code": code,
            "startedAt": started["startedAt"],
            "finishedAt": now,
            "reason": reason,
            "message": message,
        }
        _write_record(folder / "exit.json", record)
        return Exit(code, _moment(started["startedAt"]), _moment(now), reason, message)


class _Nursery:
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

    async def raise_attempt(self, folder: Path) -> None:
        writer = os.open(folder / "alive", os.O_WRONLY | os.O_NONBLOCK)
        try:
            async with self._lock:
                await self._send({"folder": str(folder)}, [writer])
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


def _prepare(folder: Path, launch: Launch, groups: tuple[Path, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("alive", "control"):
        if not (folder / name).exists():
            os.mkfifo(folder / name, 0o600)
    mounts = [[str(mount.source), mount.target, mount.read_only] for mount in launch.mounts]
    _write_record(folder / "launch.json", {
        "argv": list(launch.argv), "env": dict(launch.env), "log": str(launch.log), "hostname": launch.hostname,
        "working_dir": launch.working_dir, "user": launch.user, "group": launch.group, "mounts": mounts,
        "folders": [str(folder) for folder in launch.folders], "groups": list(launch.groups),
        "read_only": launch.read_only, "control_groups": [str(group) for group in groups],
        "out_of_memory": [str(record) for record in out_of_memory_records(groups)],
        "names": str(launch.names) if launch.names else None,
    })  # fmt: skip


def _usage_of_tree(started: Json) -> Usage | None:
    """What a container's processes use, where no control group counts for us."""
    try:
        first = psutil.Process(started["container"])
        tree = [first, *first.children(recursive=True)]
        times = [process.cpu_times() for process in tree]
        memory = sum(process.memory_info().rss for process in tree)
    except (KeyError, psutil.Error):
        return None
    return Usage(sum(time.user + time.system for time in times), memory)


def _groups(folder: Path) -> list[Path]:
    """Of an attempt, whichever server started it."""
    launch = _read_record(folder / "launch.json") or {}
    return [Path(group) for group in launch.get("control_groups", ())]


def _write_record(path: Path, record: Json) -> None:
    part = path.with_suffix(".new")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(handle, "w", encoding="utf-8") as file:
        json.dump(record, file)
    part.rename(path)


def _read_record(path: Path) -> Json | None:
    try:
        record: Json = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return record


def _folders(path: Path) -> list[Path]:
    if not path.is_dir():
        return []
    return [child for child in path.iterdir() if child.is_dir() and not child.name.startswith(".")]


def _moment(nanoseconds: int) -> datetime:
    return EPOCH + timedelta(microseconds=nanoseconds // 1000)
