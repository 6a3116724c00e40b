"""Seats: all of a gang or none, and numbers when it waits."""

import pytest

from fullrank.api.meta import Json
from fullrank.scheduling.amounts import Ask, amounts_of, asked_by
from fullrank.scheduling.floor import Floor
from fullrank.scheduling.gang import Admit, Decision, Gang, Preempt, Resume, Wait
from fullrank.scheduling.line import QueuePolicy
from fullrank.scheduling.rooms import Seat

BOX = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "110"}
GPU = "nvidia.com/gpu"


def asks(count: int, **ask: str) -> dict[str, Ask]:
    amounts = amounts_of({name.replace("_", ".com/"): amount for name, amount in ask.items()} | {"pods": "1"})
    return {f"p{index}": Ask.of(amounts) for index in range(count)}


def a_gang(name: str, count: int = 1, **more: object) -> Gang:
    """`count` pods that wait; asks such as `nvidia_gpu="1"`, and fields of the gang."""
    fields = {key: more.pop(key) for key in list(more) if key in Gang.__dataclass_fields__}
    needed = asks(count, **{key: str(value) for key, value in more.items()})
    return Gang(
        **({
            "uid": name, "title": f"default/{name}", "created": "2026-01-01T00:00:00Z", "asks": needed,
            "members": frozenset(needed), "suspendable": True,
        } | fields)  # type: ignore[arg-type]
    )  # fmt: skip


def a_floor(*boxes: Json, queues: dict[str, QueuePolicy] | None = None) -> Floor:
    floor = Floor()
    for number, box in enumerate(boxes or (BOX,)):
        floor.furnish(f"box-{number}", amounts_of(box))
    for name, policy in (queues or {}).items():
        floor.open_queue(name, policy)
    return floor


def come(floor: Floor, *gangs: Gang) -> list[Decision]:
    for gang in gangs:
        floor.see(gang)
    return floor.decide()


def seated(gang: Gang, decisions: list[Decision]) -> Gang:
    """The gang once its pods sit as was decided."""
    seats = next(one.seats for one in decisions if isinstance(one, Admit) and one.uid == gang.uid)
    return replaced(gang, seated={**gang.seated, **seats})


def replaced(gang: Gang, **fields: object) -> Gang:
    known = {name: getattr(gang, name) for name in Gang.__dataclass_fields__}
    return Gang(**(known | fields))


def run(floor: Floor, *gangs: Gang) -> list[Gang]:
    """Brings gangs in, one after the other, and seats them."""
    running = []
    for gang in gangs:
        running.append(seated(gang, come(floor, gang)))
        floor.see(running[-1])
        floor.decide()
    return running


def reasons(decisions: list[Decision]) -> dict[str, str]:
    return {one.uid: one.reason for one in decisions if isinstance(one, Wait)}


def admitted(decisions: list[Decision]) -> list[str]:
    return [one.uid for one in decisions if isinstance(one, Admit)]


# -- all or none ---------------------------------------------------------------------------------------------------


def test_all_members_are_seated_together_each_with_cards_of_its_own() -> None:
    [decision] = come(a_floor(), a_gang("a", 2, nvidia_gpu="1"))
    assert decision == Admit("a", {"p0": Seat("box-0", ("0",)), "p1": Seat("box-0", ("1",))})


def test_a_gang_spreads_over_rooms_when_one_is_not_enough() -> None:
    [decision] = come(a_floor(BOX, BOX), a_gang("a", 3, nvidia_gpu="1"))
    assert isinstance(decision, Admit)
    assert sorted(seat.node for seat in decision.seats.values()) == ["box-0", "box-0", "box-1"]


def test_nobody_is_seated_before_all_members_have_pods() -> None:
    floor = a_floor()
    assert come(floor, a_gang("a", 2, complete=False)) == []
    assert admitted(come(floor, a_gang("a", 2))) == ["a"]


