"""What containers and the machine use, measured when somebody asks: CPU over a short while, memory at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import psutil

from fullrank.agent.runtime import Attempt, Runtime, Usage
from fullrank.api.meta import Json, uid_of

WINDOW = 0.25  # seconds


@dataclass(frozen=True, slots=True)
class Reading:
    cores: float
    memory: int  # bytes


class Meter:
    def __init__(self, runtime: Runtime, window: float = WINDOW) -> None:
        self._runtime = runtime
        self.window = window

    async def measure(self, pods: Sequence[Json]) -> list[Mapping[str, Reading]]:
        """For each pod what each of its running containers uses; nothing for those of which it is not known."""
        attempts = {attempt for pod in pods for attempt in running_attempts(pod)}
        before = {attempt: self._runtime.usage(attempt) for attempt in attempts}
        seconds = await self._a_while()
        found: dict[Attempt, Reading] = {}
        for attempt, first in before.items():
            second = self._runtime.usage(attempt)
            if first is not None and second is not None:
                found[attempt] = _reading(first, second, seconds)
        return [
            {attempt.container: found[attempt] for attempt in running_attempts(pod) if attempt in found}
            for pod in pods
        ]

    async def machine(self) -> Reading:
        before = psutil.cpu_times()
        seconds = await self._a_while()
        after = psutil.cpu_times()
        busy = sum(after) - after.idle - (sum(before) - before.idle)
        memory = psutil.virtual_memory()
        return Reading(max(busy, 0.0) / seconds, memory.total - memory.available)

    async def _a_while(self) -> float:
        began = anyio.current_time()
        await anyio.sleep(self.window)
        return anyio.current_time() - began


def running_attempts(pod: Json) -> list[Attempt]:
    status: Json = pod.get("status") or {}
    listed = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    return [
        Attempt(uid_of(pod), one["name"], one["restartCount"])
        for one in listed
        if "running" in (one.get("state") or {})
    ]


def _reading(first: Usage, second: Usage, seconds: float) -> Reading:
    return Reading(max(second.cpu_seconds - first.cpu_seconds, 0.0) / seconds, second.memory)
