from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fullrank.api.ages import human_duration
from fullrank.api.meta import Json, stamp
from fullrank.api.scheme import CLAIM, CONFIG_MAP, EVENT, NODE, POD, SERVICE, Column, Kind
from fullrank.controlplane.jsonpath import found_at
from fullrank.controlplane.tables import table

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CREATED = stamp(NOW - timedelta(minutes=18))

AGES = {
    -5: "<invalid>", -0.5: "0s", 0: "0s", 119: "119s", 120: "2m", 200: "3m20s", 600: "10m", 10799: "179m",
    10800: "3h", 18720: "5h12m", 28800: "8h", 172799: "47h", 172800: "2d", 180000: "2d2h", 691200: "8d",
    63072000: "2y", 63158400: "2y1d", 252288000: "8y",
}  # fmt: skip


@pytest.mark.parametrize(("seconds", "expected"), AGES.items())
def test_ages_are_as_short_as_kubectl_prints_them(seconds: float, expected: str) -> None:
    assert human_duration(seconds) == expected


def pod(**status: Any) -> Json:
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}, {"name": "j"}]}
    return {"metadata": {"name": "p", "creationTimestamp": CREATED}, "spec": spec, "status": status}


def container(state: Json, *, ready: bool = False, restarts: int = 0, last: Json | None = None) -> Json:
    return {"name": "a", "ready": ready, "restartCount": restarts, "state": state, "lastState": last or {}}


RUNNING = container({"running": {}}, ready=True)
DONE = container({"terminated": {"exitCode": 0, "reason": "Completed"}})
ENDED_LATELY = {"terminated": {"exitCode": 1, "finishedAt": stamp(NOW - timedelta(minutes=5))}}
TERMINATING = {"metadata": {"name": "p", "creationTimestamp": CREATED, "deletionTimestamp": CREATED}}

PODS: dict[str, tuple[Json, list[str]]] = {
    "waiting for a node": (pod(phase="Pending"), ["0/2", "Pending", "0"]),
    "running": (pod(phase="Running", containerStatuses=[RUNNING, RUNNING]), ["2/2", "Running", "0"]),
    "being made": (
        pod(phase="Pending", containerStatuses=[container({"waiting": {"reason": "ContainerCreating"}})]),
        ["0/2", "ContainerCreating", "0"],
    ),
    "the first init container is at work": (
        pod(phase="Pending", initContainerStatuses=[container({"running": {}})]),
        ["0/2", "Init:0/2", "0"],
    ),
    "the second init container failed": (
        pod(phase="Pending", initContainerStatuses=[DONE, container({"terminated": {"exitCode": 3}})]),
        ["0/2", "Init:ExitCode:3", "0"],
    ),
    "crashing again and again": (
        pod(
            phase="Running",
            containerStatuses=[
                container({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=3, last=ENDED_LATELY),
                RUNNING,
            ],
        ),
        ["1/2", "CrashLoopBackOff", "3 (5m ago)"],
    ),
    "done": (pod(phase="Succeeded", containerStatuses=[DONE, DONE]), ["0/2", "Completed", "0"]),
    "one done and one running": (
        pod(
            phase="Running",
            containerStatuses=[DONE, RUNNING],
            conditions=[{"type": "Ready", "status": "False"}],
        ),
        ["1/2", "NotReady", "0"],
    ),
    "killed by a signal": (
        pod(phase="Failed", containerStatuses=[container({"terminated": {"signal": 9, "exitCode": 137}})]),
        ["0/2", "Signal:9", "0"],
    ),
    "evicted": (pod(phase="Failed", reason="Evicted"), ["0/2", "Evicted", "0"]),
    "on its way out": (
        pod(phase="Running", containerStatuses=[RUNNING, RUNNING]) | TERMINATING,
        ["2/2", "Terminating", "0"],
    ),
}


@pytest.mark.parametrize(("obj", "expected"), PODS.values(), ids=PODS)
def test_a_pods_line_says_how_it_is_doing(obj: Json, expected: list[str]) -> None:
    (row,) = table(POD, [obj], NOW, metadata={})["rows"]
    assert row["cells"] == ["p", *expected, "18m", "<none>", "<none>", "<none>", "<none>"]


def cells(kind: Kind, obj: Json) -> list[Any]:
    metadata = {"name": "x", "creationTimestamp": CREATED} | obj.get("metadata", {})
    (row,) = table(kind, [obj | {"metadata": metadata}], NOW, metadata={})["rows"]
    found: list[Any] = row["cells"]
    return found


def test_a_node_is_ready_or_not_and_has_roles() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {"kubeletVersion": "v1"}}
    assert cells(NODE, {"status": ready})[:5] == ["x", "Ready", "<none>", "18m", "v1"]
    labels = {"labels": {"node-role.kubernetes.io/b": "", "node-role.kubernetes.io/a": ""}}
    cordoned = {"metadata": labels, "spec": {"unschedulable": True}}
    assert cells(NODE, cordoned)[:3] == ["x", "Unknown,SchedulingDisabled", "a,b"]


