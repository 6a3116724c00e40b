"""batch.tensorstack.dev/v1beta1: TensorStack's job kinds, whose roles are a list and whose main member decides."""

from collections.abc import Mapping
from hashlib import sha1

from fullrank.api.annotations import PORTS
from fullrank.api.jobs import CleanPodPolicy, Role, RunPolicy, TrainingJob
from fullrank.api.meta import Json, annotations_of, is_terminating, labels_of, moment_of
from fullrank.api.scheme import Column, Kind
from fullrank.dialects.checks import RESTART_POLICIES, ports_of
from fullrank.dialects.contract import Dialect, Sentences
from fullrank.dialects.tensorstack_checks import complaints_of, warnings_of
from fullrank.dialects.tensorstack_schema import CLEAN_UP_POLICIES, schema
from fullrank.dialects.tensorstack_status import has_been_paused, read_status, state, status
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang, Member, main_container

COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("Age", ".metadata.creationTimestamp", type="date"),
)
RETRYABLE = (130, 137, 138, 143)  # interrupted, killed, "please restart me", stopped
CLEANING: Mapping[str, CleanPodPolicy] = dict(zip(CLEAN_UP_POLICIES, ("None", "Running", "All"), strict=True))
ASLEEP = ["sleep", "inf"]  # what members run while somebody looks around in them


def kind(framework: Framework) -> Kind:
    return Kind(
        "batch.tensorstack.dev",
        "v1beta1",
        framework.kind,
        framework.plural,
        short_names=framework.short_names,
        subresources=("status",),
        columns=COLUMNS,
    )


