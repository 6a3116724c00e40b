"""How long the successor of a member that keeps failing waits, so that nobody is replaced in a tight loop.

A failed pod stays until its successor is due: its log says why it failed, and who deletes it asks for the next try now.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from fullrank.api.jobs import Retries, Retry
from fullrank.api.meta import Json, moment_of, stamp
from fullrank.dialects.contract import Obstacle, Seat
from fullrank.frameworks.contract import Member
from fullrank.planning.scene import Scene

FIRST, LONGEST = timedelta(seconds=10), timedelta(minutes=5)
STEADY = 2 * LONGEST  # a member that ran for this long does not keep failing: its count begins anew
REASON = "BackOff"


def pause(times: int) -> timedelta:
    """None before the first restart, then ten seconds, double each time, up to five minutes."""
    doublings = min(times - 2, 16)
    return timedelta(0) if times < 2 else min(FIRST * 2**doublings, LONGEST)


def counted(scene: Scene, failed: Iterable[Seat]) -> Retries:
    """What is known of members that keep failing, after these have failed as well."""
    found = {role: dict(tries) for role, tries in kept(scene).items()}
    for seat in failed:
        role, index = _counts_as(scene, seat.member)
        known = found.setdefault(role, {}).get(index)
        times = 1 if known is None or _ran(scene, seat) >= STEADY else known.times + 1
        found[role][index] = Retry(times, scene.ended_at(seat) + pause(times))
    return found


def kept(scene: Scene) -> Retries:
    """As the status has it, of members that there still are."""
    return {
        role.name: {index: one for index, one in known.items() if index < role.replicas}
        for role in scene.job.roles
        if (known := scene.job.status.retries.get(role.name))
    }


def due_at(scene: Scene, retries: Retries, seat: Seat) -> datetime:
    """When this failed member may make room for its successor."""
    role, index = _counts_as(scene, seat.member)
    known = retries.get(role, {}).get(index)
    return scene.now if known is None else known.after


def resting(scene: Scene, retries: Retries, seats: Iterable[Seat]) -> tuple[Seat, ...]:
    """Those of these failed members whose successors are not due yet, the first to come first."""
    if not retries:
        return ()
    waiting = [seat for seat in seats if due_at(scene, retries, seat) > scene.now]
    return tuple(sorted(waiting, key=lambda seat: (due_at(scene, retries, seat), seat.member)))


def back_off(scene: Scene, retries: Retries, waiting: tuple[Seat, ...]) -> Obstacle | None:
    """That the job waits, for whom, and until when."""
    if not waiting:
        return None
    seat = waiting[0]
    role, index = _counts_as(scene, seat.member)
    times, at = retries[role][index].times, stamp(due_at(scene, retries, seat))
    who = "the job" if scene.job.restarts_as_one else f"pod {seat.name}"
    others = f"; {len(waiting) - 1} more wait" if len(waiting) > 1 else ""
    return Obstacle(
        REASON, f"{who} has failed {times} times soon after its start and is started again at {at}{others}"
    )


def _ran(scene: Scene, seat: Seat) -> timedelta:
    """How long its containers ran, or the pod where they do not say."""
    states: list[Json] = seat.status.get("containerStatuses") or []
    ends = ((one.get("state") or {}).get("terminated") or {} for one in states)
    begun = min((end["startedAt"] for end in ends if end.get("startedAt")), default=None)
    begun = begun or seat.status.get("startTime")
    return scene.ended_at(seat) - moment_of(begun) if begun else timedelta(0)


def _counts_as(scene: Scene, member: Member) -> Member:
    """In a job that restarts as one it is the job that fails, whoever was the first this time."""
    return scene.gang.leader or member if scene.job.restarts_as_one else member
