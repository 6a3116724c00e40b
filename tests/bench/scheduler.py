"""The scheduler's pure part under a crowd: 50,000 gangs wait in 1,000 queues for 1,000 nodes.

`python -m tests.bench.scheduler` prints each figure beside what is to be reached. Seconds are seconds of CPU.
"""

import gc
import statistics
from collections import deque
from dataclasses import replace
from random import Random
from time import process_time

from fullrank.scheduling.amounts import Ask, amounts_of
from fullrank.scheduling.floor import Floor
from fullrank.scheduling.gang import Admit, Decision, Gang
from fullrank.scheduling.line import QueuePolicy

WAITING, QUEUES, NODES = 50_000, 1_000, 1_000
ADMISSIONS = 5_000
REACH = 500.0  # admissions a second
NODE = {"cpu": "96", "memory": "768Gi", "nvidia.com/gpu": "8", "pods": "110"}
SIZES = (1, 1, 1, 2, 2, 4, 8, 16)  # pods
GPUS = (1, 1, 2, 4, 8)  # of each


def a_gang(number: int, chance: Random) -> Gang:
    gpus = chance.choice(GPUS)
    ask = Ask.of(
        amounts_of(
            {"cpu": str(8 * gpus), "memory": f"{64 * gpus}Gi", "nvidia.com/gpu": str(gpus), "pods": "1"}
        )
    )
    pods = [f"job-{number}-worker-{index}" for index in range(chance.choice(SIZES))]
    return Gang(
        f"uid-{number}",
        f"team-{number % QUEUES}/job-{number}",
        created=f"{number:08}",
        queue=f"team-{number % QUEUES}",
        priority=chance.choice((0, 0, 0, 10)),
        preempts=False,
        asks=dict.fromkeys(pods, ask),
        members=frozenset(pods),
    )


class Crowd:
    def __init__(self, quota: int) -> None:
        chance = Random(1)  # the same crowd every day
        self.floor = Floor()
        for number in range(NODES):
            self.floor.furnish(f"node-{number}", amounts_of(NODE))
        for number in range(QUEUES):
            self.floor.open_queue(f"team-{number}", QueuePolicy(amounts_of({"nvidia.com/gpu": str(quota)})))
        self.gangs = {f"uid-{number}": a_gang(number, chance) for number in range(WAITING)}
        self.running: deque[str] = deque()
        self.times: list[float] = []

    def arrive(self) -> float:
        begun = process_time()
        for gang in self.gangs.values():
            self.floor.see(gang)
        decisions = self.floor.decide()
        spent = process_time() - begun
        self._seat(decisions)
        return spent

    def turn(self, at_once: int) -> int:
        """The oldest that run end, and whoever has room now starts; what that costs the scheduler is counted."""
        begun = process_time()
        for _ in range(min(at_once, len(self.running))):
            self.floor.forget(self.running.popleft())
        decisions = self.floor.decide()
        self.times.append(process_time() - begun)
        return self._seat(decisions)

    def _seat(self, decisions: list[Decision]) -> int:
        admitted = [one for one in decisions if isinstance(one, Admit)]
        begun = process_time()
        for one in admitted:
            self.floor.see(replace(self.gangs[one.uid], seated=one.seats))
            self.running.append(one.uid)
        if self.times:
            self.times[-1] += process_time() - begun
        return len(admitted)


def measured(name: str, quota: int, at_once: int) -> None:
    crowd = Crowd(quota)
    gc.collect()
    gc.freeze()
    arrival = crowd.arrive()
    at_first, admitted = len(crowd.running), 0
    while admitted < ADMISSIONS and crowd.running:
        admitted += crowd.turn(at_once)
    rate = admitted / sum(crowd.times)
    slowest = statistics.quantiles(crowd.times, n=100)[98] * 1000
    verdict = "reached" if rate >= REACH else "MISSED"
    print(  # noqa: T201
        f"{name:44} {arrival:8.2f} s {at_first:7,} {admitted:9,} {rate:11,.0f}/s {slowest:9.2f} ms   "
        f"≥ {REACH:.0f}/s {verdict}"
    )
    gc.unfreeze()


def main() -> None:
    print(f"{WAITING:,} gangs of up to {max(SIZES)} pods, {QUEUES:,} queues, {NODES:,} nodes")  # noqa: T201
    print(f"{'':44} {'arrive in':>10} {'at once':>7} {'admitted':>9} {'admissions':>13} {'p99 turn':>12}")  # noqa: T201
    measured("the machines are full, one ends at a time", 1_000, 1)
    measured("the machines are full, ten end at a time", 1_000, 10)
    measured("quotas are full, one ends at a time", 4, 1)
    measured("quotas and machines are full, ten at a time", 8, 10)


if __name__ == "__main__":
    main()
