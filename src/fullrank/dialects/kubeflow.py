"""kubeflow.org/v1: the training operator's YAML, labels, conditions and counts, as its clients have known them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache

from fullrank.api import indexes
from fullrank.api.annotations import PORTS
from fullrank.api.jobs import (
    CleanPodPolicy,
    Counts,
    Indexes,
    JobStatus,
    RestartPolicy,
    Role,
    RunPolicy,
    State,
    TrainingJob,
)
from fullrank.api.meta import Json, annotations_of, is_terminating, labels_of, moment_of, stamp
from fullrank.api.names import label_name_1035
from fullrank.api.schema import (
    Schema,
    array,
    boolean,
    core_schema,
    did_you_mean,
    integer,
    mapping,
    obj,
    quantity,
    string,
    timestamp,
    whole_object,
)
from fullrank.api.scheme import Column, Kind, Scale
from fullrank.dialects.contract import Dialect, Mark, Obstacle, Report, Sentences
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang, Member, Refusals

LABEL = "training.kubeflow.org/"
RESTART_POLICIES: Mapping[str, RestartPolicy] = {
    "Always": "Always", "OnFailure": "OnFailure", "Never": "Never", "ExitCode": "ExitCode",
}  # fmt: skip
CLEAN_POD_POLICIES: Mapping[str, CleanPodPolicy] = {"None": "None", "Running": "Running", "All": "All"}
STATES: Mapping[str, State] = {
    "Created": "Created", "Running": "Running", "Restarting": "Restarting",
    "Suspended": "Suspended", "Succeeded": "Succeeded", "Failed": "Failed",
}  # fmt: skip
OURS = "kubeflow.org/training-operator"
MANAGERS = (OURS, "kueue.x-k8s.io/multikueue")
COLUMNS = {
    "State": Column("State", ".status.conditions[-1:].type"),
    "Age": Column("Age", ".metadata.creationTimestamp", type="date"),
}
STUCK = "Progressing"  # a condition that is there, and False, only while a job cannot get further
LONGEST_NAME = 63
MOST_MEMBERS = 10_000  # of a role: more is a slip of the keyboard, and would keep everybody busy
STOPPED = ("Running", "Restarting")  # what a job no longer does once it has ended
REPLACED = {
    "Running": STOPPED,
    "Restarting": STOPPED,
}  # what a condition drives out; elsewhere only its old self


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
        ports=_ports(annotations_of(job).get(PORTS, "")),
        status=_status(job.get("status") or {}),
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
    return _spellings(framework.roles).get(role.lower(), role)


@cache
def _spellings(roles: tuple[str, ...]) -> Mapping[str, str]:
    return {name.lower(): name for name in roles}


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


def _ports(text: str) -> Mapping[str, int]:
    """The ports members were given on this machine. Anybody may write an annotation: nonsense counts as none."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    if not isinstance(found, dict) or not all(type(port) is int for port in found.values()):
        return {}
    return found


def _status(status: Json) -> JobStatus:
    conditions: list[Json] = status.get("conditions") or []
    replicas: Mapping[str, Json] = status.get("replicaStatuses") or {}
    members: Mapping[str, Json] = status.get("members") or {}
    return JobStatus(
        states=frozenset(
            STATES[one["type"]] for one in conditions if one["status"] == "True" and one["type"] in STATES
        ),
        started_at=moment_of(status["startTime"]) if status.get("startTime") else None,
        completed_at=moment_of(status["completionTime"]) if status.get("completionTime") else None,
        restarts=status.get("restarts", 0),
        counts={
            role: Counts(one.get("active", 0), one.get("succeeded", 0), one.get("failed", 0))
            for role, one in replicas.items()
        },
        completed=_indexes(members, "completed"),
        started=_indexes(members, "started"),
        replaced=frozenset(status.get("replaced") or ()),
    )


def _indexes(members: Mapping[str, Json], field: str) -> Indexes:
    return {role: indexes.read(one[field]) for role, one in members.items() if one.get(field)}


def status(framework: Framework, job: TrainingJob, before: Json, report: Report, now: datetime) -> Json:
    """The whole new status. Zero counts and unset times are left out, as every client of this API expects."""
    conditions: list[Json] = list(before.get("conditions") or ())
    for mark in report.marks:
        conditions = with_condition(conditions, mark, now)
    wanted: Json = {
        "completionTime": stamp(report.completed_at) if report.completed_at else None,
        "conditions": with_obstacle(conditions, report.obstacle, now),
        "members": _members(report),
        "replaced": sorted(report.replaced),
        "replicaStatuses": {
            role: _replica_status(framework, job, role, one) for role, one in report.counts.items()
        },
        "restarts": report.restarts,
        "startTime": stamp(report.started_at) if report.started_at else None,
    }
    return {name: value for name, value in wanted.items() if value or name == "conditions"}


