"""Seats: all of a gang or none, and numbers when it waits."""

import pytest

from fullrank.api.meta import Json
from fullrank.scheduling.amounts import amounts_of, asked_by
from fullrank.scheduling.gang import Placement, Room, Shortfall, place

BOX = {"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "2", "pods": "110"}


def room(name: str = "box", taken: Json | None = None, **capacity: str) -> Room:
    return Room(name, amounts_of(BOX | capacity), amounts_of(taken))


def pods(count: int, **ask: str) -> dict[str, dict[str, int]]:
    return {f"p{index}": amounts_of({name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in ask.items()})
            for index in range(count)}  # fmt: skip


def test_all_members_are_seated_together() -> None:
    assert place(pods(2, gpu="1"), [room()], {}) == Placement({"p0": "box", "p1": "box"})


def test_a_gang_spreads_over_rooms_when_one_is_not_enough() -> None:
    placed = place(pods(3, gpu="1"), [room("a"), room("b")], {})
    assert isinstance(placed, Placement)
    assert sorted(placed.seats.values()) == ["a", "a", "b"]


SHORT = {
    "too few devices, and who has them": (
        pods(3, gpu="1"),
        room(taken={"nvidia.com/gpu": "1"}),
        {"default/bert": amounts_of({"nvidia.com/gpu": "1"})},
        "needs 3 nvidia.com/gpu, 1 free of 2; held by default/bert (1)",
    ),
    "none at all": (
        pods(1, gpu="1"),
        room(**{"nvidia.com/gpu": "0"}),
        {},
        "needs 1 nvidia.com/gpu, 0 free of 0",
    ),
    "too little memory": (pods(2, memory="6Gi"), room(), {}, "needs 12Gi memory, 8Gi free of 8Gi"),
}


@pytest.mark.parametrize(("asks", "box", "holders", "reason"), SHORT.values(), ids=SHORT.keys())
def test_a_waiting_gang_says_what_is_missing(
    asks: dict[str, dict[str, int]], box: Room, holders: dict[str, dict[str, int]], reason: str
) -> None:
    assert place(asks, [box], holders) == Shortfall(reason)


def test_without_a_node_nobody_sits() -> None:
    assert place(pods(1), [], {}) == Shortfall("no node is ready")


def test_a_pod_asks_for_its_containers_together_or_its_hungriest_init_container() -> None:
    def container(**requests: str) -> Json:
        return {"resources": {"requests": requests}}

    pod = {
        "spec": {
            "containers": [container(cpu="1", memory="1Gi"), {"resources": {"limits": {"cpu": "500m"}}}],
            "initContainers": [container(memory="3Gi")],
        }
    }
    assert asked_by(pod) == amounts_of({"cpu": "1500m", "memory": "3Gi", "pods": 1})
