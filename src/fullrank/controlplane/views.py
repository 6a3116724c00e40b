"""One stored object in other words: events as the newer API tells them, and what can be scaled as a Scale. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fullrank.api.meta import Json
from fullrank.api.scheme import EVENT, REGARDING_EVENT, Kind
from fullrank.controlplane.jsonpath import found_at
from fullrank.controlplane.store import Record
from fullrank.errors import BadRequest, FullrankError

SCALE = Kind("autoscaling", "v1", "Scale", "scales")
NEWER_WORDS = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
OLDER_WORDS = {newer: older for older, newer in NEWER_WORDS.items()}


@dataclass(frozen=True, slots=True)
class View:
    """`kind` is in whose words clients read and write, `stored` in whose the object is kept."""

    kind: Kind
    stored: Kind
    shown: Callable[[Json], Json] = lambda obj: obj
    # What a patch is laid upon, where that is more than can be shown.
    patched: Callable[[Json], Json] = lambda obj: obj
    # What is kept once this was written over that (over nothing when it is created).
    written: Callable[[Json | None, Json], Json] = lambda _, new: new
    selected: Callable[[str], str] = lambda fields: fields

    @property
    def is_plain(self) -> bool:
        return self.kind is self.stored

    def record(self, record: Record) -> Record:
        if self.is_plain:
            return record
        shown = self.shown(record.obj)
        return Record(record.revision, msgspec.json.encode(shown), shown)


def view_of(kind: Kind, subresource: str) -> View:
    if kind == REGARDING_EVENT:
        return View(
            kind, EVENT, newer_event, newer_event, lambda _, new: older_event(new), selected=older_selector
        )
    if subresource == "scale":
        return View(
            SCALE,
            kind,
            lambda obj: scale_of(kind, obj),
            lambda obj: scale_of(kind, obj, absent=0),
            lambda old, new: scaled(kind, old or {}, new),
        )
    return View(kind, kind)


# --- events


def newer_event(event: Json) -> Json:
    renamed = {NEWER_WORDS.get(word, word): value for word, value in event.items() if value != ""}
    return renamed | {"apiVersion": REGARDING_EVENT.api_version}


def older_event(event: Json) -> Json:
    renamed = {OLDER_WORDS.get(word, word): value for word, value in event.items()}
    return renamed | {"apiVersion": EVENT.api_version}


def older_selector(fields: str) -> str:
    older = fields.replace("regarding.", "involvedObject.")
    return older.replace("reportingController", "reportingComponent")


# --- scales


class NoSuchField(FullrankError):
    """A 500, as Kubernetes has it: the object is stored and fine, but says nothing of its size."""


def scale_of(kind: Kind, obj: Json, absent: int | None = None) -> Json:
    """Its Scale; without a number in its spec (and none given to take instead) it has none."""
    where = kind.scale
    if where is None:
        raise NoSuchField(f"Internal error occurred: {kind.group_resource} cannot be scaled")
    replicas = _number(obj, where.replicas)
    replicas = absent if replicas is None else replicas
    if replicas is None:
        problem = f'the spec replicas field "{where.replicas}" does not exist'
        raise NoSuchField(f"Internal error occurred: {problem}")
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    status: Json = {"replicas": _number(obj, where.observed) or 0}
    if selector := next(iter(found_at(obj, where.selector)), ""):
        status["selector"] = selector
    return {
        "kind": SCALE.kind,
        "apiVersion": SCALE.api_version,
        "metadata": {field: obj["metadata"][field] for field in kept if field in obj["metadata"]},
        "spec": {"replicas": replicas},
        "status": status,
    }


def scaled(kind: Kind, obj: Json, scale: Json) -> Json:
    """The object with as many replicas as the Scale says (none where it says nothing, as a number in Go would be)."""
    where = kind.scale
    if where is None:
        return obj
    spec = scale.get("spec") or {}
    if not isinstance(spec, dict):
        raise BadRequest("a Scale's spec is an object: {replicas: …}")
    changed = _with(obj, where.replicas.strip(".").split("."), spec.get("replicas", 0))
    seen = scale["metadata"].get("resourceVersion") or obj["metadata"]["resourceVersion"]
    return {**changed, "metadata": {**obj["metadata"], "resourceVersion": seen}}


def _number(obj: Json, path: str) -> int | None:
    value = next(iter(found_at(obj, path)), None)
    return value if isinstance(value, int) else None


def _with(obj: Any, steps: list[str], value: object) -> Json:
    first, *rest = steps
    inner = obj.get(first) if isinstance(obj, dict) else None
    return {**(obj if isinstance(obj, dict) else {}), first: _with(inner, rest, value) if rest else value}
