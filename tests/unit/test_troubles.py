"""What goes wrong in a pod, in the words its job's events have always had."""

from typing import Any

import pytest

from fullrank.planning.troubles import troubles


def a_pod(phase: str = "Pending", **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "j-worker-0"}, "status": {"phase": phase} | status}


def a_state(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": state}]}


UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
CASES: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a container that ended badly": (
        a_pod("Running", **a_state(terminated={"exitCode": 137, "reason": "OOMKilled"})),
        [("OOMKilled", "Error pod j-worker-0 container main exitCode: 137 terminated message: ")],
    ),
    "a container that keeps failing": (
        a_pod("Running", **a_state(waiting={"reason": "CrashLoopBackOff", "message": "back-off 10s"})),
        [("CrashLoopBackOff", "Error pod j-worker-0 container main waiting message: back-off 10s")],
    ),
    "an environment that is being built": (
        a_pod(**a_state(waiting={"reason": "ContainerCreating", "message": "downloading torch"})),
        [],
    ),
    "no place to run": (
        a_pod(conditions=[UNSCHEDULABLE]),
        [("Unschedulable", "Error pod j-worker-0 condition message: no room")],
    ),
    "a pod that runs": (a_pod("Running", **a_state(running={})), []),
    "a pod that has ended": (a_pod("Failed", **a_state(terminated={"exitCode": 1})), []),
    "a new pod": (a_pod(), []),
}


@pytest.mark.parametrize(("pod", "told"), CASES.values(), ids=CASES.keys())
def test_trouble_is_told_in_known_words(pod: dict[str, Any], told: list[tuple[str, str]]) -> None:
    assert troubles(pod) == told
