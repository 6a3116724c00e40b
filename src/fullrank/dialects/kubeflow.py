"""kubeflow.org/v1: the training operator's YAML, labels, conditions and counts, as its clients have known them."""

from collections.abc import Iterator, Mapping

from fullrank.api.annotations import PORTS
from fullrank.api.jobs import CleanPodPolicy, Role, RunPolicy, TrainingJob
from fullrank.api.meta import Json, annotations_of, is_terminating, labels_of, moment_of
from fullrank.api.schema import (
    Schema,
    boolean,
    core_schema,
    integer,
    mapping,
    obj,
    quantity,
    string,
    whole_object,
)
from fullrank.api.scheme import Column, Kind, Scale
from fullrank.dialects.checks import (
    RESTART_POLICIES,
    name_complaints,
    ports_of,
    replica_complaints,
    unsupported,
)
from fullrank.dialects.contract import Dialect, Sentences
from fullrank.dialects.kubeflow_status import (
    LABEL,
    read_status,
    selector_labels,
    state,
    status,
    status_schema,
)
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang, Member

CLEAN_POD_POLICIES: Mapping[str, CleanPodPolicy] = {"None": "None", "Running": "Running", "All": "All"}
ROLE_LABEL, INDEX_LABEL = LABEL + "replica-type", LABEL + "replica-index"
OURS = "kubeflow.org/training-operator"
MANAGERS = (OURS, "kueue.x-k8s.io/multikueue")
COLUMNS = {
    "State": Column("State", ".status.conditions[-1:].type"),
    "Age": Column("Age", ".metadata.creationTimestamp", type="date"),
}


def kind(framework: Framework) -> Kind:
    workers = ".status.replicaStatuses.Worker"
    return Kind(
        "kubeflow.org",
        "v1",
        framework.kind,
        framework.plural,
        subresources=("status", "scale") if framework.scalable else ("status",),
        columns=tuple(COLUMNS[name] for name in framework.columns),
        scale=Scale(
            f".spec.{framework.replicas_field}.Worker.replicas", f"{workers}.active", f"{workers}.selector"
        )
        if framework.scalable
        else None,
    )


