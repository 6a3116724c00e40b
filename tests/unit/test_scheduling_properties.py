"""Whatever comes, goes, fails and is sent away: nobody sits on another, no gang is torn, and the head gets its seat."""

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fullrank.scheduling.amounts import GPU, Ask, amounts_of
from fullrank.scheduling.floor import Floor
from fullrank.scheduling.gang import Admit, Gang, Preempt, Resume, Wait
from fullrank.scheduling.line import QueuePolicy

QUOTA = {GPU: 2000, "cpu": 5000}
SHAPES = st.tuples(st.integers(0, 2), st.integers(0, 2))
GANGS = st.tuples(
    st.lists(SHAPES, min_size=1, max_size=3),
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from(["", "", "", "best-effort", "strict"]),
    st.booleans(),
)
BOXES = st.lists(st.tuples(st.integers(1, 4), st.integers(2, 6)), min_size=1, max_size=3)


class FloorMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.floor = Floor()
        self.gangs: dict[str, Gang] = {}
        self.reasons: dict[str, str] = {}
        self.capacity: dict[str, dict[str, int]] = {}
        self.before_head: tuple[str, set[str]] = ("", set())
        self.number = 0

    @initialize(boxes=BOXES)
    def furnish(self, boxes: list[tuple[int, int]]) -> None:
        for number, (gpus, cores) in enumerate(boxes):
            offer = {GPU: gpus * 1000, "cpu": cores * 1000, "pods": 10_000}
            self.capacity[f"box-{number}"] = offer
            self.floor.furnish(f"box-{number}", offer)
        self.floor.open_queue("best-effort", QueuePolicy(QUOTA, preemption="LowerOrNewerEqualPriority"))
        self.floor.open_queue("strict", QueuePolicy(QUOTA, strict=True))

    @rule(crowd=st.lists(GANGS, min_size=1, max_size=5))
    def arrive(self, crowd: list[tuple[list[tuple[int, int]], int, str, bool]]) -> None:
        for shapes, priority, queue, preempts in crowd:
            self.number += 1
            asks = {
                f"p{index}": Ask.of({GPU: gpus * 1000, "cpu": cores * 1000, "pods": 1000})
                for index, (gpus, cores) in enumerate(shapes)
            }
            name = f"g{self.number}"
            self.gangs[name] = Gang(
                name, f"default/{name}", f"{self.number:04}", queue, priority, preempts, suspendable=True,
                asks=asks, members=frozenset(asks),
            )  # fmt: skip
            self.tell(name)

    @rule(pick=st.integers(0, 99))
    def finish(self, pick: int) -> None:
        if running := self.running():
            self.gone(running[pick % len(running)])

    @rule()
    def finish_all_who_were_before_the_head(self) -> None:
        for name in self.before_head[1] & set(self.running()):
            self.gone(name)

    @rule(pick=st.integers(0, 99))
    def withdraw(self, pick: int) -> None:
        if self.gangs:
            self.gone(sorted(self.gangs)[pick % len(self.gangs)])

    @rule(pick=st.integers(0, 99))
    def replace_a_member(self, pick: int) -> None:
        """A pod fails and goes; its successor comes in the next step, and must find its seat."""
        if not (running := self.running()):
            return
        name = running[pick % len(running)]
        gang = self.gangs[name]
        lost = sorted(gang.seated)[pick % len(gang.seated)]
        without = {pod: seat for pod, seat in gang.seated.items() if pod != lost}
        asks = {pod: ask for pod, ask in gang.asks.items() if pod != lost}
        self.gangs[name] = replace(gang, asks=asks, seated=without, complete=False)
        self.tell(name)
        self.gangs[name] = replace(gang, seated=without)
        self.tell(name)
        assert self.gangs[name].seated == gang.seated

    # -- doing what is decided

    def tell(self, name: str) -> None:
        self.floor.see(self.gangs[name])
        self.decide()

    def gone(self, name: str) -> None:
        del self.gangs[name]
        self.reasons.pop(name, None)
        self.floor.forget(name)
        self.decide()

    def decide(self) -> None:
        for _ in range(100):
            decisions = self.floor.decide()
            for decision in decisions:
                gang = self.gangs[decision.uid]
                match decision:
                    case Admit(_, seats):
                        self.gangs[gang.uid] = replace(gang, seated={**gang.seated, **seats})
                        assert self.gangs[gang.uid].seated.keys() == gang.asks.keys()
                        self.reasons.pop(gang.uid, None)
                    case Preempt(_, by):
                        same_queue = gang.queue == self.gangs[by].queue == "best-effort"
                        assert gang.priority < self.gangs[by].priority + same_queue
                        self.gangs[gang.uid] = replace(gang, standing="parked", seated={})
                    case Resume():
                        self.gangs[gang.uid] = replace(gang, standing="active")
                        self.reasons.pop(gang.uid, None)
                    case Wait(_, reason):
                        self.reasons[gang.uid] = reason
            for decision in decisions:
                self.floor.see(self.gangs[decision.uid])
            if not decisions:
                return
        raise AssertionError("the floor never comes to rest")

    def running(self) -> list[str]:
        return sorted(name for name, gang in self.gangs.items() if gang.seated)

    # -- what always holds

    @invariant()
    def nobody_sits_on_anothers_lap(self) -> None:
        taken: dict[tuple[str, str], int] = {}
        cards = [
            (seat.node, card)
            for gang in self.gangs.values()
            for seat in gang.seated.values()
            for card in seat.cards
        ]
        assert len(cards) == len(set(cards))
        for gang in self.gangs.values():
            for pod, seat in gang.seated.items():
                assert len(seat.cards) == gang.asks[pod].whole_cards
                for name, amount in gang.asks[pod].amounts:
                    taken[seat.node, name] = taken.get((seat.node, name), 0) + amount
        assert all(amount <= self.capacity[node][name] for (node, name), amount in taken.items())

    @invariant()
    def no_gang_is_torn(self) -> None:
        assert all(gang.seated.keys() in (set(), gang.asks.keys()) for gang in self.gangs.values())

    @invariant()
    def no_queue_has_more_than_its_quota(self) -> None:
        for queue in ("best-effort", "strict"):
            asks = [
                gang.asks[pod] for gang in self.gangs.values() if gang.queue == queue for pod in gang.seated
            ]
            for name, quota in QUOTA.items():
                assert sum(dict(ask.amounts).get(name, 0) for ask in asks) <= quota

    @invariant()
    def everybody_who_waits_knows_why(self) -> None:
        waiting = {name for name, gang in self.gangs.items() if not gang.seated}
        assert waiting == set(self.reasons)
        assert all(self.reasons.values())

    @invariant()
    def the_head_sits_once_those_who_were_there_before_it_are_gone(self) -> None:
        head = self.floor._head.gang.uid if self.floor._head else ""
        if head != self.before_head[0]:
            self.before_head = head, set(self.running())
        if head:
            priority = self.gangs[head].priority
            first = {name for name in self.running() if self.gangs[name].priority > priority}
            assert (self.before_head[1] | first) & set(self.running()), "the head starves"

    def teardown(self) -> None:
        """Once nobody comes any more and everybody ends, all who could ever sit have sat."""
        for _ in range(len(self.gangs) + 1):
            for name in self.running():
                self.gone(name)
        assert all("never run" in self.reasons[name] for name in self.gangs)


TestFloor = FloorMachine.TestCase
TestFloor.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_no_room_is_lost_when_gangs_come_and_go() -> None:
    floor = Floor()
    floor.furnish("box", amounts_of({"cpu": "4", "pods": "10"}))
    ask = Ask.of(amounts_of({"cpu": "4", "pods": "1"}))
    for number in range(50):
        floor.see(Gang(f"g{number}", "default/g", asks={"p": ask}, members=frozenset(("p",))))
        assert any(isinstance(one, Admit) for one in floor.decide())
        floor.forget(f"g{number}")
