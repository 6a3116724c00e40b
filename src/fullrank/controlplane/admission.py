"""At the door: what an object lacks is filled in, what nobody knows is dropped, and all that is wrong is told at once.

Core kinds are judged by Kubernetes' own types and rules; every other kind brings its schema and its complaints along.
Names, labels and the rest of metadata are the registry's to judge, before anything comes here.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from fullrank.api import pod_rules
from fullrank.api.meta import Json, name_of
from fullrank.api.names import data_key, label_complaints
from fullrank.api.schema import (
    Schema,
    Unknown,
    complaints,
    core_schema,
    pruned,
    unknown_fields,
    with_defaults,
)
from fullrank.api.scheme import (
    CLAIM,
    CONFIG_MAP,
    CORE_KINDS,
    POD,
    PRIORITY_CLASS,
    REGARDING_EVENT,
    SECRET,
    SERVICE,
    Kind,
)
from fullrank.controlplane.defaults import DEFAULTS
from fullrank.errors import Cause, Invalid

SCHEMAS = {REGARDING_EVENT: "events.Event"}  # where the kind's name is not the type's


class Admitted(Protocol):
    """A kind that is not Kubernetes' own: what its objects look like, and what else must hold for them."""

    @property
    def kind(self) -> Kind: ...

    @property
    def schema(self) -> Schema: ...

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:
        """Beyond the schema, which has nothing to complain of when this is asked."""

    def warnings(self, obj: Json) -> list[str]:
        """What the author of an object that is fine ought to know."""


class Admission:
    def __init__(self, others: Iterable[Admitted] = ()) -> None:
        self._others = {other.kind: other for other in others}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        return (*CORE_KINDS, *self._others)

    def schema_of(self, kind: Kind) -> Schema:
        other = self._others.get(kind)
        return other.schema if other else core_schema(SCHEMAS.get(kind, kind.kind))

    def warnings(self, kind: Kind, obj: Json) -> list[str]:
        other = self._others.get(kind)
        return other.warnings(obj) if other else []

    def unknown(self, kind: Kind, obj: Json) -> list[Unknown]:
        """Fields that will be dropped; whether that is an error is the caller's wish (`fieldValidation`)."""
        return unknown_fields(obj, self.schema_of(kind))

    def with_checked_status(self, kind: Kind, obj: Json) -> Json:
        """A status from outside must at least have the shape that tables, controllers and the agent read."""
        schema = self.schema_of(kind)
        causes = _status_complaints(obj, schema, required=kind.is_custom)
        if causes:
            raise Invalid(f'{kind.group_kind} "{name_of(obj)}"', causes)
        known = schema.properties.get("status")
        return {**obj, "status": pruned(obj["status"], known)} if known and obj.get("status") else obj

    def __call__(self, kind: Kind, obj: Json, old: Json | None) -> Json:
        """The object as it will be stored. Invalid, with every complaint, if it may not be."""
        schema = self.schema_of(kind)
        new: Json = with_defaults(pruned(obj, schema), schema)
        causes = _schema_complaints(new, schema, complete=kind.is_custom)
        if not any(cause.reason == "FieldValueTypeInvalid" for cause in causes):
            new = DEFAULTS[kind](new) if kind in DEFAULTS and not causes else new
            # What was let in once is not judged again by rules that may have changed since.
            if old is None or _content(old) != _content(new):
                causes = list(dict.fromkeys(causes + self._rules(kind, new, old, flawed=bool(causes))))
        if causes:
            raise Invalid(f'{kind.group_kind} "{name_of(new)}"', causes)
        return new

    def _rules(self, kind: Kind, new: Json, old: Json | None, *, flawed: bool) -> list[Cause]:
        other = self._others.get(kind)
        if other is not None:
            return [] if flawed else other.complaints(new, old)
        rule = CORE_RULES.get(kind)
        return rule(new, None if flawed else old) if rule else []


def _content(obj: Json) -> Json:
    return {field: value for field, value in obj.items() if field not in ("metadata", "status")}


