"""The status of a kubeflow.org/v1 job: conditions in the order in which they happened, and counts for each role."""

from collections.abc import Mapping
from datetime import datetime

from fullrank.api.jobs import Counts, JobStatus, State, TrainingJob
from fullrank.api.meta import Json, moment_of, stamp
from fullrank.api.schema import Schema, array, integer, mapping, obj, string, timestamp
from fullrank.dialects.contract import Mark, Obstacle, Report
from fullrank.dialects.memory import (
    completed,
    gone,
    memory_schema,
    remembered,
    replaced,
    retries,
    started,
)
from fullrank.frameworks.contract import Framework

LABEL = "training.kubeflow.org/"
STATES: Mapping[str, State] = {
    "Created": "Created", "Running": "Running", "Restarting": "Restarting",
    "Suspended": "Suspended", "Succeeded": "Succeeded", "Failed": "Failed",
}  # fmt: skip
STUCK = "Progressing"  # a condition that is there, and False, only while a job cannot get further
STOPPED = ("Running", "Restarting")  # what a job no longer does once it has ended
REPLACED = {
    "Running": STOPPED,
    "Restarting": STOPPED,
}  # what a condition drives out; elsewhere only its old self


def read_status(status: Json) -> JobStatus:
    conditions: list[Json] = status.get("conditions") or []
    replicas: Mapping[str, Json] = status.get("replicaStatuses") or {}
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
        completed=completed(status),
        started=started(status),
        gone=gone(status),
        retries=retries(status),
        replaced=replaced(status),
    )


def status(framework: Framework, job: TrainingJob, before: Json, report: Report, now: datetime) -> Json:
    """The whole new status. Zero counts and unset times are left out, as every client of this API expects."""
    conditions: list[Json] = list(before.get("conditions") or ())
    for mark in report.marks:
        conditions = with_condition(conditions, mark, now)
    wanted: Json = {
        "completionTime": stamp(report.completed_at) if report.completed_at else None,
        "conditions": with_obstacle(conditions, report.obstacle, now),
        **remembered(report),
        "replicaStatuses": {
            role: _replica_status(framework, job, role, one) for role, one in report.counts.items()
        },
        "restarts": report.restarts,
        "startTime": stamp(report.started_at) if report.started_at else None,
    }
    return {name: value for name, value in wanted.items() if value or name == "conditions"}


def _replica_status(framework: Framework, job: TrainingJob, role: str, counts: Counts) -> Json:
    selector = selector_labels(framework, job, role)
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


def selector_labels(framework: Framework, job: TrainingJob, role: str) -> dict[str, str]:
    return {
        LABEL + "job-name": job.name,
        LABEL + "operator-name": f"{framework.kind.lower()}-controller",
        LABEL + "replica-type": role.lower(),
    }


def state(job: Json) -> str:
    """The last thing that became true of it."""
    conditions: list[Json] = (job.get("status") or {}).get("conditions") or []
    return next((one["type"] for one in reversed(conditions) if one["status"] == "True"), "")


def status_schema() -> Schema:
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
            **memory_schema(),
        }
    )
