"""Objects in one line: jobs as users write them, pods as the desired ones with a state of their own."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from fullrank.api.meta import Json, owner_reference, stamp
from fullrank.dialects.contract import JobKind
from fullrank.dialects.registry import JOB_KINDS
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.contract import Framework, Gang, Member, main_container
from fullrank.planning.desired import pod_for, service_for

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def kind_of(job: Json) -> JobKind:
    return next(
        one for one in JOB_KINDS if (one.kind.api_version, one.kind.kind) == (job["apiVersion"], job["kind"])
    )


def gang_of(job: Json) -> Gang:
    job_kind = kind_of(job)
    return job_kind.gang(job_kind.read(job))


def a_job(
    kind: str,
    roles: Mapping[str, Any],
    *,
    name: str = "demo",
    policy: str = "",
    run_policy: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    """A job of the kind: `roles` are numbers of replicas, None to leave the number out, or whole replica specs.

    `policy` is every role's restart policy; further keywords are fields of the spec.
    """
    job_kind = next(one for one in JOB_KINDS if one.framework.kind == kind)
    framework = job_kind.framework
    container = framework.container or "main"
    by_role = {role: _replica(container, given, policy) for role, given in roles.items()}
    replicas: Any = by_role
    if job_kind.dialect is TENSORSTACK:
        replicas = [{"type": role} | _limited(framework, one) for role, one in by_role.items()]
    run = {"runPolicy": run_policy} if run_policy is not None else {}
    job: Json = {
        "apiVersion": job_kind.kind.api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-of-{name}",
            "creationTimestamp": stamp(NOW - timedelta(minutes=1)),
        },
        "spec": {framework.replicas_field: replicas} | run | spec,
    }
    return job | ({"status": status} if status is not None else {})


def _replica(container: str, given: Any, policy: str) -> Json:
    if isinstance(given, dict):
        return given
    spec: Json = {"template": a_template(container)}
    if given is not None:
        spec["replicas"] = given
    return spec | ({"restartPolicy": policy} if policy else {})


def _limited(framework: Framework, replica: Json) -> Json:
    """Where roles have limits of their own, a bare policy comes with a generous one."""
    policy = replica.get("restartPolicy")
    if not framework.limits_by_role or not isinstance(policy, str):
        return replica
    return replica | {"restartPolicy": {"policy": policy, "limit": 3}}


def a_template(container: str, *, metadata: Json | None = None, **fields: Any) -> Json:
    """A pod template with one container; further keywords are fields of that container."""
    spec = {"containers": [{"name": container, "image": "example/train:1"} | fields]}
    return ({"metadata": metadata} if metadata else {}) | {"spec": spec}


def member(text: str, gang: Gang) -> Member:
    """`worker-1` is the second Worker; `launcher` alone is the first of its role."""
    role, _, index = text.partition("-")
    proper = next(one.name for one in gang.job.roles if one.name.lower() == role)
    return Member(proper, int(index or 0))


def a_pod(
    job: Json,
    who: str,
    state: str = "Pending",
    *,
    ended: datetime | None = NOW,
    restarts: int = 0,
    terminating: bool = False,
) -> Json:
    """The pod of a member such as `worker-1`, in a state such as `Running`, `Succeeded` or `Failed 137`.

    A bare `Failed` has no exit code, as after an eviction.
    """
    gang = gang_of(job)
    whose = member(who, gang)
    pod = pod_for(kind_of(job), gang, whose, owner_reference(job))
    phase, _, code = state.partition(" ")
    code = code or ("0" if phase == "Succeeded" else "")
    pod["metadata"] |= {"uid": f"uid-of-{pod['metadata']['name']}"}
    if terminating:
        pod["metadata"]["deletionTimestamp"] = stamp(NOW)
    pod["status"] = {"phase": phase}
    if phase == "Running" or code:
        container = main_container(pod, gang.framework)["name"]
        pod["status"]["containerStatuses"] = [
            {"name": container, "restartCount": restarts, "state": _container_state(code, ended)}
        ]
    return pod


def _container_state(code: str, ended: datetime | None) -> Json:
    if not code:
        return {"running": {}}
    return {"terminated": {"exitCode": int(code)} | ({"finishedAt": stamp(ended)} if ended else {})}


def pods_of(job: Json, states: Mapping[str, str]) -> list[Json]:
    return [a_pod(job, who, state) for who, state in states.items()]


def services_of(job: Json) -> list[Json]:
    """All services the job ought to have, each with a uid."""
    gang = gang_of(job)
    found = []
    for whose in gang.served:
        service = service_for(kind_of(job), gang, whose, owner_reference(job))
        service["metadata"]["uid"] = f"uid-of-service-{service['metadata']['name']}"
        found.append(service)
    return found
