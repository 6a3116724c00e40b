"""What a job ought to have: pods, services, companions. The framework's wiring meets the user's template only here."""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

from fullrank.api.annotations import ATTEMPT, ENVIRONMENT
from fullrank.api.jobs import Role
from fullrank.api.meta import Json
from fullrank.dialects.contract import JobKind
from fullrank.frameworks.contract import Companion, Framework, Gang, Member, Wiring, main_container

VARIABLE = re.compile(r"\$\(([^()]+)\)")


def pod_for(job_kind: JobKind, gang: Gang, member: Member, owner: Json) -> Json:
    """The member's pod. Variables are appended after the user's own, so that in a clash the framework's count."""
    role, template = _role(gang, member), _template(gang, member)
    spec = _wired(template["spec"], gang.framework, gang.framework.wire(gang, member))
    spec["restartPolicy"] = job_kind.dialect.pod_restart_policy(gang.job, role)
    written: Json = template.get("metadata") or {}
    parts = ("annotations", "finalizers") if job_kind.framework.keeps_finalizers else ("annotations",)
    kept = {name: written[name] for name in parts if written.get(name)}
    if chosen := gang.job.annotations.get(ENVIRONMENT):
        kept["annotations"] = {ENVIRONMENT: chosen} | kept.get("annotations", {})
    attempt = {ATTEMPT: str(gang.job.attempt)} if gang.job.restarts_as_one else {}
    labels = (written.get("labels") or {}) | job_kind.dialect.labels(gang, member) | attempt
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": kept | _identity(gang, gang.name(member), owner) | {"labels": labels},
        "spec": spec,
    }


def service_for(job_kind: JobKind, gang: Gang, member: Member, owner: Json) -> Json:
    """The headless service that gives the member its name."""
    by_name = {_port_name(port): port["port"] for port in gang.framework.service_ports(gang.job)}
    if not by_name:
        ports: list[Json] = main_container(_template(gang, member), gang.framework)["ports"]
        by_name = {_port_name(port): port["containerPort"] for port in ports}
    selector = job_kind.dialect.selector(gang, member)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _identity(gang, gang.service(member), owner) | {"labels": selector},
        "spec": {
            "clusterIP": "None",
            "selector": selector,
            "ports": [{"name": name, "port": port} for name, port in by_name.items()],
        },
    }


def companions_for(
    gang: Gang, running: Collection[Member], owner: Json
) -> tuple[tuple[Companion, Json], ...]:
    """The objects beside pods and services that ought to exist while these members run, in the order to make them."""
    return tuple((one, _whole(gang, one, owner)) for one in gang.framework.companions(gang, running))


def _whole(gang: Gang, companion: Companion, owner: Json) -> Json:
    metadata = _identity(gang, companion.name, owner)
    return {
        "apiVersion": companion.kind.api_version,
        "kind": companion.kind.kind,
        "metadata": metadata | ({"labels": dict(companion.labels)} if companion.labels else {}),
        **deepcopy(companion.content),
    }


def says_otherwise(found: Any, wanted: Any) -> bool:
    """Whether an object differs in something we say; what a server filled in, or somebody added, does not count."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return any(
            name not in found or says_otherwise(found[name], value)
            for name, value in wanted.items()
            if name != "metadata"
        )
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) != len(found) or any(map(says_otherwise, found, wanted))
    return bool(found != wanted)


def overwrites_restart_policy(gang: Gang, member: Member) -> bool:
    """Whether the template names a restart policy of its own, which the role's replaces."""
    return bool((_role(gang, member).template.get("spec") or {}).get("restartPolicy"))


def _role(gang: Gang, member: Member) -> Role:
    return next(role for role in gang.job.roles if role.name == member.role)


def _identity(gang: Gang, name: str, owner: Json) -> Json:
    return {"name": name, "namespace": gang.job.namespace, "ownerReferences": [owner]}


def _template(gang: Gang, member: Member) -> Json:
    """A copy of the member's template that declares the port it listens on, under the number it has on this machine."""
    framework = gang.framework
    template: Json = deepcopy(_role(gang, member).template)
    if not framework.services(gang.job) or framework.service_ports(gang.job):
        return template
    main = main_container(template, framework)
    ports: list[Json] = main.get("ports") or []
    if all(one.get("name") != framework.port_name for one in ports):
        ports = [*ports, {"name": framework.port_name}]
    mine = {"containerPort": gang.port(member)}
    main["ports"] = [one | mine if one.get("name") == framework.port_name else one for one in ports]
    return template


def _port_name(port: Json) -> str:
    """Services want a name for each of several ports, containers do not."""
    name: str = port.get("name") or f"port-{port.get('containerPort') or port['port']}"
    return name


def _wired(spec: Json, framework: Framework, wiring: Wiring) -> Json:
    """The template's pod spec with everything the wiring adds; it is changed in place, being a copy."""
    first: Json = spec["containers"][0]
    for container in _env_goes_to(spec, framework):
        _extend(container, "env", wiring.env)
    _extend(first, "volumeMounts", wiring.mounts)
    _extend(spec, "initContainers", wiring.init_containers)
    _extend(spec, "volumes", wiring.volumes)
    if wiring.command and not first.get("command"):
        # Arguments without a command were meant for the image's own, which does not run here.
        first["command"], first["args"] = [wiring.command[0]], [*wiring.command[1:]]
    if wiring.launcher:
        main_container({"spec": spec}, framework)["command"] = [*wiring.launcher]
    if wiring.variables:
        _fill_in(spec, wiring.variables)
    if wiring.service_account and not spec.get("serviceAccountName"):
        spec["serviceAccountName"] = wiring.service_account
    return spec


def _fill_in(spec: Json, variables: Mapping[str, str]) -> None:
    """Writes out what `$(name)` stands for in commands, arguments and variables; what is not ours is left to others."""

    def filled(text: str) -> str:
        return VARIABLE.sub(lambda found: variables.get(found[1], found[0]), text)

    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        for name in ("command", "args"):
            if container.get(name):
                container[name] = [filled(one) for one in container[name]]
        for one in container.get("env") or ():
            if one.get("value"):
                one["value"] = filled(one["value"])


def _env_goes_to(spec: Json, framework: Framework) -> list[Json]:
    containers: list[Json] = spec["containers"]
    match framework.env_goes_to:
        case "main container":
            return [main_container({"spec": spec}, framework)]
        case "first container":
            return containers[:1]
        case "every container":
            return containers


def _extend(place: Json, name: str, additions: tuple[Json, ...]) -> None:
    if additions:
        place[name] = [*(place.get(name) or ()), *deepcopy(additions)]