def _members(report: Report) -> Json:
    """What is remembered of single members, until the job has ended."""
    found: dict[str, Json] = {}
    for field, by_role in (("completed", report.completed), ("started", report.started)):
        for role, known in by_role.items():
            if known:
                found.setdefault(role, {})[field] = indexes.written(known)
    return found


def _replica_status(framework: Framework, job: TrainingJob, role: str, counts: Counts) -> Json:
    selector = _selector_labels(framework, job, role)
    entries = {
        "active": counts.active,
        "failed": counts.failed,
        "selector": ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
        if framework.selector_in_status
        else "",
        "succeeded": counts.succeeded,
    }
    return {name: value for name, value in entries.items() if value}


def with_condition(conditions: list[Json], mark: Mark, now: datetime) -> list[Json]:
    """The list with one more thing that happened: order is the order of the last change, and Failed is for ever."""
    state = "True" if mark.holds else "False"
    old = next((one for one in conditions if one["type"] == mark.state), {})
    if any(one["type"] == "Failed" and one["status"] == "True" for one in conditions):
        return conditions
    if old and (old["status"], old.get("reason")) == (state, mark.reason):
        return conditions
    at = stamp(now)
    new = {
        "lastTransitionTime": old.get("lastTransitionTime", at) if old.get("status") == state else at,
        "lastUpdateTime": at,
        "message": mark.message,
        "reason": mark.reason,
        "status": state,
        "type": mark.state,
    }
    gone = REPLACED.get(mark.state, (mark.state,))
    over = STOPPED if mark.state in ("Failed", "Succeeded") else ()
    kept = [
        one | {"status": "False"} if one["type"] in over else one
        for one in conditions
        if one["type"] not in gone
    ]
    return [*kept, new]


def with_obstacle(conditions: list[Json], obstacle: Obstacle | None, now: datetime) -> list[Json]:
    """The list that begins with why the job gets no further, as long as there is a reason.

    It comes first because clients take the last condition for the job's state, and this is none.
    """
    old = next((one for one in conditions if one["type"] == STUCK), {})
    others = [one for one in conditions if one["type"] != STUCK] if old else conditions
    if obstacle is None:
        return others
    said = {"message": obstacle.message, "reason": obstacle.reason, "status": "False", "type": STUCK}
    if old.items() >= said.items():
        return [old, *others]
    since = old.get("lastTransitionTime", stamp(now))
    return [said | {"lastTransitionTime": since, "lastUpdateTime": stamp(now)}, *others]


def _selector_labels(framework: Framework, job: TrainingJob, role: str) -> dict[str, str]:
    return {
        LABEL + "job-name": job.name,
        LABEL + "operator-name": f"{framework.kind.lower()}-controller",
        LABEL + "replica-type": role.lower(),
    }


def selector(gang: Gang, member: Member) -> dict[str, str]:
    numbered = member.role not in gang.framework.unnumbered
    index = {LABEL + "replica-index": str(member.index)} if numbered else {}
    return _selector_labels(gang.framework, gang.job, member.role) | index


def labels(gang: Gang, member: Member) -> dict[str, str]:
    role = {LABEL + "job-role": "master"} if gang.framework.master_role(gang, member) else {}
    return selector(gang, member) | role


def member(framework: Framework, pod: Json) -> Member | None:
    """Whose pod this is, or None for one that no member of such a job could have."""
    found = labels_of(pod)
    role, index = found.get(LABEL + "replica-type", ""), found.get(LABEL + "replica-index", "0")
    return Member(_proper(framework, role), int(index)) if role and index.isdecimal() else None


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


def state(job: Json) -> str:
    """The last thing that became true of it."""
    conditions: list[Json] = (job.get("status") or {}).get("conditions") or []
    return next((one["type"] for one in reversed(conditions) if one["status"] == "True"), "")


def retryable(code: int) -> bool:
    """A signal's exit code (128 and above) may be the machine's fault; anything else is the program's own."""
    return code >= 128


