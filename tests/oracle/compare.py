"""What can be seen of a job on a cluster, without what differs from run to run; and what differs between two views."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fullrank.api.meta import Json, annotations_of, name_of

ABSENT = "—"
PASSING = (  # of metadata: what a server writes, and what we tell pretended pods
    "uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "deletionTimestamp",
    "deletionGracePeriodSeconds", "namespace", "selfLink",
)  # fmt: skip
SERVER = ("nodeName", "clusterIP", "clusterIPs")  # of a spec: likewise


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that the two operators do not do alike."""

    case: str
    kind: str
    step: str
    path: str
    theirs: Any
    ours: Any
    crowded: bool = False  # v1 had more to tell of the job than it keeps

    def __str__(self) -> str:
        return f"{self.case} / {self.step}: {self.path}\n    v1.8.1: {self.theirs}\n    ours:   {self.ours}"


def view(job: Json | None, owned: Iterable[Json], events: Iterable[Json], namespace: str) -> Json:
    """A job, everything it owns and what was told of it, with the namespace's name taken out."""
    seen = {
        "job": "there" if job else "gone",
        "status": _status((job or {}).get("status") or {}),
        "objects": {f"{one['kind']} {name_of(one)}": _object(one) for one in owned},
        "events": {f"{one['type']} {one['reason']}: {one['message']}": "told" for one in events},
    }
    found: Json = _without(seen, namespace)
    return found


def _without(value: Any, namespace: str) -> Any:
    if isinstance(value, str):
        return value.replace(namespace, "NAMESPACE")
    if isinstance(value, dict):
        return {_without(name, namespace): _without(inner, namespace) for name, inner in value.items()}
    if isinstance(value, list):
        return [_without(inner, namespace) for inner in value]
    return value


def _status(status: Json) -> Json:
    conditions = [
        f"{one['type']}={one['status']} {one.get('reason')}: {one.get('message')}"
        for one in status.get("conditions") or ()
    ]
    times = {name: "set" for name in status if name.endswith("Time")}
    return {**status, **times, "conditions": conditions}


def _object(obj: Json) -> Json:
    metadata: Json = {name: value for name, value in obj["metadata"].items() if name not in PASSING}
    metadata["ownerReferences"] = [
        {name: value for name, value in one.items() if name != "uid"}
        for one in obj["metadata"].get("ownerReferences") or ()
    ]
    kept = {name: value for name, value in annotations_of(obj).items() if not name.startswith("pretend/")}
    metadata["annotations"] = kept
    spec = {name: value for name, value in (obj.get("spec") or {}).items() if name not in SERVER}
    if obj["kind"] == "Service" and "ports" in spec:
        spec["ports"] = sorted(spec["ports"], key=lambda port: str(port.get("name")))
    rest = {
        name: value
        for name, value in obj.items()
        if name not in ("metadata", "spec", "status", "apiVersion", "kind")
    }
    phase = {"phase": obj["status"].get("phase")} if obj["kind"] == "Pod" else {}
    return {"metadata": metadata, "spec": spec, **rest, **phase}


def differences(theirs: Json, ours: Json) -> Iterator[tuple[str, Any, Any]]:
    """Each place where they differ; an object that only one has is one difference."""
    left, right = dict(_leaves(theirs, "")), dict(_leaves(ours, ""))
    alone = tuple(f"objects.{name}." for name in theirs["objects"].keys() ^ ours["objects"].keys())
    for path in dict.fromkeys((*left, *right)):
        if left.get(path, ABSENT) != right.get(path, ABSENT) and not path.startswith(alone):
            yield path, left.get(path, ABSENT), right.get(path, ABSENT)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Paths and what is there. Variables, whose order counts, stay in one piece."""
    if isinstance(value, Mapping):
        if path.startswith("objects.") and path.count(".") == 1:
            yield path, "there"
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and path.endswith(".env"):
        yield path, [f"{one['name']}={one.get('value', one.get('valueFrom', ''))}" for one in value]
    elif isinstance(value, list) and value and all(isinstance(one, dict) and "name" in one for one in value):
        yield f"{path}.order", [one["name"] for one in value]
        for one in value:
            yield from _leaves({k: v for k, v in one.items() if k != "name"}, f"{path}[{one['name']}]")
    else:
        yield path, value
