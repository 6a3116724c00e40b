"""The life of a job as a list of rules; the first that has something to say decides, and their order is the policy."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeAlias

from fullrank.api.jobs import Counts, State
from fullrank.dialects.contract import Mark, Report
from fullrank.planning.plan import (
    Action,
    Announcement,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    Plan,
    StopPod,
    sweep,
    sweep_all,
)
from fullrank.planning.scene import Scene, Seat

Rule: TypeAlias = Callable[[Scene], Plan | None]


def plan(scene: Scene) -> Plan:
    return next(decision for rule in RULES if (decision := rule(scene)) is not None)


# -- the job is over, or is not to run ---------------------------------------------------------------------------


def finished(scene: Scene) -> Plan | None:
    """Nothing changes a finished job any more: its pods are cleaned up as it says, and in time it goes itself."""
    if not scene.job.status.finished:
        return None
    left = _time_to_live(scene)
    if left is not None and left <= timedelta(0):
        return Plan(_unchanged(scene), (DeleteJob(),))
    return Plan(replace(_unchanged(scene), counts=_final_counts(scene)), _clean_up(scene), wake_after=left)


def _time_to_live(scene: Scene) -> timedelta | None:
    ttl, ended = scene.job.run_policy.ttl_after_finished, scene.job.status.completed_at
    return None if ttl is None or ended is None else ended + timedelta(seconds=ttl) - scene.now


def _clean_up(scene: Scene) -> tuple[Action, ...]:
    policy = scene.job.run_policy
    if policy.clean_pods == "All":
        return sweep(scene, scene.pods)
    unfinished = [seat for seat in scene.pods if seat.unfinished]
    if policy.clean_pods == "Running":
        return sweep(scene, unfinished)
    if policy.keeps_pods_on_purpose:
        return ()
    return tuple(StopPod(seat.name, seat.uid) for seat in unfinished if not seat.terminating)


def _final_counts(scene: Scene) -> Mapping[str, Counts]:
    """After success, members that were still running count as succeeded; after failure, nobody is left active."""
    if "Succeeded" in scene.job.status.states:
        return {
            role: Counts(0, one.succeeded + one.active, one.failed)
            for role, one in scene.job.status.counts.items()
        }
    return {
        role: Counts(scene.counts.get(role, Counts()).active, one.succeeded, one.failed)
        for role, one in scene.job.status.counts.items()
    }


def suspended(scene: Scene) -> Plan | None:
    if not scene.job.run_policy.suspend:
        return None
    word, text = f"{scene.job.kind}Suspended", f"{scene.job.kind} {scene.job.name} is suspended."
    stopped = (Mark("Running", word, text, holds=False),) if "Running" in scene.job.status.states else ()
    news = (Announcement("Normal", word, text),) if "Suspended" not in scene.job.status.states else ()
    counts = {role: replace(one, active=0) for role, one in scene.job.status.counts.items()}
    return Plan(
        replace(_unchanged(scene, *stopped, Mark("Suspended", word, text)), counts=counts),
        sweep_all(scene),
        news,
    )


# -- limits --------------------------------------------------------------------------------------------------------


def past_deadline(scene: Scene) -> Plan | None:
    left = _time_left(scene)
    if left is None or left > timedelta(0):
        return None
    return _out_of_bounds(scene, "it was active longer than specified deadline")


def _time_left(scene: Scene) -> timedelta | None:
    """Until the deadline; a job that was just resumed starts anew."""
    deadline, started = scene.job.run_policy.deadline, scene.job.status.started_at
    if deadline is None or started is None or "Suspended" in scene.job.status.states:
        return None
    return started + timedelta(seconds=deadline) - scene.now


def past_backoff_limit(scene: Scene) -> Plan | None:
    """Every restart counts, whether a container was restarted in place or a member is replaced."""
    limit = scene.job.run_policy.backoff_limit
    if limit is None or (limit >= 0 and _restarts(scene) < max(limit, 1)):
        return None
    return _out_of_bounds(scene, "it has reached the specified backoff limit")


def _restarts(scene: Scene) -> int:
    in_place = sum(
        seat.restarts for seat in scene.seats.values() if scene.role_of(seat).restart_policy != "Never"
    )
    return scene.job.status.restarts + in_place + len(_failed_for_now(scene))


def _out_of_bounds(scene: Scene, why: str) -> Plan:
    return replace(
        _fail(scene, f"Job {scene.job.name} has failed because {why}", scene.now), actions=sweep_all(scene)
    )


# -- members end ---------------------------------------------------------------------------------------------------


def ended(scene: Scene) -> Plan | None:
    """Success or failure: when members end in opposite ways, the one that ended first decides."""
    done = {member: scene.ended_at(seat) for member, seat in scene.seats.items() if seat.phase == "Succeeded"}
    success = scene.job_kind.framework.finished_at(scene.gang, done)
    fatal = min(
        (seat for seat in scene.seats.values() if _fatal(scene, seat)), key=scene.ended_at, default=None
    )
    if success is not None and (fatal is None or success <= scene.ended_at(fatal)):
        return _succeed(scene)
    if fatal is not None:
        return _fail(
            scene, _why_fatal(scene, fatal), scene.now, warning=scene.role_of(fatal).restart_policy != "Never"
        )
    return None


def _fatal(scene: Scene, seat: Seat) -> bool:
    gang = scene.gang
    spared = gang.framework.tolerates(gang, seat.member)
    return seat.phase == "Failed" and not _replaceable(scene, seat) and not spared


def _replaceable(scene: Scene, seat: Seat) -> bool:
    """Whether a failed member gets another try. A pod that failed without an exit code was evicted or lost."""
    if seat.phase != "Failed":
        return False
    policy = scene.role_of(seat).restart_policy
    if policy == "ExitCode":
        return seat.exit_code is None or scene.job_kind.dialect.retryable(seat.exit_code)
    return policy != "Never"


def _failed_for_now(scene: Scene) -> list[Seat]:
    return [seat for seat in scene.seats.values() if _replaceable(scene, seat) and not seat.terminating]


def _why_fatal(scene: Scene, seat: Seat) -> str:
    role = scene.role_of(seat)
    if role.restart_policy == "ExitCode":
        return f'job "{scene.job.name}" is failing because "{role.name}" replica(s) failed.'
    words = scene.job_kind.framework.words(scene.job)
    return words.failed.format(count=scene.counts[role.name].failed, role=role.name)


def _succeed(scene: Scene) -> Plan:
    text = scene.job_kind.framework.words(scene.job).succeeded
    word = f"{scene.job.kind}Succeeded"
    report = _observed(scene, *_resumed(scene), Mark("Succeeded", word, text))
    return Plan(
        replace(report, completed_at=scene.now),
        announcements=(*_exits(scene), Announcement("Normal", word, text)),
    )


def _fail(scene: Scene, text: str, at: datetime, *, warning: bool = False) -> Plan:
    word = f"{scene.job.kind}Failed"
    report = _observed(scene, *_resumed(scene), Mark("Failed", word, text))
    return Plan(
        replace(report, completed_at=at, started_at=scene.job.status.started_at),
        announcements=(*_exits(scene), Announcement("Warning" if warning else "Normal", word, text)),
    )


# -- the job runs --------------------------------------------------------------------------------------------------


def restarting(scene: Scene) -> Plan | None:
    """Failed members make room for their successors, which the next pass creates."""
    failed = _failed_for_now(scene)
    if not failed:
        return None
    text = _why_restarting(scene, failed[0])
    word = f"{scene.job.kind}Restarting"
    report = _observed(scene, *_resumed(scene), Mark("Restarting", word, text))
    gone = sum(1 + seat.restarts for seat in failed)
    return Plan(
        replace(report, restarts=report.restarts + gone),
        (*(DeletePod(seat.name, seat.uid) for seat in failed), *_due(scene)),
        (*_exits(scene), Announcement("Warning", word, text)),
        _time_left(scene),
    )


def _why_restarting(scene: Scene, seat: Seat) -> str:
    if _leads(scene):
        words = scene.job_kind.framework.words(scene.job)
        return words.restarting.format(count=scene.counts[seat.member.role].failed, role=seat.member.role)
    return f"job {scene.job.name} is restarting because {seat.member.role} replica(s) failed."


def running(scene: Scene) -> Plan:
    marks = _resumed(scene)
    news = _resumption(scene)
    if _leads(scene):
        text = scene.job_kind.framework.words(scene.job).running
        marks = (*marks, Mark("Running", f"{scene.job.kind}Running", text))
    return Plan(_observed(scene, *marks), _due(scene), (*news, *_exits(scene)), _time_left(scene))


def _leads(scene: Scene) -> bool:
    return any(scene.counts[role].active for role in scene.gang.leading_roles)


def _due(scene: Scene) -> tuple[Action, ...]:
    """What ought to exist and does not, and what exists and ought not."""
    pods = tuple(CreatePod(member) for member in scene.missing)
    services = tuple(
        CreateService(one) for one in scene.gang.served if scene.gang.name(one) not in scene.services
    )
    return (*sweep(scene, scene.surplus), *pods, *services)


# -- what a report says --------------------------------------------------------------------------------------------


def _unchanged(scene: Scene, *marks: Mark) -> Report:
    status = scene.job.status
    return Report(
        (*_created(scene), *marks), status.counts, status.started_at, status.completed_at, status.restarts
    )


def _observed(scene: Scene, *marks: Mark) -> Report:
    status = scene.job.status
    starts = status.started_at is None or "Suspended" in status.states
    return Report(
        marks=(*_created(scene), *marks),
        counts=scene.counts,
        started_at=scene.now if starts else status.started_at,
        restarts=status.restarts,
    )


def _created(scene: Scene) -> tuple[Mark, ...]:
    job = scene.job
    known: frozenset[State] = job.status.states
    return () if known else (Mark("Created", f"{job.kind}Created", f"{job.kind} {job.name} is created."),)


def _resumed(scene: Scene) -> tuple[Mark, ...]:
    job = scene.job
    if "Suspended" not in job.status.states:
        return ()
    return (Mark("Suspended", f"{job.kind}Resumed", f"{job.kind} {job.name} is resumed.", holds=False),)


def _resumption(scene: Scene) -> tuple[Announcement, ...]:
    return tuple(Announcement("Normal", mark.reason, mark.message) for mark in _resumed(scene))


def _exits(scene: Scene) -> tuple[Announcement, ...]:
    """The members whose end shows in this pass for the first time: the latest of each role, as many as it has more."""
    news = []
    for role, now in scene.counts.items():
        before = scene.job.status.counts.get(role, Counts())
        fresh = (now.succeeded + now.failed) - (before.succeeded + before.failed)
        ends = [
            seat for seat in scene.seats.values() if seat.member.role == role and seat.exit_code is not None
        ]
        for seat in sorted(ends, key=scene.ended_at)[-fresh:] if fresh > 0 else ():
            text = f"Pod: {scene.job.namespace}.{seat.name} exited with code {seat.exit_code}"
            news.append(Announcement("Normal", "ExitedWithCode", text))
    return tuple(news)


RULES: tuple[Rule, ...] = (finished, suspended, past_deadline, past_backoff_limit, ended, restarting, running)
