"""A memory limit where no control group keeps it: what a container's processes use is watched, and too much ends them.

Memory that grows faster than somebody looks is not caught: this is the best that is left, and the pod is told so.
"""

import os
import time

EVERY = 0.25  # seconds between two looks
PAGE = os.sysconf("SC_PAGE_SIZE")


class MemoryWatch:
    """Everything below a parent, by the pids that the host's /proc has; `limit` None is no limit to watch."""

    def __init__(self, limit: int | None, parent: int) -> None:
        self._limit = limit
        self._parent = parent
        self._next = time.monotonic()
        self.has_been_exceeded = False

    @property
    def wait(self) -> float | None:
        """Milliseconds until the next look, or for ever."""
        return None if self._limit is None else max(0.0, self._next - time.monotonic()) * 1000

    def look(self) -> bool:
        """Whether there is too much now; asked before it is time to look again, it is as it was."""
        if self._limit is None or time.monotonic() < self._next:
            return False
        self._next = time.monotonic() + EVERY
        pids = _below(self._parent)
        # What processes share is counted in each of them, so the costly count is made only when this one is too high.
        if sum(map(_resident, pids)) > self._limit and sum(map(_proportional, pids)) > self._limit:
            self.has_been_exceeded = True
            return True
        return False


def _below(parent: int) -> list[int]:
    found: list[int] = []
    waiting = [parent]
    while waiting:
        pid = waiting.pop()
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                waiting += children
        except OSError:
            continue  # it ended while we looked
    return found


def _resident(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * PAGE
    except OSError:
        return 0


def _proportional(pid: int) -> int:
    """Its own memory, and its part of what it shares with others."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return _resident(pid)
