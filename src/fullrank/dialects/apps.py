"""tensorstack.dev/v1beta1: programs with a page of their own, each with the pod that it means."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha1
from json import dumps

from fullrank.api.apps import PORT_NAME, App
from fullrank.api.meta import Json, name_of, namespace_of
from fullrank.api.queues import QUEUE_LABEL
from fullrank.api.schema import Schema, array, obj, string, timestamp, whole_object
from fullrank.api.scheme import Kind
from fullrank.errors import Cause

POD_IP: Json = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}


def nothing_to_warn_of(_spec: Json, _path: str) -> list[str]:
    return []


@dataclass(frozen=True)
class AppKind:
    """One kind of web program: what users may say of it, and what that means."""

    app: App
    port: int
    spec: Schema
    image: str  # where its manifest names none: one of the built-in catalogue
    pulled_image: str  # likewise, where images are pulled
    switch: str  # the field of the spec that stops it, and what it then says
    off: bool | str
    on: bool | str
    template: Callable[
        ["AppKind", Json, str, int], Json
    ]  # an object's pod; image and port where it names none
    complaints_of: Callable[[Json, str], list[Cause]]
    warnings_of: Callable[[Json, str], list[str]] = nothing_to_warn_of
    fixed: tuple[str, ...] = ()  # fields of the spec that are said once and for all

    @property
    def kind(self) -> Kind:
        return self.app.kind

    @property
    def controller(self) -> str:
        """The name under which this kind's controller signs events."""
        return f"{self.kind.singular}-controller"

    @cached_property
    def schema(self) -> Schema:
        about = self.spec.description
        return whole_object(self.spec, _status(), description=f"{self.kind.kind}: {about}", required=True)

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:
        spec, before = obj["spec"], (old or {}).get("spec") or {}
        changed = [name for name in self.fixed if old and spec.get(name) != before.get(name)]
        hint = f"make the {self.kind.kind} anew"
        frozen = [
            Cause(f"spec.{name}", "Forbidden: field is immutable", "FieldValueForbidden", hint)
            for name in changed
        ]
        return frozen + self.complaints_of(spec, "spec")

    def warnings(self, obj: Json) -> list[str]:
        return self.warnings_of(obj["spec"], "spec")

    def url(self, obj: Json) -> str:
        return self.app.url(namespace_of(obj), name_of(obj))

    def service(self, obj: Json) -> str:
        return self.app.service(name_of(obj))

    def is_stopped(self, obj: Json) -> bool:
        return bool(obj["spec"].get(self.switch) == self.off)

    def switched(self, *, on: bool) -> Json:
        """A merge patch that starts or stops it."""
        return {"spec": {self.switch: self.on if on else self.off}}

    def resumption(self, obj: Json) -> str:
        """The command that brings a stopped one back."""
        where, what = f"-n {namespace_of(obj)}", f"{self.kind.singular} {name_of(obj)}"
        return f"kubectl {where} patch {what} --type=merge -p '{dumps(self.switched(on=True))}'"

    def mark(self, obj: Json) -> str:
        """What tells two specs apart that mean different pods."""
        spec = {name: value for name, value in obj["spec"].items() if name != self.switch}
        return sha1(dumps(spec, sort_keys=True).encode(), usedforsecurity=False).hexdigest()[:16]


def ready_at(path: str) -> Json:
    """By an answer at its own path: on one machine, somebody else's program may listen where this one should."""
    asked = {"path": path, "port": PORT_NAME}
    return {"httpGet": asked, "initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 5}


def queue_label(spec: Json) -> dict[str, str]:
    queue = ((spec.get("scheduler") or {}).get("t9kScheduler") or {}).get("queue")
    return {QUEUE_LABEL: queue} if queue else {}


def _status() -> Schema:
    pod = {"reference": obj({"name": string(), "uid": string()}), "phase": string()}
    condition = {name: string() for name in ("type", "status", "message")}
    times = {"lastTransitionTime": timestamp(), "lastProbeTime": timestamp()}
    return obj(
        {
            "phase": string(description="Pending, Running, Paused or Failed."),
            "url": string(description="Where the Job Center serves it."),
            "pod": obj(pod),
            "conditions": array(obj(condition | times, required=("type", "status")), key="type"),
        }
    )
