"""What becomes of an object when it is born, written to and asked to leave: Kubernetes' rules, as pure functions."""

from datetime import datetime, timedelta

from fullrank.api.meta import Json, is_terminating, moment_of, name_of, stamp
from fullrank.api.patches import json_patch, merge_patch, strategic_merge_patch
from fullrank.api.schema import core_schema
from fullrank.api.scheme import NAMESPACE, POD, Kind
from fullrank.client.port import PatchType, Propagation
from fullrank.errors import BadRequest, NotAllowed, NotFound, Unsupported

DEFAULT_GRACE = 30
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"
DELETION_FINALIZER: dict[Propagation, list[str]] = {
    "Background": [],
    "Foreground": [FOREGROUND],
    "Orphan": [ORPHAN],
}

BORN_WITH: dict[str, Json] = {
    "Pod": {"phase": "Pending"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Namespace": {"phase": "Active"},
    "Service": {"loadBalancer": {}},
}
COUNTED = frozenset(("Pod", "PodTemplate", "PriorityClass.scheduling.k8s.io"))


def with_metadata(obj: Json, **fields: object) -> Json:
    return {**obj, "metadata": {**obj["metadata"], **fields}}


def with_namespace_marks(namespace: Json) -> Json:
    labels = {**namespace["metadata"].get("labels", {}), "kubernetes.io/metadata.name": name_of(namespace)}
    marked = with_metadata(namespace, labels=labels)
    return {**marked, "spec": {"finalizers": ["kubernetes"]}}


def patched(kind: Kind, old: Json, patch: Json | list[Json], form: PatchType) -> Json:
    if form == "json":
        if not isinstance(patch, list) or not all(isinstance(each, dict) for each in patch):
            raise BadRequest("a JSON patch is a list of operations")
        return json_patch(old, patch)
    if not isinstance(patch, dict):
        raise BadRequest("a merge patch is an object")
    if form == "merge":
        merged: Json = merge_patch(old, patch)
        return merged
    if kind.is_custom:
        raise Unsupported(
            f"{kind.group_resource} take no strategic merge patch; send application/merge-patch+json"
        )
    return strategic_merge_patch(old, patch, core_schema(kind.kind))


def merged(kind: Kind, new: Json, old: Json, subresource: str) -> Json:
    """The caller's object, except for what this door does not let him write."""
    finalizing = kind == NAMESPACE and subresource == "finalize"
    if subresource and subresource not in kind.subresources and not finalizing:
        raise NotFound("the server could not find the requested resource")
    match subresource:
        case "":
            asked = _with_part(new, "spec", old) if kind == NAMESPACE else new
            return _with_part(asked, "status", old) if "status" in kind.subresources else asked
        case "status":
            if not isinstance(new.get("status"), dict | None):
                raise BadRequest(f'{kind.kind} "{name_of(new)}": status must be an object')
            metadata = old["metadata"] if kind.is_custom else new["metadata"]
            return _with_part({**old, "metadata": metadata}, "status", new)
        case "finalize":
            return _with_part(old, "spec", new)
        case "binding":
            return new
    raise NotAllowed(f"{kind.group_resource}/{subresource} cannot be written")


def _with_part(obj: Json, part: str, source: Json) -> Json:
    rest = {field: value for field, value in obj.items() if field != part}
    return rest if source.get(part) is None else {**rest, part: source[part]}


def _grace_of(pod: Json, asked: int | None) -> int:
    """A pod that runs nowhere or has finished needs no time to stop."""
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    asked = spec.get("terminationGracePeriodSeconds") if asked is None else asked
    if asked is None:
        return DEFAULT_GRACE
    return 1 if asked < 0 else asked  # as Kubernetes reads a negative one


def is_over(obj: Json) -> bool:
    """Whether an object that is leaving is held by nothing any more."""
    metadata = obj["metadata"]
    held_as_namespace = obj["kind"] == NAMESPACE.kind and obj.get("spec", {}).get("finalizers")
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds") or held_as_namespace
    return is_terminating(obj) and not held


def leaving(kind: Kind, obj: Json, grace: int | None, propagation: Propagation, now: datetime) -> Json:
    """The object on its way out: when it must be gone, and who has to agree first."""
    metadata = obj["metadata"]
    kept = [each for each in metadata.get("finalizers", []) if each not in (FOREGROUND, ORPHAN)]
    held_by = kept + DELETION_FINALIZER[propagation]
    leaving = {field: value for field, value in metadata.items() if field != "finalizers"}
    leaving |= {"finalizers": held_by} if held_by else {}
    seconds = _grace_of(obj, grace) if kind == POD else 0
    if not is_terminating(obj):
        leaving["deletionTimestamp"] = stamp(now + timedelta(seconds=seconds))
        if kind != NAMESPACE:
            leaving["deletionGracePeriodSeconds"] = seconds
        if "generation" in metadata:
            leaving["generation"] = metadata["generation"] + 1
    elif seconds < metadata.get("deletionGracePeriodSeconds", 0):
        before = timedelta(seconds=metadata["deletionGracePeriodSeconds"] - seconds)
        sooner = moment_of(metadata["deletionTimestamp"]) - before
        leaving["deletionTimestamp"] = stamp(max(sooner, now))
        leaving["deletionGracePeriodSeconds"] = seconds
    last = {**obj, "metadata": leaving}
    if kind == NAMESPACE:
        last["status"] = {**obj.get("status", {}), "phase": "Terminating"}
    return last
