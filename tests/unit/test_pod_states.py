from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from fullrank.agent.pod_states import ContainerRecord, Decision, Delay, PodRecord, Start, back_off, decide
from fullrank.agent.pod_status import go_duration, pod_status, qos_class
from fullrank.agent.runtime import Attempt, Exit, Run
from fullrank.api.meta import Json

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
RUNNING = None


def runs(container: str, *codes: int | None, lasted: float = 5, ago: float = 0) -> tuple[Run, ...]:
    """Runs one after the other, the last of which ended `ago` seconds before now; None still runs."""
    end = NOW - timedelta(seconds=ago)
    found = []
    for number, code in enumerate(codes):
        finished = end - timedelta(seconds=lasted) * (len(codes) - 1 - number)
        started = finished - timedelta(seconds=lasted)
        ended = None if code is None else Exit(code, started, finished)
        found.append(Run(Attempt("uid-1", container, number), started, ended))
    return tuple(found)


def a_pod(
    policy: str = "Never", *, init: Sequence[str] = (), names: Sequence[str] = ("main",), **spec: object
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "demo", "namespace": "default", "uid": "uid-1"},
        "spec": {
            "restartPolicy": policy,
            "initContainers": [{"name": name, "image": "i"} for name in init],
            "containers": [{"name": name, "image": "i"} for name in names],
            **spec,
        },
    }


def a_record(**containers: tuple[Run, ...]) -> PodRecord:
    known = {name: ContainerRecord(found) for name, found in containers.items()}
    return PodRecord(NOW - timedelta(seconds=60), known, pod_ip="127.64.0.1", host_ip="127.0.0.1")


def deleted(pod: Json, grace: int = 30) -> Json:
    marks = {"deletionTimestamp": "2026-01-01T12:00:00Z", "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": {**pod["metadata"], **marks}}


def annotated(pod: Json, **annotations: str) -> Json:
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


@dataclass(frozen=True)
class Case:
    pod: Json
    record: PodRecord
    want: Decision
    phase: str
    states: dict[str, str] = field(default_factory=dict)  # container → state or its reason


STOP = {"fullrank.dev/stop": "the job has finished"}
OVER = Decision(is_over=True)

PROXY = {"name": "proxy", "image": "i", "restartPolicy": "Always"}
WITH_SIDECAR = a_pod(initContainers=[PROXY, {"name": "set", "image": "i"}])