def test_a_member_that_is_replaced_comes_back_to_its_seat_whoever_waits() -> None:
    floor = a_floor()
    gang = a_gang("a", 2, nvidia_gpu="1")
    [running] = run(floor, gang)
    assert reasons(come(floor, a_gang("b", nvidia_gpu="1")))
    gone = replaced(
        running, asks={"p1": gang.asks["p1"]}, seated={"p1": running.seated["p1"]}, complete=False
    )
    assert come(floor, gone) == []
    back = replaced(running, seated=gone.seated)
    assert come(floor, back) == [Admit("a", {"p0": running.seated["p0"]})]


# -- why somebody waits --------------------------------------------------------------------------------------------

SHORT = {
    "too few devices, and who has them": (
        (a_gang("bert", nvidia_gpu="1"),),
        a_gang("a", 2, nvidia_gpu="1"),
        "needs 2 nvidia.com/gpu, 1 free of 2; held by default/bert (1)",
    ),
    "too little memory": (
        (a_gang("bert", memory="3Gi"),),
        a_gang("a", 2, memory="4Gi"),
        "needs 8Gi memory, 5Gi free of 8Gi; held by default/bert (3Gi)",
    ),
    "more devices than there are": (
        (),
        a_gang("a", 8, nvidia_gpu="1"),
        "needs 8 nvidia.com/gpu, the machine has 2: it can never run here; "
        "lower the request or start with --gpus fake:8",
    ),
    "something the machine has not got": (
        (),
        a_gang("a", rdma_hca="1"),
        "needs 1 rdma.com/hca, the machine has 0: it can never run here; lower the request",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("before", "gang", "reason"), SHORT.values(), ids=SHORT.keys())
def test_a_waiting_gang_says_what_is_missing(before: tuple[Gang, ...], gang: Gang, reason: str) -> None:
    floor = a_floor()
    run(floor, *before)
    assert reasons(come(floor, gang)) == {"a": reason}


def test_without_a_node_nobody_sits() -> None:
    floor = Floor()
    assert reasons(come(floor, a_gang("a"))) == {"a": "no node is ready"}
    floor.furnish("box", amounts_of(BOX))
    assert admitted(floor.decide()) == ["a"]


def test_enough_in_all_but_not_in_one_piece_is_said() -> None:
    floor = a_floor(BOX, BOX)
    run(floor, a_gang("x", 2, cpu="3"))
    text = "a pod needs 2 cpu on one node, the most free on one is 1 (box-1)"
    assert reasons(come(floor, a_gang("a", cpu="2"))) == {"a": text}


def test_what_is_said_is_said_once() -> None:
    floor = a_floor()
    run(floor, a_gang("x", nvidia_gpu="2"))
    gang = a_gang("a", nvidia_gpu="1")
    assert reasons(come(floor, gang))
    assert come(floor, replaced(gang, hindrance="")) == []


# -- the head of the line ------------------------------------------------------------------------------------------


def test_a_small_gang_starts_beside_the_head_but_never_takes_what_the_head_needs() -> None:
    floor = a_floor()
    [running] = run(floor, a_gang("running", nvidia_gpu="1", cpu="1"))
    come(floor, a_gang("big", nvidia_gpu="2", cpu="2"))
    decisions = come(floor, a_gang("gpu", nvidia_gpu="1"), a_gang("cpu", cpu="1"), a_gang("cores", cpu="2"))
    assert admitted(decisions) == ["cpu"]
    assert reasons(decisions) == {
        "gpu": "waits behind default/big (priority 0)", "cores": "waits behind default/big (priority 0)",
    }  # fmt: skip
    assert admitted(come(floor, replaced(running, asks={}, seated={}, standing="over")))[0] == "big"


def test_who_can_never_run_holds_up_nobody() -> None:
    floor = a_floor()
    assert reasons(come(floor, a_gang("huge", nvidia_gpu="9")))
    assert admitted(come(floor, a_gang("small", nvidia_gpu="2"))) == ["small"]


def test_the_order_is_priority_then_share_then_age() -> None:
    floor = a_floor(queues={"rich": QueuePolicy(), "poor": QueuePolicy()})
    held = run(floor, a_gang("x", nvidia_gpu="2", queue="rich"))[0]
    run(floor, a_gang("y", cpu="1", queue="rich"))
    waiting = [
        a_gang("rich-old", nvidia_gpu="1", queue="rich", created="2026-01-01"),
        a_gang("poor-old", nvidia_gpu="1", queue="poor", created="2026-01-02"),
        a_gang("poor-new", nvidia_gpu="1", queue="poor", created="2026-01-03"),
        a_gang("urgent", nvidia_gpu="1", queue="rich", created="2026-01-04", priority=1, preempts=False),
    ]
    come(floor, *waiting)
    assert admitted(come(floor, replaced(held, asks={}, seated={}, standing="over"))) == [
        "urgent",
        "poor-old",
    ]


def test_a_cordoned_node_takes_nobody() -> None:
    floor = a_floor()
    floor.furnish("box-0", amounts_of(BOX), is_open=False)
    assert reasons(come(floor, a_gang("a"))) == {"a": "no node is ready"}


# -- quota ---------------------------------------------------------------------------------------------------------


def test_quota_keeps_a_gang_waiting_and_says_who_uses_it() -> None:
    floor = a_floor(queues={"team": QueuePolicy({GPU: 1000, "cpu": 4000})})
    [running] = run(floor, a_gang("x", nvidia_gpu="1", queue="team"))
    text = "queue team: needs 1 nvidia.com/gpu, 0 left of 1; used by default/x (1)"
    assert reasons(come(floor, a_gang("a", nvidia_gpu="1", queue="team"))) == {"a": text}
    behind = come(floor, a_gang("b", nvidia_gpu="1", queue="team"))
    assert reasons(behind) == {"b": "queue team: waits behind default/a (priority 0)"}
    assert admitted(come(floor, a_gang("c", cpu="1", queue="team"))) == ["c"]
    assert admitted(come(floor, a_gang("d", nvidia_gpu="1"))) == ["d"]
    assert admitted(come(floor, replaced(running, asks={}, seated={}, standing="over"))) == ["a"]


def test_in_a_strict_queue_nobody_passes_the_first() -> None:
    floor = a_floor(queues={"team": QueuePolicy({GPU: 1000}, strict=True)})
    run(floor, a_gang("x", nvidia_gpu="1", queue="team"))
    decisions = come(floor, a_gang("a", nvidia_gpu="1", queue="team"), a_gang("b", cpu="1", queue="team"))
    assert reasons(decisions)["b"] == "queue team: waits behind default/a (priority 0)"


def test_more_than_the_quota_can_never_run() -> None:
    floor = a_floor(queues={"team": QueuePolicy({GPU: 1000})})
    text = (
        "queue team: needs 2 nvidia.com/gpu, its quota is 1: it can never run there; "
        "lower the request or raise the quota of ClusterQueue team"
    )
    assert reasons(come(floor, a_gang("a", nvidia_gpu="2", queue="team"))) == {"a": text}
    floor.open_queue("team", QueuePolicy({GPU: 2000}))
    assert admitted(floor.decide()) == ["a"]


# -- preemption ----------------------------------------------------------------------------------------------------


def test_a_higher_priority_sends_away_the_youngest_of_the_lowest_and_no_more_than_needed() -> None:
    floor = a_floor()
    old = a_gang("old", nvidia_gpu="1", created="2026-01-01")
    young = a_gang("young", nvidia_gpu="1", created="2026-01-02")
    running = dict(zip(("old", "young"), run(floor, old, young), strict=True))
    decisions = come(floor, a_gang("urgent", nvidia_gpu="1", priority=100))
    [preempt] = [one for one in decisions if isinstance(one, Preempt)]
    assert (preempt.uid, preempt.by) == ("young", "urgent")
    assert reasons(decisions) == {
        "urgent": "needs 1 nvidia.com/gpu, 0 free of 2; held by default/old (1), default/young (1); "
        "default/young makes room"
    }
    assert come(floor, a_gang("urgent", nvidia_gpu="1", priority=100)) == []
    parked = replaced(running["young"], standing="parked", seated={})
    assert admitted(come(floor, parked)) == ["urgent"]
    assert Resume("young") in come(floor, replaced(running["old"], asks={}, seated={}, standing="over"))


def test_nobody_is_sent_away_in_vain_or_by_an_equal() -> None:
    floor = a_floor()
    run(floor, a_gang("low", nvidia_gpu="1"), a_gang("high", nvidia_gpu="1", priority=200))
    assert not [
        one for one in come(floor, a_gang("mid", nvidia_gpu="2", priority=100)) if isinstance(one, Preempt)
    ]
    assert not [one for one in come(floor, a_gang("same", nvidia_gpu="1")) if isinstance(one, Preempt)]
    gentle = a_gang("gentle", nvidia_gpu="1", priority=300, preempts=False)
    assert not [one for one in come(floor, gentle) if isinstance(one, Preempt)]


def test_a_decision_that_was_not_carried_out_is_decided_again() -> None:
    floor = a_floor()
    [low] = run(floor, a_gang("low", nvidia_gpu="2"))
    urgent = a_gang("urgent", nvidia_gpu="2", priority=1)
    assert any(isinstance(one, Preempt) for one in come(floor, urgent))
    floor.untold("urgent")
    assert any(isinstance(one, Preempt) for one in come(floor, low))


def test_a_queue_that_says_so_prefers_higher_priorities_within_its_quota() -> None:
    floor = a_floor(queues={"team": QueuePolicy({GPU: 1000}, preemption="LowerPriority")})
    run(floor, a_gang("low", nvidia_gpu="1", queue="team"))
    decisions = come(floor, a_gang("high", nvidia_gpu="1", queue="team", priority=1))
    assert [one.uid for one in decisions if isinstance(one, Preempt)] == ["low"]


# -- what pods ask for ---------------------------------------------------------------------------------------------


def test_a_pod_asks_for_its_containers_together_or_its_hungriest_init_container() -> None:
    def container(**requests: str) -> Json:
        return {"resources": {"requests": requests}}

    spec = {
        "containers": [container(cpu="1", memory="1Gi"), {"resources": {"limits": {"cpu": "500m"}}}],
        "initContainers": [container(memory="3Gi")],
    }
    assert asked_by(spec) == amounts_of({"cpu": "1500m", "memory": "3Gi", "pods": 1})


SHARED = {"nvidia.com/vgpu": "1", "nvidia.com/gpumem": "6000", "nvidia.com/gpucores": "30"}


def share(name: str, **more: str) -> Gang:
    return a_gang(name, asks={"p0": Ask.of(amounts_of(SHARED | more | {"pods": "1"}))})


def test_cards_are_shared_by_memory_and_cores_and_a_shared_card_is_nobodys_whole_one() -> None:
    floor = Floor()
    floor.furnish("box", amounts_of(BOX), {"GPU-a": 16000, "GPU-b": 16000})
    seats = [run(floor, share(name))[0].seated["p0"].cards for name in ("a", "b", "c", "d")]
    assert seats == [("GPU-a",), ("GPU-a",), ("GPU-b",), ("GPU-b",)]
    assert reasons(come(floor, share("e"))) == {
        "e": "a pod needs 1 nvidia.com/vgpu with 6000 nvidia.com/gpumem and 30 nvidia.com/gpucores of each card, "
        "no node has so much free"
    }
    assert reasons(come(floor, a_gang("whole", nvidia_gpu="1"))) == {
        "whole": "waits behind default/e (priority 0)"
    }


def test_a_part_bigger_than_any_card_can_never_be_had() -> None:
    floor = Floor()
    floor.furnish("box", amounts_of(BOX), {"GPU-a": 16000, "GPU-b": 16000})
    [text] = reasons(come(floor, share("a", **{"nvidia.com/gpumem": "20k"}))).values()
    assert text.startswith("a pod needs 1 nvidia.com/vgpu with 20000 nvidia.com/gpumem")
    assert "it can never run here" in text
