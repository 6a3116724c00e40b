"""What Kubeflow's training operator v1.8.1 made of the tutorials' manifests on a cluster, and that we make the same."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from fullrank.api.meta import Json, owner_reference
from fullrank.api.schema import complaints
from fullrank.planning.desired import companions_for, pod_for, service_for
from fullrank.planning.rules import plan
from fullrank.planning.scene import scene_of
from tests.build import NOW, gang_of, kind_of, pods_of, services_of

FIXTURES = sorted((Path(__file__).parent / "fixtures").glob("*.yaml"))
PREFIX = "training.kubeflow.org/"


def compact(obj: Json) -> Json:
    """An object without what every cluster fills in by itself, and with lists told apart by name as maps."""
    labels = {name.removeprefix(PREFIX): value for name, value in (obj.get("labels") or {}).items()}
    match obj["kind"]:
        case "Pod":
            return {"labels": labels} | _pod(obj["spec"])
        case "Service":
            spec = obj["spec"]
            selector = {name.removeprefix(PREFIX): value for name, value in spec["selector"].items()}
            ports = {port["name"]: port["port"] for port in spec["ports"]}
            return {"labels": labels, "selector": selector, "ports": ports, "clusterIP": spec["clusterIP"]}
    rest = ("data", "rules", "roleRef", "subjects", "spec")
    return {"labels": labels} | {name: obj[name] for name in rest if name in obj}


def _pod(spec: Json) -> Json:
    return _said(
        {
            "restartPolicy": spec["restartPolicy"],
            "serviceAccountName": spec.get("serviceAccountName"),
            "volumes": {one["name"]: _volume(one) for one in spec.get("volumes") or ()},
            "containers": [_container(one) for one in spec["containers"]],
            "initContainers": [_container(one) for one in spec.get("initContainers") or ()],
        }
    )


def _volume(volume: Json) -> Json:
    return {name: _without(value, "defaultMode") for name, value in volume.items() if name != "name"}


def _container(container: Json) -> Json:
    return _said(
        {
            "name": container["name"],
            "image": container["image"],
            "command": container.get("command"),
            "args": container.get("args"),
            "env": [_variable(one) for one in container.get("env") or ()],
            "ports": {one["name"]: one["containerPort"] for one in container.get("ports") or ()},
            "mounts": {one["name"]: one["mountPath"] for one in container.get("volumeMounts") or ()},
            "limits": {name: str(one) for name, one in _limits(container).items()},
        }
    )


def _limits(container: Json) -> Json:
    limits: Json = (container.get("resources") or {}).get("limits") or {}
    return limits


def _variable(entry: Json) -> Any:
    if "valueFrom" in entry:
        return {entry["name"]: entry["valueFrom"]["fieldRef"]["fieldPath"]}
    value = entry.get("value", "")
    return {
        entry["name"]: yaml.safe_load(value)
        if entry["name"] == "MX_CONFIG" and isinstance(value, str)
        else value
    }


def _said(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value}


def _without(values: Json, name: str) -> Json:
    return {key: value for key, value in values.items() if key != name}


def _flat(obj: Json) -> Json:
    return {"labels": obj["metadata"].get("labels"), **_without(obj, "metadata")}


def _conditions(status: Json) -> list[str]:
    return [
        f"{one['type']}={one['status']} {one['reason']}: {one['message']}" for one in status["conditions"]
    ]


def _capture(path: Path) -> tuple[Json, Json]:
    capture: Json = yaml.safe_load(path.read_text(encoding="utf-8"))
    job = capture["manifest"]
    job["metadata"] = {"namespace": "default", "uid": "uid-of-job"} | job["metadata"]
    return job, capture


@pytest.fixture(params=FIXTURES, ids=lambda path: path.stem)
def captured(request: pytest.FixtureRequest) -> tuple[Json, Json]:
    return _capture(request.param)


def test_the_manifest_is_welcome(captured: tuple[Json, Json]) -> None:
    job, _ = captured
    assert complaints(job, kind_of(job).schema) == []
    assert kind_of(job).complaints(job) == []


def test_pods_services_and_companions_are_the_same(captured: tuple[Json, Json]) -> None:
    job, capture = captured
    kind, gang, owner = kind_of(job), gang_of(job), owner_reference(job)
    objects = [pod_for(kind, gang, one, owner) for one in gang.members]
    objects += [service_for(kind, gang, one, owner) for one in gang.served]
    objects += [one for _, one in companions_for(gang, gang.members, owner)]
    ours = {f"{one['kind']} {one['metadata']['name']}": compact(_flat(one)) for one in objects}
    assert ours == capture["objects"]
    assert {one["metadata"]["namespace"] for one in objects} == {job["metadata"]["namespace"]}
    assert all(one["metadata"]["ownerReferences"] == [owner] for one in objects)


def _status(job: Json, state: str) -> Json:
    """The job's status once all its pods are in this state."""
    gang = gang_of(job)
    states = {gang.name(one).removeprefix(f"{gang.job.name}-"): state for one in gang.members}
    scene = scene_of(kind_of(job), job, pods_of(job, states), services_of(job), NOW)
    return plan(scene).status(scene, job.get("status") or {})


def test_conditions_and_counts_are_the_same(captured: tuple[Json, Json]) -> None:
    job, capture = captured
    job["status"] = _status(job, "Running")
    assert _conditions(job["status"]) == capture["running"]["conditions"]
    assert job["status"]["replicaStatuses"] == capture["running"]["replicaStatuses"]
    ended = _status(job, "Succeeded")
    assert _conditions(ended) == capture["ended"]["conditions"]
    assert ended["completionTime"]


def test_there_are_captures() -> None:
    assert len(FIXTURES) == 6
