"""What is decided about a web program: what runs, what its status says, and when it is stopped for want of use."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullrank.api.annotations import LAST_VISIT
from fullrank.api.meta import Json, name_of, stamp
from fullrank.api.scheme import DEPLOYMENT, POD, SERVICE
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.tensorboard import TENSORBOARDS
from fullrank.planning.apps import (
    Create,
    Delete,
    Replace,
    Sight,
    Use,
    decide,
    deployment_of,
    pod_of,
    secret_of,
    service_of,
    to_be_asked,
)
from tests.build import NOW
from tests.unit.test_app_kinds import a_board, a_notebook

BOARD, LAB = a_board("t9k://pvc/mnist/log"), a_notebook()
UP = [{"type": "Ready", "status": "True"}]


def a_sight(obj: Json = BOARD, *, pods: int = 1, phase: str = "Running", **more: Any) -> Sight:
    """The program with its service and a pod in that phase, which was started ten minutes ago."""
    kind = TENSORBOARDS if obj["kind"] == "TensorBoard" else NOTEBOOKS
    now = more.pop("now", NOW)
    bare = Sight(kind, obj, now, deploys=more.get("deploys", False))
    status = {"phase": phase, "startTime": stamp(NOW - timedelta(minutes=10)), "conditions": UP}
    made = [pod_of(bare) | {"status": status} for _ in range(pods)]
    for number, pod in enumerate(made):
        pod["metadata"]["uid"] = f"uid-of-pod-{number}"
    seen: Json = {"pods": tuple(made), "service": service_of(bare)}
    return Sight(kind, obj, now, **(seen | more))


def terminating(pod: Json) -> Json:
    return pod | {"metadata": pod["metadata"] | {"deletionTimestamp": stamp(NOW)}}


# -- what runs -----------------------------------------------------------------------------------------------------

STOPPED = a_board("t9k://pvc/mnist/log", suspend=True)
OTHER = a_board("t9k://pvc/mnist/other")
RUNNING = a_sight()
GOING = tuple(terminating(pod) for pod in RUNNING.pods)
AT_HOME: dict[str, tuple[Sight, list[str], str]] = {
    "a new one": (a_sight(pods=0, service=None), ["Create Service", "Create Pod"], "Pending"),
    "one whose pod was taken away": (a_sight(pods=0), ["Create Pod"], "Pending"),
    "one whose pod is still going": (replace(RUNNING, pods=GOING), [], "Pending"),
    "one that is being started": (a_sight(phase="Pending"), [], "Pending"),
    "one that runs": (RUNNING, [], "Running"),
    "one whose pod has ended": (a_sight(phase="Failed"), ["Delete Pod"], "Pending"),
    "one that is told something else": (replace(RUNNING, obj=OTHER), ["Delete Pod"], "Running"),
    "one that is to stop": (a_sight(STOPPED), ["Delete Pod"], "Paused"),
    "one that is stopping": (replace(RUNNING, obj=STOPPED, pods=GOING), [], "Paused"),
    "one that has stopped": (a_sight(STOPPED, pods=0), [], "Paused"),
    "one that was never to run": (a_sight(STOPPED, pods=0, service=None), ["Create Service"], "Paused"),
}


def in_words(sight: Sight) -> list[str]:
    return [f"{type(one).__name__} {one.kind.kind}" for one in decide(sight).actions]


@pytest.mark.parametrize("case", AT_HOME)
def test_at_home_a_program_runs_in_a_pod_of_its_own(case: str) -> None:
    sight, actions, phase = AT_HOME[case]
    assert in_words(sight) == actions
    assert decide(sight).status["phase"] == phase


ON_A_CLUSTER = replace(RUNNING, deploys=True, pulls=True)
DEPLOYED = deployment_of(ON_A_CLUSTER, 1)
CLUSTER: dict[str, tuple[Sight, list[str]]] = {
    "a new one": (replace(ON_A_CLUSTER, pods=(), service=None), ["Create Service", "Create Deployment"]),
    "one that runs": (replace(ON_A_CLUSTER, deployment=DEPLOYED), []),
    "one that is told something else": (
        replace(ON_A_CLUSTER, deployment=DEPLOYED, obj=OTHER),
        ["Replace Deployment"],
    ),
    "one that is to stop": (replace(ON_A_CLUSTER, deployment=DEPLOYED, obj=STOPPED), ["Replace Deployment"]),
    "one that was never to run": (replace(ON_A_CLUSTER, obj=STOPPED, pods=()), []),
}


@pytest.mark.parametrize("case", CLUSTER)
def test_on_a_cluster_a_program_runs_in_a_deployment(case: str) -> None:
    sight, actions = CLUSTER[case]
    assert in_words(sight) == actions


def test_a_deployment_is_stopped_by_its_replicas_and_changed_as_a_whole() -> None:
    found = DEPLOYED | {"metadata": DEPLOYED["metadata"] | {"resourceVersion": "7"}}
    (stop,) = decide(replace(ON_A_CLUSTER, deployment=found, obj=STOPPED)).actions
    assert stop == Replace(DEPLOYMENT, found | {"spec": found["spec"] | {"replicas": 0}})
    (change,) = decide(replace(ON_A_CLUSTER, deployment=found, obj=OTHER)).actions
    assert change.obj["metadata"]["resourceVersion"] == "7"
    assert "--logdir=/fileset-pvc-mnist/other" in str(change.obj["spec"])
    settled = replace(ON_A_CLUSTER, deployment=change.obj, obj=OTHER)
    assert decide(settled).actions == ()


def test_what_is_made_is_found_by_its_label_and_goes_with_its_object() -> None:
    label = {"fullrank.dev/app": "managed-tensorboard-board"}
    service, pod, deployment = service_of(RUNNING), pod_of(RUNNING), DEPLOYED
    assert service["spec"]["selector"] == label
    assert service["spec"]["ports"] == [{"name": "http", "port": 6006, "targetPort": "http"}]
    assert deployment["spec"]["template"]["metadata"]["labels"] == label
    for one in (service, pod, deployment, secret_of(RUNNING, "sesame")):
        assert name_of(one) == "managed-tensorboard-board"
        assert one["metadata"]["labels"] == label
        (owner,) = one["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("TensorBoard", "uid-of-board", True)


def test_images_that_nobody_named_can_be_had_in_either_home() -> None:
    def image(sight: Sight) -> str:
        found: str = deployment_of(sight, 1)["spec"]["template"]["spec"]["containers"][0]["image"]
        return found

    assert image(RUNNING) == "fullrank/tensorboard"
    assert image(ON_A_CLUSTER) == "tensorflow/tensorflow:2.14.0"


def test_the_status_leads_to_the_pod_that_answers() -> None:
    (pod,) = RUNNING.pods
    waiting = pod | {"metadata": pod["metadata"] | {"name": "newer", "creationTimestamp": stamp(NOW)}}
    waiting = waiting | {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}
    status = decide(replace(RUNNING, pods=(pod, waiting))).status
    assert status["pod"] == {
        "reference": {"name": "managed-tensorboard-board", "uid": "uid-of-pod-0"},
        "phase": "Running",
    }
    assert status["url"] == "/tensorboards/demo/board/"
    assert decide(replace(RUNNING, pods=(waiting,))).status["phase"] == "Pending"


def test_what_nobody_checked_is_refused_in_its_status() -> None:
    plan = decide(a_sight(a_board("mnist/log"), pods=0))
    assert (plan.actions, plan.status["phase"]) == ((), "Failed")
    (condition,) = plan.status["conditions"]
    assert condition["type"] == "Invalid"
    assert condition["message"].startswith("spec.trainingLogFilesets[0]: Invalid value")
    assert [one.reason for one in plan.announcements] == ["TensorBoardFailedValidation"]
    again = decide(a_sight(a_board("mnist/log") | {"status": plan.status}, pods=0, now=NOW + DAY))
    assert (again.status, again.announcements) == (plan.status, ())


# -- rest ----------------------------------------------------------------------------------------------------------

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
LONG_AGO = NOW - 3 * DAY


def idle(since: datetime) -> Json:
    times = {"lastTransitionTime": stamp(since), "lastProbeTime": stamp(since)}
    text = f"Nobody has used it since {stamp(LONG_AGO)}."
    return {"conditions": [{"type": "Idle", "status": "True", "message": text} | times]}


def resting(obj: Json, *, visited: datetime | None = None, before: Json | None = None, **more: Any) -> Sight:
    """A program that was started long ago."""
    notes = {"annotations": {LAST_VISIT: stamp(visited)}} if visited else {}
    sight = a_sight(obj | {"metadata": obj["metadata"] | notes, "status": before or {}}, **more)
    pods = tuple(pod | {"status": pod["status"] | {"startTime": stamp(LONG_AGO)}} for pod in sight.pods)
    return replace(sight, pods=pods)


OFF = NOW - DAY
REST: dict[str, tuple[Sight, str, bool, timedelta]] = {
    "just started": (a_sight(), "False", False, 50 * MINUTE),
    "visited a moment ago": (resting(BOARD, visited=NOW - 20 * MINUTE), "False", False, 40 * MINUTE),
    "not visited for an hour": (resting(BOARD, visited=NOW - HOUR), "True", False, DAY),
    "idle for some hours": (resting(BOARD, before=idle(NOW - 5 * HOUR)), "True", False, 19 * HOUR),
    "idle for a day": (resting(BOARD, before=idle(OFF)), "True", True, timedelta(0)),
    "visited again in the last moment": (
        resting(BOARD, visited=NOW, before=idle(OFF)), "False", False, HOUR,
    ),
    "a visit that is no time": (
        resting(BOARD | {"metadata": BOARD["metadata"] | {"annotations": {LAST_VISIT: "soon"}}}), "True", False, DAY,
    ),
    "a notebook that does not answer": (resting(LAB), "Unknown", False, 10 * MINUTE),
    "a notebook that does not answer is not stopped": (
        resting(LAB, before=idle(OFF)), "Unknown", False, 10 * MINUTE,
    ),
    "a notebook with a busy kernel": (
        resting(LAB, use=Use(LONG_AGO, busy=True), before=idle(OFF)), "False", False, 10 * MINUTE,
    ),
    "a notebook that somebody types in": (
        resting(LAB, use=Use(NOW - 20 * MINUTE)), "False", False, 40 * MINUTE,
    ),
    "a notebook that nobody has touched": (resting(LAB, use=Use(LONG_AGO)), "True", False, 10 * MINUTE),
    "a notebook that has been idle for a day": (
        resting(LAB, use=Use(LONG_AGO), before=idle(OFF)), "True", True, timedelta(0),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REST)
def test_a_program_that_nobody_uses_is_idle_and_then_stopped(case: str) -> None:
    sight, idle_, stops, wake = REST[case]
    plan = decide(sight)
    (condition,) = plan.status["conditions"]
    assert (condition["type"], condition["status"]) == ("Idle", idle_)
    assert (plan.switch_off, plan.wake_after) == (stops, wake)


def test_who_is_stopped_is_told_how_to_go_on() -> None:
    (news,) = decide(resting(LAB, use=Use(LONG_AGO), before=idle(OFF))).announcements
    assert news.message == (
        "Idle for 24 hours: stopped. To resume: "
        """kubectl -n demo patch notebook lab --type=merge -p '{"spec": {"runMode": "running"}}'"""
    )


def test_a_stopped_program_keeps_its_last_word_and_wakes_nobody() -> None:
    plan = decide(resting(STOPPED, before=idle(OFF), pods=0))
    assert plan.status["conditions"] == idle(OFF)["conditions"]
    assert (plan.switch_off, plan.wake_after, plan.announcements) == (False, None, ())


def test_only_a_notebook_that_may_be_idle_is_asked() -> None:
    assert to_be_asked(resting(LAB)) is not None
    assert to_be_asked(resting(LAB, visited=NOW - MINUTE)) is None
    assert to_be_asked(resting(LAB, phase="Pending")) is None
    assert to_be_asked(resting(a_notebook(runMode="stopped"))) is None
    assert to_be_asked(resting(BOARD)) is None


@given(
    obj=st.sampled_from((BOARD, STOPPED, LAB, a_notebook(runMode="stopped"), a_board("nonsense"))),
    pods=st.integers(0, 2),
    phase=st.sampled_from(("Pending", "Running", "Failed")),
    visited=st.none() | st.integers(-3000, 10).map(lambda minutes: NOW + minutes * MINUTE),
    use=st.none() | st.builds(Use, st.integers(-3000, 0).map(lambda m: NOW + m * MINUTE), st.booleans()),
    before=st.sampled_from(({}, idle(OFF), idle(NOW - HOUR))),
)
def test_what_was_decided_once_is_not_written_again(
    obj: Json, pods: int, phase: str, visited: datetime | None, use: Use | None, before: Json
) -> None:
    sight = resting(obj, visited=visited, before=before, pods=pods, phase=phase, use=use)
    first = decide(sight)
    second = decide(replace(sight, obj=sight.obj | {"status": first.status}, now=NOW))
    assert second.status == first.status
    assert [one for one in second.announcements if one.reason != "StoppedIdle"] == []
    assert {type(one) for one in first.actions} <= {Create, Delete}
    assert {one.kind for one in first.actions} <= {POD, SERVICE}
