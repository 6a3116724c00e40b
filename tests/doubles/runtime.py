"""A runtime without processes: containers run until a test says how they end."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

import anyio

from fullrank.agent.runtime import Attempt, Execution, Exit, Launch, Limits, Run, Usage
from fullrank.clock import Clock

STOPPED = 143


class PretendedRuntime:
    """Keeps everything in memory; the same one can be given to one agent after another, as a disk would."""

    engine = "process"

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[Attempt, Run] = {}
        self._ended: dict[Attempt, anyio.Event] = {}
        self.launches: list[Launch] = []
        self.stubborn = False  # containers do not end when they are asked to
        self.shortcoming = ""
        self.executed: list[tuple[Attempt, tuple[str, ...]]] = []
        self.outcomes: dict[tuple[str, ...], Execution] = {}
        self.ills: set[int] = set()  # numbers of attempts in which whatever is executed fails

    def finish(self, pod_uid: str, container: str, code: int, *, reason: str = "", message: str = "") -> None:
        """Ends the running attempt of a container."""
        run = next(
            run for run in self._runs.values() if run.exit is None and run.attempt[:2] == (pod_uid, container)
        )
        self._end(run, code, reason, message)

    def running(self) -> list[Attempt]:
        return [run.attempt for run in self._runs.values() if run.exit is None]

    async def start(self, launch: Launch) -> datetime:
        if launch.attempt not in self._runs:
            self.launches.append(launch)
            self._runs[launch.attempt] = Run(launch.attempt, self._clock.now())
            self._ended[launch.attempt] = anyio.Event()
        return self._runs[launch.attempt].started_at

    async def wait(self, attempt: Attempt) -> Exit:
        await self._ended[attempt].wait()
        ended = self._runs[attempt].exit
        return ended or Exit(137, datetime.min.replace(tzinfo=UTC), self._clock.now())

    async def stop(self, attempt: Attempt, grace: float) -> None:
        if self._runs[attempt].exit is not None:
            return
        if self.stubborn and grace:
            await anyio.sleep(grace / 100)  # pretended seconds are short
            self._end(self._runs[attempt], 137)
        else:
            self._end(self._runs[attempt], STOPPED)

    async def runs(self, pod_uid: str) -> tuple[Run, ...]:
        return tuple(run for attempt, run in self._runs.items() if attempt.pod_uid == pod_uid)

    def pods(self) -> tuple[str, ...]:
        return tuple(sorted({attempt.pod_uid for attempt in self._runs}))

    async def forget(self, pod_uid: str) -> None:
        self._runs = {attempt: run for attempt, run in self._runs.items() if attempt.pod_uid != pod_uid}

    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution:
        for stream in streams:
            os.close(stream)
        self.executed.append((attempt, tuple(argv)))
        return Execution(1) if attempt.number in self.ills else self.outcomes.get(tuple(argv), Execution(0))

    def usage(self, attempt: Attempt) -> Usage | None:
        return Usage(1.0, 1 << 20) if attempt in self.running() else None

    def unenforced(self, _limits: Limits) -> str:
        return ""

    async def shortcomings(self) -> str:
        return self.shortcoming

    def _end(self, run: Run, code: int, reason: str = "", message: str = "") -> None:
        ended = Exit(code, run.started_at, self._clock.now(), reason, message)
        self._runs[run.attempt] = Run(run.attempt, run.started_at, ended)
        self._ended[run.attempt].set()
