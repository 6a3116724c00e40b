"""What `kubectl get` prints: a header and cells for every kind, in the words a cluster uses.

Ages are rendered here, not by the client, just as a cluster does it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from fullrank.api.ages import age_of
from fullrank.api.meta import Json, labels_of, name_of
from fullrank.api.scheme import (
    CLAIM,
    CONFIG_MAP,
    EVENT,
    LEASE,
    NAMESPACE,
    NODE,
    POD,
    POD_TEMPLATE,
    PRIORITY_CLASS,
    REGARDING_EVENT,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    Column,
    Kind,
)
from fullrank.controlplane.jsonpath import found_at
from fullrank.controlplane.pod_rows import pod_cells
from fullrank.controlplane.views import SCALE, older_event

Cells: TypeAlias = list[Any]
NONE = "<none>"
NAME = Column("Name", ".metadata.name")
AGE = Column("Age", ".metadata.creationTimestamp", type="date")


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind, and who fills them."""

    columns: tuple[Column, ...]
    cells: Callable[[Json, datetime], Cells]


def table(
    kind: Kind, objects: Iterable[Json], now: datetime, *, metadata: Json, include: str = "Metadata"
) -> Json:
    """A meta.k8s.io/v1 Table; each row carries its object (`include`: Object), its metadata, or nothing (None)."""
    layout = layout_of(kind)
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in layout.columns],
        "rows": [{"cells": layout.cells(obj, now), "object": _carried(obj, include)} for obj in objects],
    }


def without_header(table: Json) -> Json:
    """What a watch sends after its first event."""
    return table | {"columnDefinitions": []}


def partial(obj: Json) -> Json:
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}


def partial_list(objects: Iterable[Json], metadata: Json) -> Json:
    items = [partial(obj) for obj in objects]
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "items": items,
    }


def _carried(obj: Json, include: str) -> Json | None:
    if include == "Object":
        return obj
    return None if include == "None" else partial(obj)


def _definition(column: Column) -> Json:
    return {
        "name": column.name,
        "type": column.type,
        "format": "name" if column.path == NAME.path else "",
        "description": "",
        "priority": column.priority,
    }


def layout_of(kind: Kind) -> Layout:
    if kind in LAYOUTS:
        return LAYOUTS[kind]
    columns = (NAME, *(kind.columns or (AGE,)))
    return Layout(columns, lambda obj, now: [_cell(obj, column, now) for column in columns])


def _cell(obj: Json, column: Column, now: datetime) -> Any:
    found = found_at(obj, column.path)
    if not found or found[0] is None:
        return None
    value = found[0]
    match column.type:
        case "date":
            return age_of(value, now)
        case "integer":
            return int(value) if isinstance(value, int | float) else None
        case "string":
            return value if isinstance(value, str) else str(value)
    return value


def _age(obj: Json, now: datetime) -> str:
    return age_of(obj["metadata"].get("creationTimestamp"), now)


def _namespace(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), obj.get("status", {}).get("phase", ""), _age(obj, now)]


def _node(obj: Json, now: datetime) -> Cells:
    status = obj.get("status", {})
    details, addresses = status.get("nodeInfo", {}), status.get("addresses", [])
    prefix = "node-role.kubernetes.io/"
    roles = sorted(key.removeprefix(prefix) for key in labels_of(obj) if key.startswith(prefix))

    def address(word: str) -> str:
        return next((each.get("address", NONE) for each in addresses if each.get("type") == word), NONE)

    return [
        name_of(obj), _readiness(obj), ",".join(roles) or NONE, _age(obj, now), details.get("kubeletVersion", ""),
        address("InternalIP"), address("ExternalIP"), details.get("osImage") or "<unknown>",
        details.get("kernelVersion") or "<unknown>", details.get("containerRuntimeVersion") or "<unknown>",
    ]  # fmt: skip


def _readiness(node: Json) -> str:
    conditions = node.get("status", {}).get("conditions", [])
    ready = next((each for each in conditions if each.get("type") == "Ready"), None)
    word = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{word},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else word


def _service(obj: Json, now: datetime) -> Cells:
    spec = obj.get("spec", {})
    ports = ",".join(_port(port) for port in spec.get("ports") or [])
    selector = ",".join(f"{key}={value}" for key, value in sorted((spec.get("selector") or {}).items()))
    outside = spec.get("externalName") or ",".join(spec.get("externalIPs") or [])
    return [
        name_of(obj), spec.get("type", "ClusterIP"), spec.get("clusterIP") or NONE, outside or NONE, ports or NONE,
        _age(obj, now), selector or NONE,
    ]  # fmt: skip


def _port(port: Json) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{outside}/{port.get('protocol', 'TCP')}"


def _config_map(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), len(obj.get("data") or {}) + len(obj.get("binaryData") or {}), _age(obj, now)]


