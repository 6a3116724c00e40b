"""A container's environment and command line as its manifest means them: values, fields, references, `$(VAR)`. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil

from fullrank.agent.sources import Source, Sources, Unprepared, keys_of
from fullrank.api.meta import Json, annotations_of, labels_of, name_of, namespace_of, uid_of
from fullrank.api.quantity import Quantity, amount
from fullrank.api.scheme import CONFIG_MAP, SECRET

REFERENCE = re.compile(r"\$\$|\$\(([^()]*)\)")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
VARIABLE_NAME = re.compile(r"[ -<>-~]+")  # what Kubernetes takes: printable ASCII but `=`


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a container can learn of the node it is on."""

    node: str
    host_ip: str
    pod_ip: str
    allocatable: Mapping[str, Quantity] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)  # as variables
    token: str = ""  # what a projected service account token holds


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable if there is one and stays as it is if not; `$$` is a dollar sign."""

    def replaced(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "$"
        return variables.get(name, found.group())

    return REFERENCE.sub(replaced, text)


def variables(pod: Json, container: Json, sources: Sources, around: Surroundings) -> dict[str, str]:
    """What the manifest sets, in its order: later ones may refer to earlier ones, and win over them."""
    found = dict(around.services)
    for bulk in container.get("envFrom") or []:
        found.update(_bulk(bulk, sources))
    for variable in container.get("env") or []:
        origin = variable.get("valueFrom")
        if origin is None:
            found[variable["name"]] = expand(str(variable.get("value") or ""), found)
        elif (value := _value_from(pod, container, origin, sources, around)) is not None:
            found[variable["name"]] = value
    return found


def _bulk(bulk: Json, sources: Sources) -> Iterator[tuple[str, str]]:
    prefix = bulk.get("prefix", "")
    for kind, reference in ((CONFIG_MAP, bulk.get("configMapRef")), (SECRET, bulk.get("secretRef"))):
        if reference is None:
            continue
        keys = keys_of(sources, Source(kind, reference["name"]), optional=reference.get("optional", False))
        for name, value in keys.items():
            if VARIABLE_NAME.fullmatch(prefix + name):
                yield prefix + name, value.decode(errors="replace")


def _value_from(
    pod: Json, container: Json, origin: Json, sources: Sources, around: Surroundings
) -> str | None:
    if "fieldRef" in origin:
        return field_of(pod, origin["fieldRef"]["fieldPath"], around)
    if "resourceFieldRef" in origin:
        return resource_of(pod, origin["resourceFieldRef"], around, container)
    kind, reference = (
        (CONFIG_MAP, origin["configMapKeyRef"])
        if "configMapKeyRef" in origin
        else (SECRET, origin.get("secretKeyRef"))
    )
    if reference is None:
        return None
    optional = reference.get("optional", False)
    keys = keys_of(sources, Source(kind, reference["name"]), optional=optional)
    if reference["key"] in keys:
        return keys[reference["key"]].decode(errors="replace")
    if optional:
        return None
    where = f"{namespace_of(pod)}/{reference['name']}"
    raise Unprepared(f"couldn't find key {reference['key']} in {kind.kind} {where}")


def field_of(pod: Json, path: str, around: Surroundings) -> str:
    """A field of the pod as the downward API gives it."""
    if subscript := SUBSCRIPT.fullmatch(path):
        table = labels_of(pod) if subscript.group(1) == "labels" else annotations_of(pod)
        return table.get(subscript.group(2), "")
    fields = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "metadata.labels": _listed(labels_of(pod)),
        "metadata.annotations": _listed(annotations_of(pod)),
        "spec.nodeName": around.node,
        "spec.serviceAccountName": pod["spec"].get("serviceAccountName", "default"),
        "status.hostIP": around.host_ip,
        "status.hostIPs": around.host_ip,
        "status.podIP": around.pod_ip,
        "status.podIPs": around.pod_ip,
    }
    if path not in fields:
        raise Unprepared(f"unsupported fieldPath: {path}")
    return str(fields[path])


def resource_of(pod: Json, reference: Json, around: Surroundings, container: Json | None = None) -> str:
    """An amount a container asks for, in units of the divisor; without a limit, what the node has."""
    if name := reference.get("containerName"):
        container = next((one for one in pod["spec"]["containers"] if one["name"] == name), None)
        if container is None:
            raise Unprepared(f"container {name} not found")
    side, _, resource = reference["resource"].partition(".")
    asked = ((container or {}).get("resources") or {}).get(side) or {}
    absent = around.allocatable.get(resource, 0) if side == "limits" else 0
    divisor = amount(reference.get("divisor") or 1) or 1
    return str(ceil(amount(asked.get(resource, absent)) / divisor))


def _listed(table: Mapping[str, str]) -> str:
    return "\n".join(f'{name}="{_escaped(value)}"' for name, value in sorted(table.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