CASES = {
    "a sidecar starts first": Case(WITH_SIDECAR, a_record(), Decision(start=(Start("proxy", 0),)), "Pending"),
    "what comes after a sidecar does not wait for its end": Case(
        WITH_SIDECAR,
        a_record(proxy=runs("proxy", RUNNING)),
        Decision(start=(Start("set", 0),)),
        "Pending",
    ),
    "a sidecar that fails is started again beside the others": Case(
        WITH_SIDECAR,
        a_record(proxy=runs("proxy", 1), set=runs("set", 0), main=runs("main", RUNNING)),
        Decision(start=(Start("proxy", 1),)),
        "Running",
    ),
    "a sidecar is stopped when all others have ended": Case(
        WITH_SIDECAR,
        a_record(proxy=runs("proxy", RUNNING), set=runs("set", 0), main=runs("main", 0)),
        Decision(stop=("proxy",)),
        "Running",
    ),
    "a sidecar's end does not matter to its pod": Case(
        WITH_SIDECAR,
        a_record(proxy=runs("proxy", 143), set=runs("set", 0), main=runs("main", 0)),
        OVER,
        "Succeeded",
    ),
    "a deleted pod stops its sidecar last": Case(
        deleted(WITH_SIDECAR),
        a_record(proxy=runs("proxy", RUNNING), set=runs("set", 0), main=runs("main", RUNNING)),
        Decision(stop=("main",)),
        "Running",
    ),
    "a new pod's containers start together": Case(
        a_pod(names=("a", "b")),
        a_record(),
        Decision(start=(Start("a", 0), Start("b", 0))),
        "Pending",
        {"a": "ContainerCreating"},
    ),
    "init containers start one by one, and nobody before them": Case(
        a_pod(init=("one", "two")),
        a_record(),
        Decision(start=(Start("one", 0),)),
        "Pending",
        {"one": "PodInitializing", "main": "PodInitializing"},
    ),
    "the next init container waits for the one before": Case(
        a_pod(init=("one", "two")),
        a_record(one=runs("one", RUNNING)),
        Decision(),
        "Pending",
        {"one": "running"},
    ),
    "after the last init container the others start": Case(
        a_pod(init=("one",)),
        a_record(one=runs("one", 0)),
        Decision(start=(Start("main", 0),)),
        "Pending",
        {"one": "Completed", "main": "PodInitializing"},
    ),
    "a failed init container fails a pod that never restarts": Case(
        a_pod(init=("one",)),
        a_record(one=runs("one", 1)),
        OVER,
        "Failed",
        {"one": "Error", "main": "PodInitializing"},
    ),
    "a failed init container is tried again at once, the first time": Case(
        a_pod("OnFailure", init=("one",)),
        a_record(one=runs("one", 1)),
        Decision(start=(Start("one", 1),)),
        "Pending",
        {"one": "Error"},
    ),
    "one of two still runs": Case(
        a_pod(names=("a", "b")),
        a_record(a=runs("a", 0), b=runs("b", RUNNING)),
        Decision(),
        "Running",
        {"a": "Completed", "b": "running"},
    ),
    "all have succeeded": Case(
        a_pod(), a_record(main=runs("main", 0)), OVER, "Succeeded", {"main": "Completed"}
    ),
    "one of two has failed": Case(
        a_pod(names=("a", "b")), a_record(a=runs("a", 0), b=runs("b", 2)), OVER, "Failed", {"b": "Error"}
    ),
    "the first restart comes at once": Case(
        a_pod("OnFailure"), a_record(main=runs("main", 1)), Decision(start=(Start("main", 1),)), "Running"
    ),
    "the second restart waits for ten seconds": Case(
        a_pod("OnFailure"),
        a_record(main=runs("main", 1, 1)),
        Decision(wake_at=NOW + timedelta(seconds=10)),
        "Running",
        {"main": "CrashLoopBackOff"},
    ),
    "after ten seconds it comes": Case(
        a_pod("OnFailure"),
        a_record(main=runs("main", 1, 1, ago=10)),
        Decision(start=(Start("main", 2),)),
        "Running",
    ),
    "success is not restarted on failure": Case(
        a_pod("OnFailure"), a_record(main=runs("main", 1, 0)), OVER, "Succeeded", {"main": "Completed"}
    ),
    "success is restarted always": Case(
        a_pod("Always"), a_record(main=runs("main", 0)), Decision(start=(Start("main", 1),)), "Running"
    ),
    "a deleted pod is stopped within its grace": Case(
        deleted(a_pod(), 5),
        a_record(main=runs("main", RUNNING)),
        Decision(stop=("main",), grace=5),
        "Running",
    ),
    "a deleted pod that has stopped is over, whatever its policy": Case(
        deleted(a_pod("Always")), a_record(main=runs("main", 143)), OVER, "Failed", {"main": "Error"}
    ),
    "a deleted pod that never ran is over": Case(deleted(a_pod()), a_record(), OVER, "Failed"),
    "a pod told to stop is stopped": Case(
        annotated(a_pod("Always"), **STOP),
        a_record(main=runs("main", RUNNING)),
        Decision(stop=("main",)),
        "Running",
    ),
    "a pod that was stopped is over": Case(
        annotated(a_pod("Always"), **STOP),
        a_record(main=runs("main", 143)),
        OVER,
        "Failed",
        {"main": "Error"},
    ),
    "a pod past its deadline is stopped": Case(
        a_pod(activeDeadlineSeconds=60),
        a_record(main=runs("main", RUNNING)),
        Decision(stop=("main",)),
        "Running",
    ),
    "a pod before its deadline is looked at again then": Case(
        a_pod(activeDeadlineSeconds=90),
        a_record(main=runs("main", RUNNING)),
        Decision(wake_at=NOW + timedelta(seconds=30)),
        "Running",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_comes_next(case: str) -> None:
    pod, record = CASES[case].pod, CASES[case].record
    decision = decide(pod, record, NOW)
    assert (decision.start, decision.stop, decision.wake_at, decision.is_over) == (
        CASES[case].want.start,
        CASES[case].want.stop,
        CASES[case].want.wake_at,
        CASES[case].want.is_over,
    )
    if decision.stop:
        assert decision.grace == CASES[case].want.grace
    status = pod_status(pod, record, NOW)
    assert status["phase"] == CASES[case].phase
    for name, word in CASES[case].states.items():
        (shown,) = _status_of(status, name)["state"].items()
        assert word in (shown[0], shown[1].get("reason"))


def _status_of(status: Json, name: str) -> Json:
    listed = [*status.get("initContainerStatuses", []), *status["containerStatuses"]]
    found: Json = next(one for one in listed if one["name"] == name)
    return found


BACK_OFFS = {0: 0, 1: 0, 2: 10, 3: 20, 4: 40, 5: 80, 6: 160, 7: 300, 20: 300}


@pytest.mark.parametrize("count", BACK_OFFS)
def test_back_off_doubles_up_to_five_minutes(count: int) -> None:
    assert back_off(runs("main", *[1] * count)).total_seconds() == BACK_OFFS[count]


def test_ten_good_minutes_are_forgiven() -> None:
    assert back_off(runs("main", 1, 1, 1, lasted=601)) == timedelta(0)


def test_durations_read_as_go_writes_them() -> None:
    shown = [go_duration(timedelta(seconds=seconds)) for seconds in (10, 80, 300)]
    assert shown == ["10s", "1m20s", "5m0s"]


def test_a_phase_at_its_end_never_changes() -> None:
    pod = {**a_pod("Always"), "status": {"phase": "Failed"}}
    record = a_record(main=runs("main", RUNNING))
    assert pod_status(pod, record, NOW)["phase"] == "Failed"
    assert decide(pod, record, NOW).stop == ("main",)


def test_a_delay_is_shown_and_kept() -> None:
    until = NOW + timedelta(seconds=10)
    waiting = ContainerRecord(delay=Delay("ImagePullBackOff", "no such image", until))
    record = a_record().having("main", waiting)
    assert decide(a_pod(), record, NOW) == Decision(wake_at=until)
    state = pod_status(a_pod(), record, NOW)["containerStatuses"][0]["state"]
    assert state == {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}


def test_conditions_tell_who_is_not_ready_and_keep_their_times() -> None:
    pod = a_pod(names=("a", "b"))
    first = pod_status(pod, a_record(a=runs("a", RUNNING)), NOW)
    shown = {one["type"]: one for one in first["conditions"]}
    assert list(shown) == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    ]
    assert shown["Ready"]["reason"] == "ContainersNotReady"
    assert shown["Ready"]["message"] == "containers with unready status: [b]"
    later = NOW + timedelta(minutes=1)
    both = a_record(a=runs("a", RUNNING), b=runs("b", RUNNING))
    second = pod_status({**pod, "status": first}, both, later)
    times = {one["type"]: one["lastTransitionTime"] for one in second["conditions"]}
    assert times["Ready"] == "2026-01-01T12:01:00Z"
    assert times["Initialized"] == "2026-01-01T12:00:00Z"


def test_why_a_pod_was_ended_is_told() -> None:
    ended = a_record(main=runs("main", 143))
    assert pod_status(annotated(a_pod(), **STOP), ended, NOW)["message"] == "the job has finished"
    assert pod_status(a_pod(activeDeadlineSeconds=60), ended, NOW)["reason"] == "DeadlineExceeded"


def test_a_status_written_once_is_the_same_when_computed_again() -> None:
    record = a_record(main=runs("main", 1, RUNNING))
    pod = a_pod("OnFailure")
    status = pod_status(pod, record, NOW)
    assert pod_status({**pod, "status": status}, record, NOW + timedelta(seconds=9)) == status


def sized(**resources: dict[str, str]) -> Json:
    return {"spec": {"containers": [{"name": "main", "resources": resources}]}}


QOS = {
    "BestEffort": sized(),
    "Burstable": sized(requests={"cpu": "1"}),
    "Guaranteed": sized(limits={"cpu": "1", "memory": "1Gi"}),
}


@pytest.mark.parametrize("word", QOS)
def test_quality_of_service_follows_from_requests_and_limits(word: str) -> None:
    assert qos_class(QOS[word]) == word
