"""Keys that want attention: each at most once at a time, later if asked, and again after a failure.

A key that is added while it is being worked on is worked on once more afterwards, so no change is missed and no two
workers ever hold the same key.
"""

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from datetime import timedelta
from heapq import heappop, heappush
from typing import Generic, TypeVar

import anyio

from fullrank.errors import Conflict, FullrankError, NotFound, Unavailable

log = logging.getLogger(__name__)

K = TypeVar("K", bound=Hashable)
FIRST_RETRY, LAST_RETRY = 0.01, 300.0


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._queued: set[K] = set()
        self._working: set[K] = set()
        self._again: set[K] = set()
        self._alarms: list[tuple[float, int, K]] = []
        self._alarm_of: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._order = 0
        self._news = anyio.Event()
        self._rest = anyio.Event()

    @property
    def crowded(self) -> bool:
        """Whether somebody waits for attention."""
        return bool(self._ready)

    async def rest(self) -> None:
        """Returns at a moment at which nobody waits for attention, or has it."""
        while self._ready or self._working:
            await self._rest.wait()

    def add(self, key: K) -> None:
        if key in self._working:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._ready.append(key)
            self._news.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds the key in a while; an earlier alarm for it stands, a later one is moved up."""
        due = anyio.current_time() + max(seconds, 0.0)
        if due < self._alarm_of.get(key, float("inf")):
            self._alarm_of[key] = due
            self._order += 1
            heappush(self._alarms, (due, self._order, key))
            self._news.set()

    async def run(self, reconcile: Callable[[K], Awaitable[timedelta | None]], *, workers: int = 4) -> None:
        """Works until cancelled."""
        async with anyio.create_task_group() as tasks:
            for _ in range(workers):
                tasks.start_soon(self._work, reconcile)

    async def _work(self, reconcile: Callable[[K], Awaitable[timedelta | None]]) -> None:
        while True:
            key = await self._next()
            self._working.add(key)
            wait = await self._attempt(reconcile, key)
            self._working.discard(key)
            if wait is not None:
                self.add_after(key, wait)
            if key in self._again:
                self._again.discard(key)
                self.add(key)
            if not (self._ready or self._working):
                self._rest.set()
                self._rest = anyio.Event()

    async def _attempt(self, reconcile: Callable[[K], Awaitable[timedelta | None]], key: K) -> float | None:
        """Seconds until the key wants attention again, or None. What an error means is decided here, once."""
        try:
            wake_after = await reconcile(key)
        except NotFound:
            wake_after = None
        except (Conflict, Unavailable) as error:
            log.debug("%s: %s", key, error)
            return self._back_off(key)
        except FullrankError as error:
            log.warning("%s: %s", key, error)
            return self._back_off(key)
        except Exception:
            log.exception("%s: our own mistake", key)
            return self._back_off(key)
        self._failures.pop(key, None)
        return None if wake_after is None else wake_after.total_seconds()

    def _back_off(self, key: K) -> float:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(FIRST_RETRY * 2.0 ** min(failures, 20), LAST_RETRY)

    async def _next(self) -> K:
        while True:
            self._ring_alarms()
            if self._ready:
                key = self._ready.popleft()
                self._queued.discard(key)
                return key
            if self._news.is_set():
                self._news = anyio.Event()
            news = self._news
            pause = self._alarms[0][0] - anyio.current_time() if self._alarms else None
            with anyio.move_on_after(pause):
                await news.wait()

    def _ring_alarms(self) -> None:
        now = anyio.current_time()
        while self._alarms and self._alarms[0][0] <= now:
            due, _, key = heappop(self._alarms)
            if self._alarm_of.get(key) == due:
                del self._alarm_of[key]
                self.add(key)
