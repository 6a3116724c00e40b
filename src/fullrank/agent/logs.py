"""Reading what containers wrote: the last lines, since when, of the attempt before, and on until the end.

The files are written by each attempt's parent in the format of container runtimes, and stay when pods are gone.
"""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path

import anyio

from fullrank.agent.alive import Alive
from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt
from fullrank.api.meta import Json, name_of, uid_of
from fullrank.errors import BadRequest

LOOK_AGAIN = 0.05  # seconds between two looks at a file that grows; its end is told, not looked for
CHUNK = 1 << 16


class PodLogReader:
    def __init__(self, home: Path) -> None:
        self._places = Places(home)

    async def read(
        self,
        pod: Json,
        container: str,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
        previous: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Pieces of the log of a container's latest attempt; BadRequest in kubelets' words where there is none."""
        number = attempt_number(pod, container, previous=previous)
        path = self._places.log(pod, container, number)
        attempt = Attempt(uid_of(pod), container, number)
        left = limit_bytes
        async for text in self.read_attempt(
            path, attempt, follow=follow, tail_lines=tail_lines, since=since, timestamps=timestamps
        ):
            piece = text if left is None else text[:left]
            if piece:
                yield piece
            if left is not None:
                left -= len(piece)
                if left <= 0:
                    return

    async def read_attempt(
        self,
        path: Path,
        attempt: Attempt,
        *,
        follow: bool = False,
        tail_lines: int | None = None,
        since: datetime | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """The same of any attempt whose log is kept, whether or not its pod still exists."""
        writer = _Writer(timestamps, since)
        async for entries in _entries(path, self._ending(attempt), tail_lines, follow):
            yield b"".join(writer.lines(entries))

    def _ending(self, attempt: Attempt) -> AbstractContextManager[Alive | None]:
        try:
            return Alive(self._places.attempt(attempt) / "alive")
        except FileNotFoundError:
            return nullcontext()  # the pod is gone, its log is whole


def attempt_number(pod: Json, container: str, *, previous: bool) -> int:
    """Which attempt's log is meant, by what the pod's status says."""
    status: Json = pod.get("status") or {}
    listed = [*(status.get("containerStatuses") or []), *(status.get("initContainerStatuses") or [])]
    found: Json = next((one for one in listed if one["name"] == container), {})
    state, last = found.get("state") or {}, found.get("lastState") or {}
    if not {"running", "terminated"} & {*state, *last}:
        reason = (state.get("waiting") or {}).get("reason", "ContainerCreating")
        raise BadRequest(f'container "{container}" in pod "{name_of(pod)}" is waiting to start: {reason}')
    number: int = found.get("restartCount", 0)
    if not previous:
        return number
    # While it waits to be started again, the attempt that its restartCount counts is itself the previous one.
    if "waiting" in state:
        return number
    if number == 0:
        raise BadRequest(f'previous terminated container "{container}" in pod "{name_of(pod)}" not found')
    return number - 1


async def _entries(
    path: Path, ending: AbstractContextManager[Alive | None], tail_lines: int | None, follow: bool
) -> AsyncIterator[list[bytes]]:
    """Whole entries of a log, as they come: of the files that were put aside, then of the one that grows."""
    number, offset = (1, 0) if tail_lines is None else _start_of_tail(path, tail_lines)
    with ending as alive:
        while True:
            with _opened_piece(path, number) as file:
                # Who does not follow sees what there is now, and not what is written while he reads.
                left = None if follow else os.fstat(file.fileno()).st_size - offset
                file.seek(offset)
                begun = b""
                while True:
                    # Asked before reading: what is written until then is read below.
                    over, is_past = alive is None or alive.at_end(), _aside(path, number).exists()
                    while text := file.read(CHUNK if left is None else min(CHUNK, left)):
                        left = None if left is None else left - len(text)
                        *entries, begun = (begun + text).split(b"\n")
                        yield entries
                    if is_past:
                        break
                    if over or not follow:
                        return
                    with anyio.move_on_after(LOOK_AGAIN):
                        await alive.end() if alive is not None else None
            number, offset = number + 1, 0


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _opened_piece(path: Path, number: int) -> BufferedReader:
    """The so-manieth file of a log; it may be put aside at this very moment."""
    aside = _aside(path, number)
    file = _opened(aside if aside.exists() else path)
    if aside.exists() and os.fstat(file.fileno()).st_ino != aside.stat().st_ino:
        file.close()
        return aside.open("rb")
    return file


def _opened(path: Path) -> BufferedReader:
    try:
        return path.open("rb")
    except FileNotFoundError:
        return open(os.devnull, "rb")  # it wrote nothing, or retention took it


def _start_of_tail(path: Path, lines: int) -> tuple[int, int]:
    """Where the last so many lines of a log begin: in its so-manieth file, at which place."""
    number = 1
    while _aside(path, number).exists():
        number += 1
    while True:
        with _opened_piece(path, number) as file:
            position, missing = _tail_in(file, lines)
        if missing <= 0 or number == 1:
            return number, position
        number, lines = number - 1, missing


def _tail_in(file: BufferedReader, lines: int) -> tuple[int, int]:
    """Where the last so many lines of a file begin, and how many of them it does not have."""
    position = file.seek(0, os.SEEK_END)
    wanted = lines + 1  # the newline before the first of them; the file ends with one
    while position > 0:
        start = max(0, position - CHUNK)
        file.seek(start)
        piece = file.read(position - start)
        found = piece.count(b"\n")
        if found >= wanted:
            for _ in range(wanted):
                position = piece.rfind(b"\n", 0, position if position < len(piece) else None)
            return start + position + 1, 0
        wanted -= found
        position = start
    return 0, wanted - 1


def last_lines(path: Path, lines: int) -> bytes:
    """The last lines that a container wrote, without their times."""
    with _opened(path) as file:
        file.seek(_tail_in(file, lines)[0])
        return b"".join(_Writer(timestamps=False, since=None).lines(file.read().split(b"\n")[:-1]))


@dataclass(slots=True)
class _Writer:
    """Entries of the file back to what the program wrote."""

    timestamps: bool
    since: datetime | None
    at_line_start: bool = True

    def lines(self, entries: list[bytes]) -> Iterator[bytes]:
        for entry in entries:
            moment, _, rest = entry.partition(b" ")
            _, _, rest = rest.partition(b" ")
            tag, _, text = rest.partition(b" ")
            if self.since is not None and _moment(moment) < self.since:
                continue
            if self.timestamps and self.at_line_start:
                yield moment + b" "
            self.at_line_start = tag != b"P"
            yield text + b"\n" if self.at_line_start else text


def _moment(text: bytes) -> datetime:
    try:
        return datetime.fromisoformat(text[:26].decode() + "+00:00")
    except ValueError:
        return datetime.max.replace(tzinfo=UTC)