def _secret(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), obj.get("type", "Opaque"), len(obj.get("data") or {}), _age(obj, now)]


def _service_account(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), len(obj.get("secrets") or []), _age(obj, now)]


def _claim(obj: Json, now: datetime) -> Cells:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    modes = {
        "ReadWriteOnce": "RWO",
        "ReadOnlyMany": "ROX",
        "ReadWriteMany": "RWX",
        "ReadWriteOncePod": "RWOP",
    }
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    bound = phase == "Bound"
    accesses = ",".join(modes[mode] for mode in status.get("accessModes", []) if mode in modes)
    return [
        name_of(obj), phase, spec.get("volumeName", ""), status.get("capacity", {}).get("storage", "") if bound else "",
        accesses if bound else "", spec.get("storageClassName", ""), spec.get("volumeAttributesClassName") or "<unset>",
        _age(obj, now), spec.get("volumeMode") or "<unset>",
    ]  # fmt: skip


def _event(obj: Json, now: datetime) -> Cells:
    series, about, source = obj.get("series") or {}, obj.get("involvedObject", {}), obj.get("source") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    count = series.get("count") or obj.get("count") or 1
    reporter = source.get("component") or obj.get("reportingComponent") or ""
    origin = ", ".join(
        word for word in (reporter, source.get("host") or obj.get("reportingInstance") or "") if word
    )
    thing = "/".join(word for word in (about.get("kind", "").lower(), about.get("name", "")) if word)
    message = str(obj.get("message") or "").strip()
    return [
        age_of(last, now), obj.get("type", ""), obj.get("reason", ""), thing, about.get("fieldPath", ""), origin,
        message, age_of(first, now), count, name_of(obj),
    ]  # fmt: skip


def _pod_template(obj: Json, now: datetime) -> Cells:  # noqa: ARG001  # it is shown without an age
    template = obj.get("template") or {}
    containers = (template.get("spec") or {}).get("containers") or []
    labels = (template.get("metadata") or {}).get("labels") or {}
    return [
        name_of(obj), ",".join(each.get("name", "") for each in containers),
        ",".join(each.get("image", "") for each in containers),
        ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE,
    ]  # fmt: skip


def _scale(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), obj["spec"]["replicas"], obj["status"]["replicas"], _age(obj, now)]


def _lease(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), obj.get("spec", {}).get("holderIdentity", ""), _age(obj, now)]


def _priority_class(obj: Json, now: datetime) -> Cells:
    preemption = obj.get("preemptionPolicy", "")
    return [name_of(obj), obj.get("value", 0), obj.get("globalDefault", False), _age(obj, now), preemption]


def _columns(words: str) -> tuple[Column, ...]:
    """Headers of a core kind; those in brackets are shown only with -o wide, a type stands behind a colon."""
    columns = []
    for word in words.split(", "):
        name, _, kind = word.strip("[]").partition(":")
        path = NAME.path if name == "Name" else ""
        columns.append(Column(name, path, type=kind or "string", priority=int(word.startswith("["))))
    return tuple(columns)


PODS = "Name, Ready, Status, Restarts, Age, [IP], [Node], [Nominated Node], [Readiness Gates]"
NODES = (
    "Name, Status, Roles, Age, Version, [Internal-IP], [External-IP], [OS-Image], [Kernel-Version], "
    "[Container-Runtime]"
)
CLAIMS = (
    "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, [VolumeMode]"
)
EVENTS = "Last Seen, Type, Reason, Object, [Subobject], [Source], Message, [First Seen], [Count], [Name]"

LAYOUTS = {
    POD: Layout(_columns(PODS), pod_cells),
    NODE: Layout(_columns(NODES), _node),
    NAMESPACE: Layout(_columns("Name, Status, Age"), _namespace),
    SERVICE: Layout(_columns("Name, Type, Cluster-IP, External-IP, Port(s), Age, [Selector]"), _service),
    CONFIG_MAP: Layout(_columns("Name, Data, Age"), _config_map),
    SECRET: Layout(_columns("Name, Type, Data, Age"), _secret),
    SERVICE_ACCOUNT: Layout(_columns("Name, Secrets, Age"), _service_account),
    CLAIM: Layout(_columns(CLAIMS), _claim),
    POD_TEMPLATE: Layout(_columns("Name, Containers, Images, Pod Labels"), _pod_template),
    SCALE: Layout(_columns("Name, Desired:integer, Available:integer, Age"), _scale),
    EVENT: Layout(_columns(EVENTS), _event),
    REGARDING_EVENT: Layout(_columns(EVENTS), lambda obj, now: _event(older_event(obj), now)),
    LEASE: Layout(_columns("Name, Holder, Age"), _lease),
    PRIORITY_CLASS: Layout(
        _columns("Name, Value:integer, Global-Default:boolean, Age, PreemptionPolicy"), _priority_class
    ),
}
