"""The pods and services a job ought to have: the user's template with the framework's wiring, merged only here."""

from copy import deepcopy
from typing import Any

from fullrank.api.jobs import Role
from fullrank.api.meta import Json
from fullrank.dialects.contract import JobKind
from fullrank.frameworks.contract import Framework, Gang, Member, main_container


def pod_for(job_kind: JobKind, gang: Gang, member: Member, owner: Json) -> Json:
    """The member's pod. Variables are appended after the user's own, so that in a clash the framework's count."""
    role = _role(gang, member)
    framework = job_kind.framework
    template: Json = deepcopy(role.template)
    wiring = framework.wire(gang, member)
    _declare_port(template, framework, gang.port(member))
    for container in _wired(template, framework):
        container["env"] = [*(container.get("env") or ()), *wiring.env]
    spec: Json = template["spec"]
    if wiring.init_containers:
        spec["initContainers"] = [*(spec.get("initContainers") or ()), *wiring.init_containers]
    spec["restartPolicy"] = "Never" if role.restart_policy == "ExitCode" else role.restart_policy
    written: Json = template.get("metadata") or {}
    kept = {name: written[name] for name in ("annotations", "finalizers") if written.get(name)}
    labels = (written.get("labels") or {}) | job_kind.dialect.labels(gang, member)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": kept | _identity(gang, member, owner) | {"labels": labels},
        "spec": spec,
    }


def service_for(job_kind: JobKind, gang: Gang, member: Member, owner: Json) -> Json:
    """The headless service that gives the member its name."""
    template: Json = deepcopy(_role(gang, member).template)
    _declare_port(template, job_kind.framework, gang.port(member))
    ports: list[Json] = main_container(template, job_kind.framework)["ports"]
    by_name = {port.get("name", ""): port["containerPort"] for port in ports}
    selector = job_kind.dialect.selector(gang, member)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _identity(gang, member, owner) | {"labels": selector},
        "spec": {
            "clusterIP": "None",
            "selector": selector,
            "ports": [_without_empty({"name": name, "port": port}) for name, port in by_name.items()],
        },
    }


def overwrites_restart_policy(gang: Gang, member: Member) -> bool:
    """Whether the template names a restart policy of its own, which the role's replaces."""
    return bool((_role(gang, member).template.get("spec") or {}).get("restartPolicy"))


def _role(gang: Gang, member: Member) -> Role:
    return next(role for role in gang.job.roles if role.name == member.role)


def _identity(gang: Gang, member: Member, owner: Json) -> Json:
    return {"name": gang.name(member), "namespace": gang.job.namespace, "ownerReferences": [owner]}


def _declare_port(template: Json, framework: Framework, port: int) -> None:
    """Makes the framework's port visible on the main container, under the number it has on this machine."""
    main = main_container(template, framework)
    others = [one for one in main.get("ports") or () if one.get("name") != framework.port_name]
    declared = [one for one in main.get("ports") or () if one.get("name") == framework.port_name]
    mine = (declared[0] if declared else {"name": framework.port_name}) | {"containerPort": port}
    main["ports"] = [*others, mine]


def _wired(template: Json, framework: Framework) -> list[Json]:
    if framework.env_goes_to == "main container":
        return [main_container(template, framework)]
    containers: list[Json] = template["spec"]["containers"]
    return containers


def _without_empty(values: dict[str, Any]) -> Json:
    return {name: value for name, value in values.items() if value != ""}
