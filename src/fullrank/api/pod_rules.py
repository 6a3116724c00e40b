"""What a pod's spec must say beyond its schema: for pods themselves and for the templates inside jobs.

Complaints are in Kubernetes' words. Each takes the spec and where it stands, so that a job's template is told apart.
"""

from collections.abc import Iterator
from typing import Any

from fullrank.api.meta import Json
from fullrank.api.names import label_complaints, label_name, subdomain
from fullrank.api.quantity import Quantity, amount
from fullrank.errors import Cause

ENV_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef")
IMMUTABLE = (
    "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing "
    "tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod_spec_complaints(spec: Json, path: str) -> list[Cause]:
    """Presumes that every field that is there has its right type; some may be missing."""
    volumes = spec.get("volumes") or []
    found = list(_volumes(volumes, f"{path}.volumes"))
    if not spec.get("containers"):
        found.append(_required(f"{path}.containers"))
    names = set[str]()
    mountable = {volume.get("name") for volume in volumes}
    for field in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(field) or []):
            found += _container(container, f"{path}.{field}[{index}]", names, mountable)
    found += label_complaints(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    if (deadline := spec.get("activeDeadlineSeconds")) is not None and not 1 <= deadline <= 2**31 - 1:
        found.append(
            _invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
        )
    if (grace := spec.get("terminationGracePeriodSeconds")) is not None and grace < 0:
        found.append(
            _invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than or equal to 0")
        )
    for field in ("hostname", "subdomain"):
        found += _named(spec.get(field), f"{path}.{field}")
    return found


def _container(container: Json, path: str, names: set[str], mountable: set[str]) -> Iterator[Cause]:
    yield from _unique_name(container.get("name"), f"{path}.name", names)
    image = container.get("image", "")
    if not image:
        yield _required(f"{path}.image")
    elif image != image.strip():
        yield _invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    yield from _ports(container.get("ports") or [], f"{path}.ports")
    for index, variable in enumerate(container.get("env") or []):
        yield from _variable(variable, f"{path}.env[{index}]")
    yield from _mounts(container.get("volumeMounts") or [], f"{path}.volumeMounts", mountable)
    yield from _resources(container.get("resources") or {}, f"{path}.resources")


def _ports(ports: list[Json], path: str) -> Iterator[Cause]:
    seen = set[str]()
    for index, port in enumerate(ports):
        number, name = port.get("containerPort"), port.get("name")
        if number is not None and not 1 <= number <= 65535:
            yield _invalid(f"{path}[{index}].containerPort", number, "must be between 1 and 65535, inclusive")
        if name and name in seen:
            yield _duplicate(f"{path}[{index}].name", name)
        elif name:
            seen.add(name)
            yield from (_invalid(f"{path}[{index}].name", name, problem) for problem in _port_name(name))


def _port_name(name: str) -> Iterator[str]:
    if len(name) > 15:
        yield "must be no more than 15 characters"
    if not set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-"):
        yield "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not set(name) & set("abcdefghijklmnopqrstuvwxyz"):
        yield "must contain at least one letter (a-z)"
    if "--" in name:
        yield "must not contain consecutive hyphens"
    if name.startswith("-") or name.endswith("-"):
        yield "must not begin or end with a hyphen"


def _variable(variable: Json, path: str) -> Iterator[Cause]:
    name = variable.get("name", "")
    if not name:
        yield _required(f"{path}.name")
    elif "=" in name or not (name.isascii() and name.isprintable()):
        problem = (
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
        yield _invalid(f"{path}.name", name, problem)
    source = variable.get("valueFrom")
    if source is None:
        return
    if variable.get("value"):
        yield _invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")
    if not any(source.get(word) is not None for word in ENV_SOURCES):
        problem = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        yield _invalid(f"{path}.valueFrom", "", problem)


def _mounts(mounts: list[Json], path: str, mountable: set[str]) -> Iterator[Cause]:
    seen = set[str]()
    for index, mount in enumerate(mounts):
        name, target, inner = mount.get("name", ""), mount.get("mountPath", ""), mount.get("subPath", "")
        if not name:
            yield _required(f"{path}[{index}].name")
        elif name not in mountable:
            yield Cause(f"{path}[{index}].name", f'Not found: "{name}"', "FieldValueInvalid")
        if not target:
            yield _required(f"{path}[{index}].mountPath")
        elif target in seen:
            yield _invalid(f"{path}[{index}].mountPath", target, "must be unique")
        seen.add(target)
        if inner.startswith("/"):
            yield _invalid(f"{path}[{index}].subPath", inner, "must be a relative path")
        if ".." in inner.split("/"):
            yield _invalid(f"{path}[{index}].subPath", inner, "must not contain '..'")


def _resources(resources: Json, path: str) -> Iterator[Cause]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    if not all(_is_readable(quantity) for quantity in (*limits.values(), *requests.values())):
        return  # the schema has told which
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, quantity in amounts.items():
            if amount(quantity) < 0:
                yield _invalid(f"{path}.{field}[{name}]", str(quantity), "must be greater than or equal to 0")
    for name, quantity in requests.items():
        if name in limits and (relation := _beyond(name, quantity, limits[name])):
            problem = f"must be {relation} {name} limit of {limits[name]}"
            yield _invalid(f"{path}.requests", str(quantity), problem)


def _is_readable(quantity: Quantity) -> bool:
    try:
        amount(quantity)
    except ValueError:
        return False
    return True


def _beyond(name: str, request: Quantity, limit: Quantity) -> str:
    if "/" in name and amount(request) != amount(limit):
        return "equal to"
    return "less than or equal to" if amount(request) > amount(limit) else ""


def _volumes(volumes: list[Json], path: str) -> Iterator[Cause]:
    names = set[str]()
    for index, volume in enumerate(volumes):
        yield from _unique_name(volume.get("name"), f"{path}[{index}].name", names)
        sources = [source for source in volume if source != "name"]
        for source in sources[1:]:
            yield Cause(
                f"{path}[{index}].{source}", "Forbidden: may not specify more than 1 volume type",
                "FieldValueForbidden",
            )  # fmt: skip
        host_path = (volume.get("hostPath") or {}).get("path", "")
        if ".." in host_path.split("/"):
            yield _invalid(f"{path}[{index}].hostPath.path", host_path, "must not contain '..'")


def _unique_name(name: str | None, path: str, seen: set[str]) -> Iterator[Cause]:
    if not name:
        yield _required(path)
    elif name in seen:
        yield _duplicate(path, name)
    else:
        seen.add(name)
        yield from _named(name, path)


def _named(name: str | None, path: str) -> Iterator[Cause]:
    rule = subdomain if path.endswith("subdomain") else label_name
    yield from (_invalid(path, name, problem) for problem in (rule(name) if name else ()))


def frozen_spec_complaints(new: Json, old: Json) -> list[Cause]:
    """Of a pod's spec only images, the deadline and tolerations may change; a node may be given, not taken."""
    if _frozen(new) == _frozen(old) and old.get("nodeName") in (None, new.get("nodeName")):
        return []
    return [Cause("spec", IMMUTABLE, "FieldValueForbidden")]


def _frozen(spec: Json) -> Json:
    free = ("tolerations", "activeDeadlineSeconds", "terminationGracePeriodSeconds", "nodeName")
    rest = {name: value for name, value in spec.items() if name not in free}
    for field in ("containers", "initContainers"):
        if field in rest:
            rest[field] = [container | {"image": ""} for container in rest[field]]
    return rest


def _required(path: str) -> Cause:
    return Cause(path, "Required value", "FieldValueRequired")


def _duplicate(path: str, value: str) -> Cause:
    return Cause(path, f'Duplicate value: "{value}"', "FieldValueDuplicate")


def _invalid(path: str, value: Any, problem: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else value
    return Cause(path, f"Invalid value: {shown}: {problem}")