def _schema_complaints(obj: Json, schema: Schema, *, complete: bool) -> list[Cause]:
    rest = {name: value for name, value in obj.items() if name != "status"}
    return complaints(rest, schema) + _status_complaints(obj, schema, required=complete)


def _status_complaints(obj: Json, schema: Schema, *, required: bool) -> list[Cause]:
    """That of Kubernetes' own kinds need not be complete, as in a cluster: its writers fill it bit by bit."""
    status, known = obj.get("status"), schema.properties.get("status")
    return complaints(status, known, "status", required=required) if status is not None and known else []


def _pod(new: Json, old: Json | None) -> list[Cause]:
    found = pod_rules.pod_spec_complaints(new.get("spec") or {}, "spec")
    return found + (pod_rules.frozen_spec_complaints(new.get("spec") or {}, old["spec"]) if old else [])


def _service(new: Json, _old: Json | None) -> list[Cause]:
    spec = new.get("spec") or {}
    ports = spec.get("ports") or []
    found = label_complaints(spec.get("selector") or {}, "spec.selector")
    if not ports and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        found.append(Cause("spec.ports", "Required value", "FieldValueRequired"))
    for index, port in enumerate(ports):
        if len(ports) > 1 and not port.get("name"):
            found.append(Cause(f"spec.ports[{index}].name", "Required value", "FieldValueRequired"))
        number = port.get("port", 0)
        if not 1 <= number <= 65535:
            problem = f"Invalid value: {number}: must be between 1 and 65535, inclusive"
            found.append(Cause(f"spec.ports[{index}].port", problem))
        target = port.get("targetPort", number)
        if isinstance(target, int) and not 1 <= target <= 65535:
            problem = f"Invalid value: {target}: must be between 1 and 65535, inclusive"
            found.append(Cause(f"spec.ports[{index}].targetPort", problem))
    return found


def _claim(new: Json, _old: Json | None) -> list[Cause]:
    spec, found = new.get("spec") or {}, []
    if not spec.get("accessModes"):
        problem = "Required value: at least 1 access mode is required"
        found.append(Cause("spec.accessModes", problem, "FieldValueRequired"))
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        found.append(Cause("spec.resources[storage]", "Required value", "FieldValueRequired"))
    return found


def _keyed(new: Json, old: Json | None) -> list[Cause]:
    """ConfigMaps and Secrets: their keys become files; what is immutable stays as it is."""
    keys = [(field, key) for field in ("data", "binaryData") for key in new.get(field) or {}]
    found = [
        Cause(f"{field}[{key}]", f'Invalid value: "{key}": {problem}')
        for field, key in keys
        for problem in data_key(key)
    ]
    frozen = bool(old and old.get("immutable"))
    changed = [
        field for field in ("data", "binaryData", "immutable") if old and old.get(field) != new.get(field)
    ]
    if frozen and changed:
        problem = "Forbidden: field is immutable when `immutable` is set"
        found += [Cause(field, problem, "FieldValueForbidden") for field in changed]
    return found


def _secret(new: Json, old: Json | None) -> list[Cause]:
    found = _keyed(new, old)
    for key, value in (new.get("data") or {}).items():
        try:
            b64decode(value, validate=True)
        except ValueError:
            problem = "Invalid value: not base64: put plain text into stringData instead"
            found.append(Cause(f"data[{key}]", problem))
    if old and old.get("type") != new.get("type"):
        found.append(Cause("type", f'Invalid value: "{new.get("type")}": field is immutable'))
    return found


def _priority_class(new: Json, old: Json | None) -> list[Cause]:
    frozen = [
        field
        for field in ("value", "preemptionPolicy")
        if old is not None and old.get(field) != new.get(field)
    ]
    problem = "Forbidden: may not be changed in an update."
    return [Cause(field, problem, "FieldValueForbidden") for field in frozen]


CORE_RULES: Mapping[Kind, Callable[[Json, Json | None], list[Cause]]] = {
    POD: _pod,
    SERVICE: _service,
    CLAIM: _claim,
    CONFIG_MAP: _keyed,
    SECRET: _secret,
    PRIORITY_CLASS: _priority_class,
}
