"""The status of a batch.tensorstack.dev/v1beta1 job: a phase, a few conditions, every member with its containers."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from fullrank.api.apps import TENSORBOARD
from fullrank.api.jobs import Counts, JobStatus, State, TrainingJob
from fullrank.api.meta import Json, moment_of, name_of, namespace_of, stamp, uid_of
from fullrank.dialects.contract import Report, Seat
from fullrank.dialects.memory import completed, gone, remembered, replaced, retries, started
from fullrank.frameworks.contract import Framework, Gang, Member

PHASES = ("Creating", "Pending", "Running", "Succeeded", "Failed", "Unknown", "Deleted")
STATES: Mapping[str, tuple[State, ...]] = {
    "Running": ("Created", "Running"),
    "Paused": ("Created", "Suspended"),
    "Succeeded": ("Created", "Succeeded"),
    "Failed": ("Created", "Failed"),
}
WELL = "All pods are running normally."
BEGUN = "The job has been initialized successfully."
NOTHING = "-"


def state(job: Json) -> str:
    """The phase, but for one word: a console of this platform says of a job that has succeeded that it is done."""
    phase: str = (job.get("status") or {}).get("phase") or ""
    return "Done" if phase == "Succeeded" else phase


def has_been_paused(status: Json) -> bool:
    return any(one.get("type") == "Paused" for one in status.get("conditions") or ())


def read_status(status: Json) -> JobStatus:
    phase = status.get("phase") or ""
    tasks: list[Json] = status.get("tasks") or []
    return JobStatus(
        states=frozenset(STATES.get(phase, ("Created",) if phase else ())),
        initialized=any(one.get("type") == "Initialized" for one in status.get("conditions") or ()),
        started_at=moment_of(status["startTime"]) if status.get("startTime") else None,
        completed_at=moment_of(status["completionTime"]) if status.get("completionTime") else None,
        restarts=status.get("backoffCount") or 0,
        role_restarts={one.get("type", ""): one["restartCount"] for one in tasks if one.get("restartCount")},
        counts={one.get("type", ""): _counts(one.get("replicas") or ()) for one in tasks},
        completed=completed(status),
        started=started(status),
        gone=gone(status),
        retries=retries(status),
        replaced=replaced(status),
    )


def _counts(replicas: Iterable[Json]) -> Counts:
    found = Counter(one.get("phase") for one in replicas)
    return Counts(found["Running"], found["Succeeded"], found["Failed"])


def status(framework: Framework, job: TrainingJob, before: Json, report: Report, now: datetime) -> Json:
    """The whole new status."""
    marks = {mark.state: mark.holds for mark in report.marks}
    idle = bool(report.completed_at or marks.get("Suspended") or before.get("phase") == "Paused")
    idle = idle and marks.get("Suspended") is not False
    tasks = _tasks(Gang(job, framework), before, report, idle=idle)
    phases = Counter(one["phase"] for task in tasks for one in task["replicas"])
    phase = _phase(before.get("phase") or "Pending", marks, phases, idle=idle)
    wanted: Json = {
        "phase": phase,
        "conditions": _conditions(before.get("conditions") or [], report, phase, phases, now),
        "tasks": tasks,
        "aggregate": {name.lower(): phases[name] for name in PHASES},
        "backoffCount": report.restarts,
        "startTime": stamp(report.started_at) if report.started_at else None,
        "completionTime": stamp(report.completed_at) if report.completed_at else None,
        "tensorboard": _board(report.companions),
        **remembered(report),
    }
    return {name: value for name, value in wanted.items() if value or name in ("backoffCount", "tasks")}


def _board(companions: Iterable[Json]) -> Json | None:
    """How the job's TensorBoard is doing."""
    board = next((one for one in companions if one["kind"] == TENSORBOARD.kind), None)
    if board is None:
        return None
    name, phase = name_of(board), (board.get("status") or {}).get("phase") or "Pending"
    ready = phase == "Running"
    return {
        "action": "NOP",
        "dependent": {
            "apiVersion": board["apiVersion"],
            "kind": board["kind"],
            "name": name,
            "namespace": namespace_of(board),
            "uid": uid_of(board),
        },
        "note": f"TensorBoard [{name}] is {'ready' if ready else phase.lower()}",
        "ready": ready,
        "reason": "DependentReady" if ready else "DependentNotReady",
        "type": "Normal",
    }


def _phase(before: str, marks: Mapping[State, bool], phases: Counter[str], *, idle: bool) -> str:
    for end in ("Succeeded", "Failed"):
        if end in marks:
            return end
    if marks.get("Suspended"):
        return "Paused"
    if idle:
        return before
    if _all_up(phases):
        return "Running"
    return "Resuming" if "Suspended" in marks else before


def _all_up(phases: Counter[str]) -> bool:
    return bool(phases["Running"]) and not (phases["Creating"] or phases["Pending"])


# -- tasks ---------------------------------------------------------------------------------------------------------


