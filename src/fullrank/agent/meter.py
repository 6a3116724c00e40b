"""What containers and the machine use, measured when somebody asks: CPU over a short while, the rest meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import anyio
import anyio.to_thread
import psutil

from fullrank.agent.devices import real_devices
from fullrank.agent.gpu_usage import CardUsage, card_usage
from fullrank.agent.runtime import Attempt, Runtime, Usage
from fullrank.api.meta import Json, uid_of

WINDOW = 0.25  # seconds


@dataclass(frozen=True, slots=True)
class Reading:
    cores: float
    memory: int  # bytes
    gpus: float | None = None  # how many cards' worth of work; None where the container has no card
    gpu_memory: int | None = None  # bytes


class Meter:
    def __init__(
        self,
        runtime: Runtime,
        window: float = WINDOW,
        cards: Callable[[], Mapping[str, CardUsage]] = card_usage,
    ) -> None:
        self._runtime = runtime
        self._cards = cards
        self.window = window

    async def measure(self, pods: Sequence[Json]) -> list[Mapping[str, Reading]]:
        """For each pod what each of its running containers uses; nothing for those of which it is not known."""
        attempts = {attempt for pod in pods for attempt in running_attempts(pod)}
        before = {attempt: self._runtime.usage(attempt) for attempt in attempts}
        cards: Mapping[str, CardUsage] = {}
        began = anyio.current_time()
        if any(_cards_of(pod, one["name"]) for pod in pods for one in pod["spec"]["containers"]):
            cards = await anyio.to_thread.run_sync(self._cards)
        seconds = await self._a_while(since=began)
        found: dict[Attempt, Reading] = {}
        for attempt, first in before.items():
            second = self._runtime.usage(attempt)
            if first is not None and second is not None:
                found[attempt] = _reading(first, second, seconds)
        return [
            {
                attempt.container: _with_cards(found[attempt], cards, _cards_of(pod, attempt.container))
                for attempt in running_attempts(pod)
                if attempt in found
            }
            for pod in pods
        ]

    async def machine(self) -> Reading:
        before = psutil.cpu_times()
        seconds = await self._a_while(since=anyio.current_time())
        after = psutil.cpu_times()
        busy = sum(after) - after.idle - (sum(before) - before.idle)
        memory = psutil.virtual_memory()
        return Reading(max(busy, 0.0) / seconds, memory.total - memory.available)

    async def _a_while(self, since: float) -> float:
        await anyio.sleep_until(since + self.window)
        return anyio.current_time() - since


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


def _cards_of(pod: Json, name: str) -> tuple[str, ...]:
    listed = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    return next((real_devices(pod, one) for one in listed if one["name"] == name), ())


def _with_cards(reading: Reading, cards: Mapping[str, CardUsage], names: Sequence[str]) -> Reading:
    mine = [cards[name] for name in names if name in cards]
    if not mine:
        return reading
    return replace(
        reading, gpus=sum(card.busy for card in mine), gpu_memory=sum(card.memory for card in mine)
    )
