"""A further program in a container that runs, and the ends of its pipes or terminal that its caller holds."""

import errno
import fcntl
import os
import struct
import termios
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from fullrank.agent.runtime import Attempt, Execution
from fullrank.api.meta import Json, uid_of

CHUNK = 1 << 15
LINGER = 2.0  # seconds for pipes that something still holds after the program's end
STDOUT, STDERR = 1, 2


class Host(Protocol):
    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution: ...


class Visit:
    """One such program, as its caller sees it."""

    def __init__(self, entrance: int | None, exits: dict[int, int], *, terminal: bool) -> None:
        self._entrance = entrance
        self._exits = exits  # file → 1 or 2
        self._terminal = terminal
        self._outcome: Execution | None = None
        self._over = anyio.Event()
        self._sink, self._source = anyio.create_memory_object_stream[tuple[int, bytes]](0)

    async def write(self, text: bytes) -> None:
        left = memoryview(text)
        while left and self._entrance is not None:
            try:
                left = left[os.write(self._entrance, left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._entrance)
            except OSError:  # the program reads no more
                self.end_input()

    def end_input(self) -> None:
        """A terminal's input ends with the terminal: there it is what the user types that counts."""
        if self._entrance is not None and not self._terminal:
            os.close(self._entrance)
            self._entrance = None

    def resize(self, columns: int, rows: int) -> None:
        if self._terminal and self._entrance is not None:
            fcntl.ioctl(self._entrance, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def outputs(self) -> AsyncIterator[tuple[int, bytes]]:
        async for piece in self._source:
            yield piece

    async def outcome(self) -> Execution:
        await self._over.wait()
        return self._outcome or Execution(137, "the program was lost")

    async def run(self, host: Host, attempt: Attempt, argv: Sequence[str], theirs: "_Ends") -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, tasks.cancel_scope.cancel)
            self._outcome = await host.execute(attempt, argv, theirs)
            self._over.set()
            await anyio.sleep(LINGER)
            tasks.cancel_scope.cancel()

    async def _read(self, done: Callable[[], None]) -> None:
        async with self._sink, anyio.create_task_group() as tasks:
            for end, channel in self._exits.items():
                tasks.start_soon(_read, end, channel, self._sink)
        await self._over.wait()
        done()

    def close(self) -> None:
        ours = {*self._exits} | ({self._entrance} if self._entrance is not None else set())
        self._entrance = None
        for end in ours:
            os.close(end)
        self._sink.close()
        self._source.close()


_Ends = tuple[int, int, int]


@asynccontextmanager
async def visiting(
    host: Host,
    attempt: Attempt,
    argv: Sequence[str],
    *,
    stdin: bool,
    stdout: bool,
    stderr: bool,
    tty: bool,
) -> AsyncIterator[Visit]:
    """Runs the program while the context lasts: whoever leaves it early hangs up on the program."""
    visit, theirs = _terminal() if tty else _pipes(stdin, stdout, stderr)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(visit.run, host, attempt, argv, theirs)
            yield visit
            tasks.cancel_scope.cancel()
    finally:
        visit.close()


def running_attempt(pod: Json, container: str) -> Attempt:
    """The attempt that now runs of a container, by what the pod's status says."""
    status: Json = pod.get("status") or {}
    listed = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    number = next((one["restartCount"] for one in listed if one["name"] == container), 0)
    return Attempt(uid_of(pod), container, number)


def _terminal() -> tuple[Visit, _Ends]:
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    return Visit(ours, {ours: STDOUT}, terminal=True), (theirs, os.dup(theirs), os.dup(theirs))


def _pipes(stdin: bool, stdout: bool, stderr: bool) -> tuple[Visit, _Ends]:
    entrance, their_input = None, os.open(os.devnull, os.O_RDONLY)
    if stdin:
        os.close(their_input)
        their_input, entrance = os.pipe()
        os.set_blocking(entrance, False)
    exits: dict[int, int] = {}
    theirs = []
    for wanted, channel in ((stdout, STDOUT), (stderr, STDERR)):
        if wanted:
            ours, end = os.pipe()
            os.set_blocking(ours, False)
            exits[ours] = channel
            theirs.append(end)
        else:
            theirs.append(os.open(os.devnull, os.O_WRONLY))
    return Visit(entrance, exits, terminal=False), (their_input, theirs[0], theirs[1])


async def _read(end: int, channel: int, sink: MemoryObjectSendStream[tuple[int, bytes]]) -> None:
    while True:
        await anyio.wait_readable(end)
        try:
            text = os.read(end, CHUNK)
        except BlockingIOError:
            continue
        except OSError as problem:
            if problem.errno != errno.EIO:  # how a terminal says that nobody is behind it any more
                raise
            return
        if not text:
            return
        await sink.send((channel, text))