def _tasks(gang: Gang, before: Json, report: Report, *, idle: bool) -> list[Json]:
    rows: dict[str, dict[int, Json]] = {role.name: {} for role in gang.job.roles}
    for (role, index), seat in report.seats.items():
        rows[role][index] = _seated(seat)
    if len(report.seats) < gang.size:
        absent = [member for member in gang.members if member not in report.seats]
        for (role, index), row in _absent(gang, absent, before, report, idle=idle).items():
            rows[role][index] = row
    return [
        {
            "type": role,
            "restartCount": report.role_restarts.get(role, 0),
            "replicas": [one for _, one in sorted(by_index.items())],
        }
        for role, by_index in rows.items()
    ]


def _seated(seat: Seat) -> Json:
    states: list[Json] = seat.status.get("containerStatuses") or []
    return {
        "name": seat.name,
        "uid": seat.uid,
        "phase": seat.phase if seat.phase in PHASES else "Unknown",
        "containers": [_container(one) for one in states],
    }


def _absent(
    gang: Gang, members: list[Member], before: Json, report: Report, *, idle: bool
) -> dict[Member, Json]:
    """Members without a pod: as they were last seen, or as ones that are yet to be made."""
    replicas = [one for task in before.get("tasks") or () for one in task.get("replicas") or ()]
    old: dict[str, Json] = {one.get("name", ""): one for one in replicas}
    found = {}
    for member in members:
        role, index = member
        name = gang.name(member)
        known = old.get(name) or {}
        if index in report.completed.get(role, ()) or (known.get("phase") == "Succeeded" and idle):
            found[member] = known or {"name": name, "phase": "Succeeded"}
        elif not idle and index not in report.started.get(role, ()):
            found[member] = {"name": name, "phase": "Creating"}
        elif known.get("uid"):
            found[member] = known | {"phase": "Deleted"}
    return found


def _container(container: Json) -> Json:
    name = container.get("name", "")
    for word, said in (container.get("state") or {}).items():
        if word == "terminated":
            return {"name": name, "state": "Terminated", "exitCode": (said or {}).get("exitCode", 0)}
        return {"name": name, "state": word.capitalize()}
    return {"name": name, "state": "Waiting"}


# -- conditions ----------------------------------------------------------------------------------------------------


def _conditions(
    before: list[Json], report: Report, phase: str, phases: Counter[str], now: datetime
) -> list[Json]:
    """In one order, whatever happened when; each says since when it is so."""
    old: dict[str, Json] = {one.get("type", ""): one for one in before}
    if report.completed_at and not any(mark.state in ("Succeeded", "Failed") for mark in report.marks):
        return before
    said = {name: (one["status"], one.get("reason", ""), one.get("message", "")) for name, one in old.items()}
    if not phases["Creating"] and phases.total():
        said.setdefault("Initialized", ("True", NOTHING, BEGUN))
    said |= _failures(report, begun="Initialized" in said)
    for mark in report.marks:
        said |= _end(mark.state, mark.message) if mark.state in ("Succeeded", "Failed") else {}
        if mark.state == "Suspended":
            said["Paused"] = (str(mark.holds), mark.reason, mark.message)
    if phase not in ("Succeeded", "Failed"):
        said |= _running(report, phase, phases, begun="Initialized" in said)
    return [_condition(name, *said[name], old.get(name, {}), now) for name in ORDER if name in said]


ORDER = ("Initialized", "Running", "Failed", "Completed", "ReplicaFailure", "Paused")
Said = dict[str, tuple[str, str, str]]


def _failures(report: Report, *, begun: bool) -> Said:
    """A member that has failed says so in its job; afterwards all is well again."""
    failed = [seat for seat in report.seats.values() if seat.phase == "Failed" and not seat.terminating]
    if not failed:
        return {"ReplicaFailure": ("False", NOTHING, WELL)} if begun else {}
    seat = min(failed, key=lambda seat: (seat.finished_at is None, seat.finished_at, seat.member))
    code = "without an exit code" if seat.exit_code is None else f"with error code {seat.exit_code}"
    return {"ReplicaFailure": ("True", "ErrorInPod", f"Pod[{seat.name}] exited {code}")}


def _end(state: State, message: str) -> Said:
    over = (state, message)
    return {
        "Running": ("False", *over),
        "Failed": (str(state == "Failed"), *over),
        "Completed": ("True", *over),
    }


def _running(report: Report, phase: str, phases: Counter[str], *, begun: bool) -> Said:
    if phase == "Paused":
        return {"Running": ("False", "Paused", "The job is paused.")}
    if report.obstacle:
        return {"Running": ("False", report.obstacle.reason, report.obstacle.message)}
    if _all_up(phases) and not phases["Failed"]:
        return {"Running": ("True", NOTHING, WELL)}
    if not begun:
        return {}
    return {"Running": ("False", "NotReady", f"{phases['Running']} of {phases.total()} pods are running.")}


def _condition(name: str, status: str, reason: str, message: str, old: Json, now: datetime) -> Json:
    since = old.get("lastTransitionTime") if old.get("status") == status else None
    return {
        "type": name,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since or stamp(now),
    }
