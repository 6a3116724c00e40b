"""The life of a job as a list of rules; the first that has something to say decides, and their order is the policy."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from fullrank.api.annotations import PREEMPTED_BY
from fullrank.api.jobs import Counts, Retries
from fullrank.dialects.contract import Mark, Obstacle, Report, Seat
from fullrank.planning.ends import first_end, forgiven, news, time_left
from fullrank.planning.pauses import back_off, counted, due_at, resting
from fullrank.planning.plan import (
    Action,
    Announcement,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeleteService,
    Plan,
    StopPod,
    sweep,
    sweep_all,
)
from fullrank.planning.reports import (
    beginning,
    begun,
    exits,
    observed,
    obstacle,
    over,
    reason,
    resumed,
    resumption,
    unchanged,
)
from fullrank.planning.scene import Scene

Rule: TypeAlias = Callable[[Scene], Plan | None]

LINGERING = timedelta(seconds=10)  # in which members that outlive their job's success may end by themselves


def plan(scene: Scene) -> Plan:
    return next(decision for rule in RULES if (decision := rule(scene)) is not None)


# -- the job is over, or is not to run ---------------------------------------------------------------------------


def finished(scene: Scene) -> Plan | None:
    """Nothing changes a finished job any more: its pods are cleaned up as it says, and in time it goes itself."""
    if not scene.job.status.finished:
        return None
    left = _time_to_live(scene)
    if left is not None and left <= timedelta(0):
        return Plan(unchanged(scene), (DeleteJob(),))
    actions, more = _clean_up(scene)
    waits = [one for one in (left, more) if one is not None]
    report = replace(unchanged(scene), counts=_final_counts(scene))
    return Plan(report, actions, wake_after=min(waits, default=None))


def _time_to_live(scene: Scene) -> timedelta | None:
    ttl, ended = scene.job.run_policy.ttl_after_finished, scene.job.status.completed_at
    return None if ttl is None or ended is None else ended + timedelta(seconds=ttl) - scene.now


def _clean_up(scene: Scene) -> tuple[tuple[Action, ...], timedelta | None]:
    """What goes now, and when to look again for what may still go by itself."""
    policy = scene.job.run_policy
    unfinished = [seat for seat in scene.pods if seat.unfinished]
    if policy.clean_pods == "All":
        return sweep_all(scene), None
    if policy.clean_pods == "Running":
        return sweep(scene, unfinished), None
    if policy.keeps_pods_on_purpose or not unfinished:
        return (), None
    ended = scene.job.status.completed_at or scene.now
    left = ended + LINGERING - scene.now
    if "Succeeded" in scene.job.status.states and left > timedelta(0):
        return (), left
    return tuple(StopPod(seat.name, seat.uid) for seat in unfinished if not seat.terminating), None


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
    """All members go, and what was known of them is forgotten: a resumed job starts from the beginning."""
    if not scene.job.run_policy.suspend:
        return None
    word, text = reason(scene, "Suspended"), scene.sentences.suspended
    stopped = (Mark("Running", word, text, holds=False),) if "Running" in scene.job.status.states else ()
    told = (Announcement("Normal", word, text),) if "Suspended" not in scene.job.status.states else ()
    counts = {role: replace(one, active=0) for role, one in scene.job.status.counts.items()}
    report = unchanged(scene, *stopped, Mark("Suspended", word, text))
    return Plan(replace(report, counts=counts, obstacle=_preempted(scene)), sweep_all(scene), told)


def _preempted(scene: Scene) -> Obstacle | None:
    by = scene.job.annotations.get(PREEMPTED_BY)
    if by is None:
        return None
    return Obstacle("Preempted", f"suspended to make room for {by}; it goes on when there is room again")


def resuming(scene: Scene) -> Plan | None:
    """A resumed job begins when the last pod from before is gone: no member of two lives is ever beside another."""
    if "Suspended" not in scene.job.status.states or not scene.pods:
        return None
    names = sorted(seat.name for seat in scene.pods)
    waits = Obstacle(
        "WaitingForPods", f"pods from before it was suspended have not ended yet: {_some(names)}"
    )
    return Plan(replace(unchanged(scene), obstacle=waits), sweep_all(scene))


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def ended(scene: Scene) -> Plan | None:
    end = first_end(scene)
    if end is None:
        return None
    word = reason(scene, end.state)
    started = scene.job.status.started_at if end.state == "Failed" else begun(scene)
    return Plan(
        over(scene, Mark(end.state, word, end.text), scene.now, started),
        sweep_all(scene) if end.by_limit else (),
        (*exits(scene), Announcement("Warning" if end.warning else "Normal", word, end.text)),
    )


# -- the job runs --------------------------------------------------------------------------------------------------


def restarting_as_one(scene: Scene) -> Plan | None:
    """All members make room for the next attempt, which begins when the last of them is gone."""
    failed = news(scene)
    if not scene.job.restarts_as_one or not (failed or scene.lost):
        return None
    mark = _restart(scene, failed[0].member.role if failed else scene.lost[0].role)
    retries = counted(scene, failed[:1])
    waiting = resting(scene, retries, failed)
    report = observed(scene, *resumed(scene), mark, in_the_way=back_off(scene, retries, waiting))
    roles = {seat.member.role for seat in failed} | {member.role for member in scene.lost}
    by_role = {role: report.role_restarts.get(role, 0) + 1 for role in sorted(roles)}
    return Plan(
        replace(
            report,
            restarts=report.restarts + 1,
            role_restarts={**report.role_restarts, **by_role},
            completed={},
            started={},
            gone={},
            retries=retries,
        ),
        _without(tuple(seat for seat in scene.seats.values() if seat not in waiting)),
        (*exits(scene), Announcement("Warning", mark.reason, mark.message), *_told(report)),
        _look_again(scene, retries, waiting),
    )


def restarting(scene: Scene) -> Plan | None:
    """Failed members make room for their successors, which the next pass creates; at once, or when these are due."""
    failed = news(scene)
    if not failed:
        return None
    mark = _restart(scene, failed[0].member.role)
    retries = counted(scene, failed)
    waiting = resting(scene, retries, forgiven(scene))
    report = observed(scene, *resumed(scene), mark, in_the_way=back_off(scene, retries, waiting))
    by_role = dict(report.role_restarts)
    for seat in failed:
        by_role[seat.member.role] = by_role.get(seat.member.role, 0) + 1
    return Plan(
        replace(
            report,
            restarts=report.restarts + sum(1 + seat.restarts for seat in failed),
            role_restarts=by_role,
            replaced=report.replaced | {seat.uid for seat in failed},
            retries=retries,
        ),
        _due(scene, waiting),
        (*exits(scene), Announcement("Warning", mark.reason, mark.message), *_told(report)),
        _look_again(scene, retries, waiting),
    )


def _told(report: Report) -> tuple[Announcement, ...]:
    """A pause is told when it begins; the condition tells of it as long as it lasts."""
    wait = report.obstacle
    return (Announcement("Warning", wait.reason, wait.message),) if wait else ()


def _look_again(scene: Scene, retries: Retries, waiting: tuple[Seat, ...]) -> timedelta | None:
    """At the deadline, or when the first of those who wait is due."""
    times = [due_at(scene, retries, seat) - scene.now for seat in waiting[:1]]
    left = time_left(scene)
    return min([*times, left] if left is not None else times, default=None)


def _restart(scene: Scene, role: str) -> Mark:
    says = scene.sentences
    text = says.restarting_beside_leader if _leads(scene) else says.restarting
    told = text.format(count=scene.counts[role].failed, role=role)
    return Mark("Restarting", reason(scene, "Restarting"), told)


def running(scene: Scene) -> Plan:
    marks, states = resumed(scene), scene.job.status.states
    if ("Running" not in states or "Restarting" in states or marks) and _leads(scene):
        marks = (*marks, Mark("Running", reason(scene, "Running"), scene.sentences.running))
    retries = scene.job.status.retries
    waiting = resting(scene, retries, _replaced(scene)) if retries else ()
    in_the_way = back_off(scene, retries, waiting) or obstacle(scene)
    return Plan(
        observed(scene, *marks, in_the_way=in_the_way),
        _due(scene, waiting),
        (*beginning(scene), *resumption(scene), *exits(scene)),
        _look_again(scene, retries, waiting),
    )


def _replaced(scene: Scene) -> list[Seat]:
    """The failed members that are to be replaced, in a job that restarts as one those of the attempt before."""
    return [*forgiven(scene), *(seat for seat in scene.outdated if seat.phase == "Failed")]


def _leads(scene: Scene) -> bool:
    return any(scene.counts[role].active for role in scene.gang.leading_roles)


def _due(scene: Scene, waiting: tuple[Seat, ...]) -> tuple[Action, ...]:
    """What ought to exist and does not, and what exists and ought not; failed members that wait stay for now."""
    wanted = scene.gang.services
    unwanted = scene.services.keys() - wanted.keys()
    return (
        *_without(scene.surplus),
        *_without(tuple(seat for seat in (*scene.outdated, *forgiven(scene)) if seat not in waiting)),
        *(DeleteService(name, scene.services[name]) for name in sorted(unwanted)),
        *(CreatePod(member) for member in (() if _must_wait(scene) else scene.missing)),
        *(CreateService(one) for name, one in wanted.items() if name not in scene.services),
    )


def _without(seats: tuple[Seat, ...]) -> tuple[DeletePod, ...]:
    return tuple(DeletePod(seat.name, seat.uid) for seat in seats if not seat.terminating)


def _must_wait(scene: Scene) -> bool:
    """Nobody of an earlier attempt may meet members of the next one."""
    leaving = scene.outdated or any(seat.terminating for seat in scene.seats.values())
    return scene.job.restarts_as_one and bool(leaving)


RULES: tuple[Rule, ...] = (finished, suspended, resuming, ended, restarting_as_one, restarting, running)