def test_a_service_shows_its_ports_and_selector() -> None:
    spec = {
        "clusterIP": "None",
        "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}],
        "selector": {"b": "2", "a": "1"},
    }
    assert cells(SERVICE, {"spec": spec}) == [
        "x",
        "ClusterIP",
        "None",
        "<none>",
        "80/TCP,53/UDP",
        "18m",
        "a=1,b=2",
    ]


def test_a_claim_shows_what_it_got() -> None:
    status = {
        "phase": "Bound",
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
    }
    assert cells(CLAIM, {"status": status})[:5] == ["x", "Bound", "", "1Gi", "RWO,RWX"]


def test_events_say_how_often_and_since_when() -> None:
    event = {
        "involvedObject": {"kind": "Pod", "name": "p"}, "type": "Warning", "reason": "BackOff", "message": "again\n",
        "count": 3, "firstTimestamp": CREATED, "lastTimestamp": stamp(NOW - timedelta(seconds=30)),
    }  # fmt: skip
    assert cells(EVENT, event)[:4] == ["30s", "Warning", "BackOff", "pod/p"]
    assert cells(EVENT, event)[6] == "again"


def test_config_maps_are_counted() -> None:
    assert cells(CONFIG_MAP, {"data": {"a": ""}, "binaryData": {"b": "", "c": ""}}) == ["x", 3, "18m"]


JOB = Kind(
    "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs",
    columns=(
        Column("State", ".status.conditions[-1:].type"),
        Column("Ranks", ".spec.ranks", type="integer", priority=1),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ),
)  # fmt: skip


def test_a_custom_kind_has_its_own_columns() -> None:
    job = {"status": {"conditions": [{"type": "Created"}, {"type": "Running"}]}, "spec": {"ranks": 4}}
    assert cells(JOB, job) == ["x", "Running", 4, "18m"]
    assert cells(JOB, {}) == ["x", None, None, "18m"]
    header = table(JOB, [], NOW, metadata={})["columnDefinitions"]
    assert [(column["name"], column["format"], column["priority"]) for column in header] == [
        ("Name", "name", 0), ("State", "", 0), ("Ranks", "", 1), ("Age", "", 0),
    ]  # fmt: skip


def test_a_custom_kind_without_columns_shows_its_age() -> None:
    assert cells(Kind("x.io", "v1", "Thing", "things"), {}) == ["x", "18m"]


def test_rows_carry_as_much_of_the_object_as_was_asked_for() -> None:
    obj = {"kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}

    def carried(include: str) -> Any:
        return table(CONFIG_MAP, [obj], NOW, metadata={}, include=include)["rows"][0]["object"]

    assert carried("Object") == obj
    assert carried("None") is None
    assert carried("Metadata")["kind"] == "PartialObjectMetadata"
    assert "data" not in carried("Metadata")


DOCUMENT = {"a": {"b": [{"n": "x", "v": 1}, {"n": "y", "v": 2}], "c.d": 3}}
PATHS: dict[str, list[Any]] = {
    ".a.b[0].v": [1],
    ".a.b[-1].v": [2],
    ".a.b[-1:].v": [2],
    ".a.b[*].v": [1, 2],
    '.a.b[?(@.n=="y")].v': [2],
    ".a.c\\.d": [3],
    ".a['c.d']": [3],
    ".a.b[7].v": [],
    ".z.b": [],
    ".a.b.v": [],
}


@pytest.mark.parametrize(("path", "expected"), PATHS.items())
def test_column_paths(path: str, expected: list[Any]) -> None:
    assert found_at(DOCUMENT, path) == expected


def test_a_path_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match="is not a column path"):
        found_at(DOCUMENT, ".a[")