def read(framework: Framework, job: Json) -> TrainingJob:
    spec: Json = job.get("spec") or {}
    metadata, policy = job["metadata"], _policy_of(job)
    manager = policy.get("managedBy")
    options = {name: spec[name] for name in framework.options if spec.get(name) is not None}
    return TrainingJob(
        api_version=job["apiVersion"],
        kind=job["kind"],
        name=metadata.get("name") or "",
        namespace=metadata.get("namespace") or "",
        uid=metadata.get("uid") or "",
        created_at=moment_of(metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        roles=_roles(framework, spec),
        run_policy=_run_policy(policy, policy.get("cleanPodPolicy") or options.get("cleanPodPolicy")),
        options=options,
        annotations=annotations_of(job),
        labels=labels_of(job),
        ports=ports_of(annotations_of(job).get(PORTS, "")),
        status=read_status(job.get("status") or {}),
        terminating=is_terminating(job),
        managed_elsewhere=manager is not None and manager != OURS,
    )


def _roles(framework: Framework, spec: Json) -> tuple[Role, ...]:
    """Roles under their proper spelling; what the manifest leaves out is filled in here and never stored."""
    written: Mapping[str, Json | None] = spec.get(framework.replicas_field) or {}
    proper = {_proper(framework, name): one or {} for name, one in written.items()}
    return tuple(
        Role(
            name=name,
            replicas=framework.replicas.get(name, 1) if one.get("replicas") is None else one["replicas"],
            restart_policy=RESTART_POLICIES.get(one.get("restartPolicy") or "", framework.restart_policy),
            template=one.get("template") or {},
        )
        for name, one in proper.items()
    )


def _proper(framework: Framework, role: str) -> str:
    return framework.spellings.get(role.lower(), role)


def _run_policy(policy: Json, clean_pods: str | None) -> RunPolicy:
    scheduling: Json = policy.get("schedulingPolicy") or {}
    return RunPolicy(
        clean_pods=CLEAN_POD_POLICIES.get(clean_pods or "None", "All"),
        keeps_pods_on_purpose=clean_pods == "None",
        ttl_after_finished=policy.get("ttlSecondsAfterFinished"),
        deadline=policy.get("activeDeadlineSeconds"),
        backoff_limit=policy.get("backoffLimit"),
        suspend=bool(policy.get("suspend")),
        queue=scheduling.get("queue") or "",
        priority_class=scheduling.get("priorityClass") or "",
    )


def selector(gang: Gang, member: Member) -> dict[str, str]:
    numbered = member.role not in gang.framework.unnumbered
    index = {LABEL + "replica-index": str(member.index)} if numbered else {}
    return selector_labels(gang.framework, gang.job, member.role) | index


def labels(gang: Gang, member: Member) -> dict[str, str]:
    role = {LABEL + "job-role": "master"} if gang.framework.master_role(gang, member) else {}
    return selector(gang, member) | role


def member(framework: Framework, pod: Json) -> Member | None:
    """Whose pod this is, or None for one that no member of such a job could have."""
    found = pod["metadata"].get("labels") or {}
    role, index = found.get(ROLE_LABEL, ""), found.get(INDEX_LABEL, "0")
    return Member(framework.spellings.get(role, role), int(index)) if role and index.isdecimal() else None


def pod_restart_policy(job: TrainingJob, role: Role) -> str:
    """The role's own, unless a container restarted in place would escape the judgement of its exit code or its gang."""
    return "Never" if role.restart_policy == "ExitCode" or job.restarts_as_one else role.restart_policy


def sentences(framework: Framework, job: TrainingJob) -> Sentences:
    words, about = framework.words(job), f"{job.kind} {job.name}"
    return Sentences(
        created=f"{about} is created.",
        running=words.running,
        suspended=f"{about} is suspended.",
        resumed=f"{about} is resumed.",
        succeeded=words.succeeded,
        restarting=f"job {job.name} is restarting because {{role}} replica(s) failed.",
        restarting_beside_leader=words.restarting,
        failed=words.failed,
        failed_for_good=f'job "{job.name}" is failing because "{{role}}" replica(s) failed.',
        deleted=f"{about} is failed because pod {{pod}} was deleted and its restartPolicy is Never.",
        deadline=f"Job {job.name} has failed because it was active longer than specified deadline",
        backoff=f"Job {job.name} has failed because it has reached the specified backoff limit",
        reason=f"{job.kind}{{word}}",
    )


def retryable(code: int) -> bool:
    """A signal's exit code (128 and above) may be the machine's fault; anything else is the program's own."""
    return code >= 128


def schema(framework: Framework) -> Schema:
    roles = mapping(_replica_schema(), description="The roles of the job and their members.")
    spec = {**framework.options, framework.replicas_field: roles, "runPolicy": _run_policy_schema()}
    return whole_object(
        obj(spec, required=(framework.replicas_field, *framework.required_options)),
        status_schema(),
        description=f"{framework.kind}: a distributed training job.",
    )


def _replica_schema() -> Schema:
    return obj(
        {
            "replicas": integer(description="How many members this role has; 1 if left out."),
            "restartPolicy": string(description="Always, OnFailure, Never or ExitCode."),
            "template": core_schema("PodTemplateSpec"),
        }
    )


def _run_policy_schema() -> Schema:
    scheduling = obj(
        {
            "minAvailable": integer(),
            "queue": string(description="The queue the job waits in."),
            "minResources": mapping(quantity()),
            "priorityClass": string(),
            "scheduleTimeoutSeconds": integer(),
        }
    )
    return obj(
        {
            "cleanPodPolicy": string(
                description="Which pods go when the job has ended: None, Running or All."
            ),
            "ttlSecondsAfterFinished": integer(description="The job itself goes this long after its end."),
            "activeDeadlineSeconds": integer(
                format="int64", description="The job fails when it is active for longer."
            ),
            "backoffLimit": integer(description="The job fails after this many restarts."),
            "schedulingPolicy": scheduling,
            "suspend": boolean(default=False, description="True stops all members; false starts them again."),
            "managedBy": string(),
        }
    )


def complaints(framework: Framework, obj: Json, old: Json | None = None) -> list[Cause]:
    """What the schema cannot say: names, roles, containers, counts. Everything at once, each with its path."""
    spec: Json = obj.get("spec") or {}
    written: Mapping[str, Json | None] = spec.get(framework.replicas_field) or {}
    path = f"spec.{framework.replicas_field}"
    found = [*name_complaints(Gang(read(framework, obj), framework)), *_policy_complaints(obj, old or {})]
    if not written:
        hint = f"name at least one of {', '.join(framework.roles)}"
        return [*found, Cause(path, framework.refusals.roles, "FieldValueRequired", hint)]
    roles = [*_role_complaints(framework, path, written)]
    for name, one in written.items():
        roles += replica_complaints(framework, f"{path}[{name}]", _proper(framework, name), one or {})
    return [*found, *(roles or framework.complaints(read(framework, obj)))]


def _policy_complaints(obj: Json, old: Json) -> Iterator[Cause]:
    new_policy, old_policy = _policy_of(obj), _policy_of(old)
    path, manager = "spec.runPolicy.managedBy", new_policy.get("managedBy")
    if manager is not None and manager not in MANAGERS:
        yield unsupported(path, manager, MANAGERS)
    if old and manager != old_policy.get("managedBy"):
        yield Cause(path, f'Invalid value: "{manager or ""}": field is immutable')
    path = "spec.runPolicy.schedulingPolicy.queue"
    queue, before = ((one.get("schedulingPolicy") or {}).get("queue") for one in (new_policy, old_policy))
    if None not in (queue, before) and queue != before:
        hint = f'it is "{before}"; take it away first, or make the job anew'
        yield Cause(path, f'Invalid value: "{queue}": {path} is immutable', hint=hint)


def _policy_of(obj: Json) -> Json:
    policy: Json = (obj.get("spec") or {}).get("runPolicy") or {}
    return policy


def _role_complaints(framework: Framework, path: str, written: Mapping[str, object]) -> Iterator[Cause]:
    first: dict[str, str] = {}
    for name in written:
        proper = _proper(framework, name)
        if proper not in framework.roles:
            yield unsupported(f"{path}[{name}]", name, framework.roles, framework.refusals.role)
        elif first.setdefault(proper, name) != name:
            problem = f'Duplicate value: "{name}": the same role as "{first[proper]}"'
            yield Cause(f"{path}[{name}]", problem, "FieldValueDuplicate")


def warnings(framework: Framework, obj: Json) -> list[str]:
    job = read(framework, obj)
    asked = _policy_of(obj).get("cleanPodPolicy") or job.options.get("cleanPodPolicy") or "None"
    found = framework.warnings(job)
    if asked in CLEAN_POD_POLICIES:
        return found
    return [*found, f'cleanPodPolicy "{asked}" is none of {", ".join(CLEAN_POD_POLICIES)}: it acts as All']


KUBEFLOW = Dialect(
    group="kubeflow.org",
    version="v1",
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
)