def schema(framework: Framework) -> Schema:
    roles = mapping(_replica_schema(), description="The roles of the job and their members.")
    spec = {**framework.options, framework.replicas_field: roles, "runPolicy": _run_policy_schema()}
    return whole_object(
        obj(spec, required=(framework.replicas_field, *framework.required_options)),
        _status_schema(),
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


def _status_schema() -> Schema:
    texts = {name: string() for name in ("type", "status", "reason", "message")}
    times = {name: timestamp() for name in ("lastUpdateTime", "lastTransitionTime")}
    counts = obj({"active": integer(), "succeeded": integer(), "failed": integer(), "selector": string()})
    return obj(
        {
            "conditions": array(obj(texts | times, required=("type", "status"))),
            "replicaStatuses": mapping(counts),
            "startTime": timestamp(),
            "completionTime": timestamp(),
            "lastReconcileTime": timestamp(),
            "restarts": integer(description="Restarts so far; they count against backoffLimit."),
            "members": mapping(
                obj(
                    {
                        "completed": string(description="Members that succeeded, such as 0-3,7."),
                        "started": string(description="Members that are not started a second time."),
                    }
                ),
                description="What is remembered of single members while the job runs.",
            ),
            "replaced": array(string(), description="Failed pods that are being replaced, by uid."),
        }
    )


def complaints(framework: Framework, obj: Json, old: Json | None = None) -> list[Cause]:
    """What the schema cannot say: names, roles, containers, counts. Everything at once, each with its path."""
    spec: Json = obj.get("spec") or {}
    written: Mapping[str, Json | None] = spec.get(framework.replicas_field) or {}
    path = f"spec.{framework.replicas_field}"
    found = [*_name_complaints(framework, obj), *_policy_complaints(obj, old or {})]
    if not written:
        hint = f"name at least one of {', '.join(framework.roles)}"
        return [*found, Cause(path, framework.refusals.roles, "FieldValueRequired", hint)]
    roles = [*_role_complaints(framework, path, written)]
    for name, one in written.items():
        roles += _replica_complaints(framework, f"{path}[{name}]", _proper(framework, name), one or {})
    return [*found, *(roles or framework.complaints(read(framework, obj)))]


def _name_complaints(framework: Framework, obj: Json) -> Iterator[Cause]:
    """The job's name is the beginning of its pods' and services' names, so all of them must fit."""
    gang = Gang(read(framework, obj), framework)
    name = gang.job.name
    if not name:
        return  # it will be generated
    for problem in label_name_1035(name) if framework.services(gang.job) else ():
        yield Cause("metadata.name", framework.refusals.name.format(name=name, problem=problem))
    longest = max((gang.name(Member(one.name, one.replicas - 1)) for one in gang.roles), key=len, default="")
    if (excess := len(longest) - LONGEST_NAME) > 0 and len(name) <= LONGEST_NAME:
        problem = (
            f'Invalid value: "{name}": too long by {excess}: "{longest}" may have {LONGEST_NAME} characters'
        )
        yield Cause("metadata.name", problem, "FieldValueTooLong", "members' names begin with the job's")


def _policy_complaints(obj: Json, old: Json) -> Iterator[Cause]:
    new_policy, old_policy = _policy_of(obj), _policy_of(old)
    path, manager = "spec.runPolicy.managedBy", new_policy.get("managedBy")
    if manager is not None and manager not in MANAGERS:
        yield _unsupported(path, manager, MANAGERS)
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
            yield _unsupported(f"{path}[{name}]", name, framework.roles, framework.refusals.role)
        elif first.setdefault(proper, name) != name:
            problem = f'Duplicate value: "{name}": the same role as "{first[proper]}"'
            yield Cause(f"{path}[{name}]", problem, "FieldValueDuplicate")


def _unsupported(path: str, word: str, known: Iterable[str], text: str = Refusals().role) -> Cause:
    supported = ", ".join(f'"{one}"' for one in known)
    problem = text.format(role=word, supported=supported)
    return Cause(path, problem, "FieldValueNotSupported", hint=did_you_mean(word, known))


def _replica_complaints(framework: Framework, path: str, role: str, replica: Json) -> Iterator[Cause]:
    refusals, where = framework.refusals, f"{path}.template.spec.containers"
    containers: list[Json] = ((replica.get("template") or {}).get("spec") or {}).get("containers") or []
    if not containers:
        yield Cause(where, refusals.containers.format(role=role), "FieldValueRequired")
    for index, one in enumerate(containers):
        if not one.get("image"):
            yield Cause(f"{where}[{index}].image", refusals.image.format(role=role), "FieldValueRequired")
    names = [one.get("name", "") for one in containers]
    if refusals.main and framework.container not in names:
        hint = f'call it "{framework.container}" instead of "{names[0]}"' if len(names) == 1 else ""
        yield Cause(where, refusals.main.format(name=framework.container), "FieldValueRequired", hint)
    if (replicas := replica.get("replicas") or 0) < 0:
        yield Cause(f"{path}.replicas", f"Invalid value: {replicas}: should be a non-negative integer")
    if replicas > MOST_MEMBERS:
        yield Cause(f"{path}.replicas", f"Invalid value: {replicas}: must be at most {MOST_MEMBERS}")
    policy = replica.get("restartPolicy")
    if policy and policy not in RESTART_POLICIES:
        yield _unsupported(f"{path}.restartPolicy", policy, RESTART_POLICIES)


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
