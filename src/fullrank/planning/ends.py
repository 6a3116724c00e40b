"""How a job ends: by success, by a limit, or through members that failed for good. Whatever came first decides.

Members end in opposite ways, and a controller may be away while they do; their finish times, never the order of a
loop or the moment of looking, say what the end was. In a tie success comes first.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from fullrank.dialects.contract import Seat
from fullrank.frameworks.contract import Doom, Member
from fullrank.planning.scene import Scene


@dataclass(frozen=True, slots=True)
class End:
    """That the job is over, since when, and in which words."""

    at: datetime
    state: Literal["Succeeded", "Failed"]
    text: str
    warning: bool = False
    by_limit: bool = False  # then nothing of the job is kept, whatever its policy says


def first_end(scene: Scene) -> End | None:
    found = (end for look in ENDS if (end := look(scene)) is not None)
    return min(found, key=lambda end: end.at, default=None)


def success(scene: Scene) -> End | None:
    """By what is done now and by what is remembered, whose time no longer matters: it was not the last."""
    completed = scene.completed
    began = scene.job.status.started_at or scene.job.created_at
    done = {one: scene.ended_at(scene.seats[one]) if one in scene.seats else began for one in completed}
    at = scene.job_kind.framework.finished_at(scene.gang, done)
    return None if at is None else End(at, "Succeeded", scene.sentences.succeeded)


# -- limits --------------------------------------------------------------------------------------------------------


def deadline(scene: Scene) -> End | None:
    left = time_left(scene)
    if left is None or left > timedelta(0):
        return None
    return End(scene.now + left, "Failed", scene.sentences.deadline, by_limit=True)


def time_left(scene: Scene) -> timedelta | None:
    """Until the deadline; a job that was just resumed starts anew."""
    limit, started = scene.job.run_policy.deadline, scene.job.status.started_at
    if limit is None or started is None or "Suspended" in scene.job.status.states:
        return None
    return started + timedelta(seconds=limit) - scene.now


def backoff(scene: Scene) -> End | None:
    """More restarts than the job may have. Those of containers in place are only seen when they have happened.

    So the one that reaches the limit is the last, while a member is replaced as often as the limit says.
    """
    limit = scene.job.run_policy.backoff_limit
    if limit is None:
        return None
    if limit < 0:
        return _backed_off(scene, scene.job.created_at)
    in_place = _restarts_in_place(scene)
    so_far = scene.job.status.restarts + in_place
    if in_place and so_far >= max(limit, 1):
        return _backed_off(scene, scene.now)
    last = next(_failures_beyond(scene, limit - so_far), None)
    return None if last is None else _backed_off(scene, last)


def _failures_beyond(scene: Scene, allowed: int) -> Iterator[datetime]:
    """When those failures happened that need a restart more than is allowed. A gang restarts once for all of them."""
    times = sorted(scene.ended_at(seat) for seat in news(scene))
    times += [scene.now] if scene.job.restarts_as_one and scene.lost else []
    yield from (times[:1] if scene.job.restarts_as_one else times)[max(allowed, 0) :]


def _restarts_in_place(scene: Scene) -> int:
    replaced = scene.job.status.replaced
    return sum(
        seat.restarts
        for seat in scene.seats.values()
        if seat.restarts and seat.uid not in replaced and scene.role_of(seat.member).restart_policy != "Never"
    )


def _backed_off(scene: Scene, at: datetime) -> End:
    return End(at, "Failed", scene.sentences.backoff, by_limit=True)


# -- failures ------------------------------------------------------------------------------------------------------


def failure(scene: Scene) -> End | None:
    """Members that failed and are not given another try, or were taken away and may not run twice."""
    if not scene.failed and not scene.lost:
        return None
    pardoned = {seat.member for seat in forgiven(scene)}
    final = {seat.member: scene.ended_at(seat) for seat in scene.failed if seat.member not in pardoned}
    gone = {one: scene.now for one in scene.lost if scene.role_of(one).restart_policy == "Never"}
    doom = scene.job_kind.framework.doomed(scene.gang, gone | final)
    if doom is None:
        return None
    judged = scene.role_of(doom.member).restart_policy != "Never" and not doom.why
    return End(doom.at, "Failed", doom.why or _why(scene, doom, final), warning=judged)


def _why(scene: Scene, doom: Doom, final: dict[Member, datetime]) -> str:
    member, says = doom.member, scene.sentences
    if member not in final:
        return says.deleted.format(pod=scene.gang.name(member))
    by_code = scene.role_of(member).restart_policy == "ExitCode"
    text = says.failed_for_good if by_code else says.failed
    seat = scene.seats[member]
    code = "unknown" if seat.exit_code is None else seat.exit_code
    return text.format(count=scene.counts[member.role].failed, role=member.role, pod=seat.name, code=code)


def forgiven(scene: Scene) -> list[Seat]:
    """The failed members that get another try, as long as there are tries left."""
    job, found = scene.job, list[Seat]()
    budget = job.run_policy.restart_budget
    spent, by_role = job.status.restarts, dict(job.status.role_restarts)
    for seat in scene.failed:
        role = scene.role_of(seat.member)
        counted = seat.uid in job.status.replaced
        used = by_role.get(role.name, 0)
        over = (budget is not None and spent >= budget) or (
            role.restart_limit is not None and used >= role.restart_limit
        )
        if not _forgivable(scene, seat) or (over and not counted):
            continue
        found.append(seat)
        if not counted and not job.restarts_as_one:
            spent, by_role[role.name] = spent + 1, used + 1
    return found


def news(scene: Scene) -> list[Seat]:
    """Those of them that have not been counted yet."""
    return [seat for seat in forgiven(scene) if seat.uid not in scene.job.status.replaced]


def _forgivable(scene: Scene, seat: Seat) -> bool:
    """A pod that failed without an exit code was evicted or lost, which is not its program's fault."""
    policy = scene.role_of(seat.member).restart_policy
    if policy == "ExitCode":
        return seat.exit_code is None or scene.job_kind.dialect.retryable(seat.exit_code)
    return policy != "Never"


Look: TypeAlias = Callable[[Scene], End | None]
ENDS: tuple[Look, ...] = (success, deadline, backoff, failure)