def read(framework: Framework, job: Json) -> TrainingJob:
    spec, metadata = job.get("spec") or {}, job["metadata"]
    name, uid = metadata.get("name") or "", metadata.get("uid") or ""
    return TrainingJob(
        api_version=job["apiVersion"],
        kind=job["kind"],
        name=name,
        namespace=metadata.get("namespace") or "",
        uid=uid,
        created_at=moment_of(metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        roles=_roles(framework, job),
        run_policy=_run_policy(framework, spec),
        options=_options(framework, spec),
        annotations=annotations_of(job),
        labels=labels_of(job),
        ports=ports_of(annotations_of(job).get(PORTS, "")),
        stem=f"{name}-{sha1(uid.encode(), usedforsecurity=False).hexdigest()[:5]}",
        status=read_status(job.get("status") or {}),
        terminating=is_terminating(job),
    )


def _options(framework: Framework, spec: Json) -> Json:
    """What only this kind has. While a job is looked into, nothing starts it for its users."""
    hidden = ("torchrunConfig",) if _enabled(spec, "debug") else ()
    given = (name for name in framework.options if spec.get(name) is not None and name not in hidden)
    return {name: spec[name] for name in given}


def _mode(spec: Json, name: str) -> Json:
    found: Json = (spec.get("runMode") or {}).get(name) or {}
    return found


def _enabled(spec: Json, mode: str) -> bool:
    """Manifests are found in two spellings."""
    said = _mode(spec, mode)
    return bool(said.get("enabled") or said.get("enable"))


def _run_policy(framework: Framework, spec: Json) -> RunPolicy:
    policy: Json = spec.get("runPolicy") or {}
    cleaning = policy.get("cleanUpPolicy") or spec.get("cleanUpPolicy")
    scheduler: Json = (spec.get("scheduler") or {}).get("t9kScheduler") or {}
    budget = policy.get("backoffLimit")
    return RunPolicy(
        clean_pods=CLEANING.get(cleaning or "None", "None"),
        keeps_pods_on_purpose=cleaning == "None",
        ttl_after_finished=policy.get("ttlSecondsAfterFinished"),
        deadline=policy.get("activeDeadlineSeconds"),
        suspend=_enabled(spec, "pause"),
        queue=scheduler.get("queue") or "",
        priority=scheduler.get("priority"),
        restart_budget=framework.restart_budget if budget is None else budget,
    )


# -- roles ---------------------------------------------------------------------------------------------------------


def _roles(framework: Framework, job: Json) -> tuple[Role, ...]:
    spec: Json = job.get("spec") or {}
    written: list[Json] = spec.get("replicaSpecs") or []
    sizes = _elastic_sizes(spec, written)
    return tuple(
        Role(
            name=role_name(framework, one),
            replicas=sizes[place],
            restart_policy=RESTART_POLICIES.get(_restart(framework, one)[0], framework.restart_policy),
            template=_template(framework, job, one),
            restart_limit=_restart(framework, one)[1],
        )
        for place, one in enumerate(written)
    )


def role_name(framework: Framework, replica: Json) -> str:
    """Where the API has roles of its own, they are lower case; elsewhere users may call them what they like."""
    name: str = replica.get("type") or ""
    return name.lower() if framework.roles else name


def _restart(framework: Framework, replica: Json) -> tuple[str, int | None]:
    """Policy and limit: kinds that have a limit for each role write both together."""
    said = replica.get("restartPolicy")
    if framework.limits_by_role:
        both: Json = said or {}
        return both.get("policy") or "", both.get("limit") or 0
    return said or "", None


def _elastic_sizes(spec: Json, written: list[Json]) -> list[int]:
    """How many members each role has: as written, or, of an elastic job, its share of what is wanted at the moment."""
    sizes = [1 if one.get("replicas") is None else one["replicas"] for one in written]
    elastic: Json = spec.get("elastic") or {}
    low, high = elastic.get("minReplicas"), elastic.get("maxReplicas")
    if not elastic.get("enabled") or low is None or high is None or not written:
        return sizes
    weights = [one.get("scalingWeight") or 0 for one in written]
    if not any(weights):
        weights[0] = 1
    wanted = min(max(elastic.get("expectedReplicas") or low, low), high)
    fixed = sum(size for size, weight in zip(sizes, weights, strict=True) if not weight)
    return _shared_out(max(wanted - fixed, 0), sizes, weights)


def _shared_out(amount: int, sizes: list[int], weights: list[int]) -> list[int]:
    """The amount by weight, without a remainder: each takes its part of what those before it left."""
    left, total = amount, sum(weights)
    shares = []
    for size, weight in zip(sizes, weights, strict=True):
        share = -(-left * weight // total) if weight else size
        shares.append(share)
        left, total = (left - share, total - weight) if weight else (left, total)
    return shares


def _template(framework: Framework, job: Json, replica: Json) -> Json:
    """The template, with another command while the job is looked into, or after it was paused."""
    template: Json = replica.get("template") or {}
    spec: Json = job.get("spec") or {}
    if not (template.get("spec") or {}).get("containers"):
        return template
    if _enabled(spec, "debug"):
        said = _said_of(framework, replica, _mode(spec, "debug").get("replicaSpecs"))
        return _instead(framework, template, said, {"command": said.get("command") or ASLEEP, "args": []})
    said = _said_of(framework, replica, _mode(spec, "pause").get("resumeSpecs"))
    if not said or not has_been_paused(job.get("status") or {}):
        return template
    given = {name: said[name] for name in ("command", "args") if said.get(name)}
    return _instead(framework, template, said, given)


def _said_of(framework: Framework, replica: Json, listed: list[Json] | None) -> Json:
    name = role_name(framework, replica)
    return next((one for one in listed or () if role_name(framework, one) == name), {})


def _instead(framework: Framework, template: Json, said: Json, fields: Json) -> Json:
    spec: Json = template["spec"]
    main = main_container(template, framework)
    containers = [one | fields if one is main else one for one in spec["containers"]]
    skipped = ("initContainers",) if said.get("skipInitContainer") else ()
    kept = {name: value for name, value in spec.items() if name not in skipped}
    return template | {"spec": kept | {"containers": containers}}


# -- pods ----------------------------------------------------------------------------------------------------------


def selector(gang: Gang, member: Member) -> dict[str, str]:
    return {
        "tensorstack.dev/owner-name": gang.job.name,
        "tensorstack.dev/component": gang.framework.kind.lower(),
        "replica-type": member.role,
        "replica-index": str(member.index),
    }


def labels(gang: Gang, member: Member) -> dict[str, str]:
    main = {"job-role": "master"} if gang.framework.master_role(gang, member) else {}
    user = {"tensorstack.dev/component-type": "user"}
    return selector(gang, member) | user | main | gang.framework.labels(gang, member)


def member(_framework: Framework, pod: Json) -> Member | None:
    """Whose pod this is, or None for one that no member of such a job could have."""
    found = pod["metadata"].get("labels") or {}
    role, index = found.get("replica-type", ""), found.get("replica-index", "")
    return Member(role, int(index)) if role and index.isdecimal() else None


def pod_restart_policy(_job: TrainingJob, _role: Role) -> str:
    """Whether a member gets another try is decided for the whole job, never by the node it runs on."""
    return "Never"


def suspension(on: bool) -> Json:
    """The patch that pauses a job, or lets it go on; the other spelling goes, or it would have the last word."""
    return {"spec": {"runMode": {"pause": {"enabled": on, "enable": None}}}}


def retryable(code: int) -> bool:
    return code in RETRYABLE


def sentences(_framework: Framework, job: TrainingJob) -> Sentences:
    about, failed = f"{job.kind} {job.name}", f"{job.kind} {job.name} has failed:"
    return Sentences(
        created=f"A {job.kind} has been created: {job.name}",
        initialized="The job has been initialized successfully.",
        running="All pods are running normally.",
        suspended="The job is paused.",
        resumed="The job is resumed.",
        succeeded="The job has finished successfully.",
        restarting=f"{about} is restarting because {{role}} replica(s) failed.",
        restarting_beside_leader=f"{about} is restarting because {{role}} replica(s) failed.",
        failed=f"{failed} {{pod}} failed with exit code {{code}}",
        failed_for_good=f"{failed} {{pod}} failed with exit code {{code}}",
        deleted=f"{failed} {{pod}} was deleted and its restartPolicy is Never",
        deadline=f"{failed} it was active longer than its activeDeadlineSeconds",
        backoff=f"{failed} it was restarted more often than its backoffLimit",
        reason="{word}",
    )


def complaints(framework: Framework, obj: Json, old: Json | None = None) -> list[Cause]:
    return complaints_of(framework, obj, old, read(framework, obj))


def warnings(framework: Framework, obj: Json) -> list[str]:
    return [*warnings_of(obj), *framework.warnings(read(framework, obj))]


TENSORSTACK = Dialect(
    group="batch.tensorstack.dev",
    version="v1beta1",
    kind=kind,
    schema=schema,
    complaints=complaints,
    warnings=warnings,
    read=read,
    status=status,
    labels=labels,
    selector=selector,
    member=member,
    pod_restart_policy=pod_restart_policy,
    sentences=sentences,
    state=state,
    retryable=retryable,
    suspension=suspension,
)
