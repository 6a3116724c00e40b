"""What a pass reports of a job, whatever it decides: counts, times, and what is to be remembered of its members."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from fullrank.api.jobs import Counts, Indexes
from fullrank.api.meta import Json
from fullrank.dialects.contract import Mark, Obstacle, Report, Seat
from fullrank.frameworks.contract import Member
from fullrank.planning.pauses import kept
from fullrank.planning.plan import Announcement
from fullrank.planning.scene import Scene

ON_ITS_WAY = ("", "ContainerCreating", "PodInitializing")


def unchanged(scene: Scene, *marks: Mark) -> Report:
    """As it was, with nothing remembered of members: there are none, or they no longer matter."""
    status = scene.job.status
    return Report(
        marks=(*created(scene), *marks),
        counts=status.counts,
        started_at=status.started_at,
        completed_at=status.completed_at,
        restarts=status.restarts,
        role_restarts=status.role_restarts,
        seats=scene.seats,
    )


def observed(scene: Scene, *marks: Mark, in_the_way: Obstacle | None = None) -> Report:
    """As it is now."""
    status, seats = scene.job.status, scene.seats
    present = {seat.uid for seat in seats.values()} if status.replaced else frozenset()
    return Report(
        marks=(*created(scene), *marks),
        counts=scene.counts,
        started_at=_start(scene),
        restarts=status.restarts,
        role_restarts=status.role_restarts,
        completed=_by_role(scene.completed),
        started=_started(scene),
        gone={} if scene.job.restarts_as_one else _by_role(scene.lost),
        retries=kept(scene) if status.retries else {},
        replaced=status.replaced & present,
        obstacle=in_the_way,
        seats=seats,
    )


def over(scene: Scene, mark: Mark, at: datetime, started_at: datetime | None) -> Report:
    """The end of a job. From now on nothing needs to be remembered: a finished job's pods never come back."""
    report = observed(scene, *resumed(scene), mark)
    return replace(
        report,
        completed_at=at,
        started_at=started_at,
        completed={},
        started={},
        gone={},
        retries={},
        replaced=frozenset(),
    )


def begun(scene: Scene) -> datetime:
    return _start(scene)


def _start(scene: Scene) -> datetime:
    status = scene.job.status
    return scene.now if status.started_at is None or "Suspended" in status.states else status.started_at


def _started(scene: Scene) -> Indexes:
    """The members that may not be started a second time, once they have been started."""
    found: dict[str, frozenset[int]] = {}
    for role in scene.job.roles:
        if scene.runs_once(Member(role.name, 0)):
            known = scene.job.status.started.get(role.name, frozenset())
            fresh = {
                index
                for index in scene.held[role.name] - known
                if _has_begun(scene, Member(role.name, index))
            }
            found[role.name] = frozenset(index for index in known | fresh if index < role.replicas)
    return found


def _has_begun(scene: Scene, member: Member) -> bool:
    return scene.seats[member].phase != "Pending"


def _by_role(members: Iterable[Member]) -> Indexes:
    found = defaultdict[str, set[int]](set)
    for role, index in members:
        found[role].add(index)
    return {role: frozenset(indexes) for role, indexes in found.items()}


# -- marks and news ------------------------------------------------------------------------------------------------


def reason(scene: Scene, word: str) -> str:
    return scene.sentences.reason.format(word=word)


def created(scene: Scene) -> tuple[Mark, ...]:
    if scene.job.status.states:
        return ()
    return (Mark("Created", reason(scene, "Created"), scene.sentences.created),)


def resumed(scene: Scene) -> tuple[Mark, ...]:
    if "Suspended" not in scene.job.status.states:
        return ()
    return (Mark("Suspended", reason(scene, "Resumed"), scene.sentences.resumed, holds=False),)


def resumption(scene: Scene) -> tuple[Announcement, ...]:
    return tuple(Announcement("Normal", mark.reason, mark.message) for mark in resumed(scene))


def beginning(scene: Scene) -> tuple[Announcement, ...]:
    """The first events of a job, in APIs that have them: that it was made, and that all its members were."""
    status = scene.job.status
    if status.states and status.initialized:
        return ()
    says = scene.sentences
    if not says.initialized:
        return ()
    made = (Announcement("Normal", "Created", says.created),) if not status.states else ()
    ready = not status.initialized and not scene.missing
    return (*made, *((Announcement("Normal", "Start", says.initialized),) if ready else ()))


def exits(scene: Scene) -> tuple[Announcement, ...]:
    """The members whose end shows in this pass for the first time: the latest of each role, as many as it has more."""
    told = []
    for role, now in scene.counts.items():
        before = scene.job.status.counts.get(role, Counts())
        fresh = (now.succeeded + now.failed) - (before.succeeded + before.failed)
        if fresh > 0:
            told += _latest(scene, role, fresh)
    return tuple(
        Announcement(
            "Normal",
            "ExitedWithCode",
            f"Pod: {scene.job.namespace}.{one.name} exited with code {one.exit_code}",
        )
        for one in told
    )


def _latest(scene: Scene, role: str, count: int) -> list[Seat]:
    ends = [seat for seat in scene.seats.values() if seat.member.role == role and seat.exit_code is not None]
    return sorted(ends, key=scene.ended_at)[-count:]


# -- what is in the way --------------------------------------------------------------------------------------------


def obstacle(scene: Scene) -> Obstacle | None:
    """Why the job gets no further: what could not be made, or what the first member that cannot go on says."""
    if scene.refusal:
        return scene.refusal
    leaving = [seat.name for seat in scene.outdated]
    if leaving:
        return Obstacle(
            "WaitingForPods", f"pods of an earlier attempt have not ended yet: {', '.join(leaving[:3])}"
        )
    stuck = [seat for seat in scene.seats.values() if seat.phase == "Pending" or seat.restarts]
    for seat in sorted(stuck, key=lambda seat: scene.gang.rank(seat.member)):
        if not seat.terminating and (trouble := _trouble(seat)):
            return trouble
    return None


def _trouble(seat: Seat) -> Obstacle | None:
    conditions: list[Json] = seat.status.get("conditions") or []
    for one in conditions:
        if one.get("type") == "PodScheduled" and one.get("status") == "False" and one.get("message"):
            return Obstacle(one.get("reason") or "Unschedulable", one["message"])
    for field in ("initContainerStatuses", "containerStatuses"):
        for container in seat.status.get(field) or ():
            waiting: Mapping[str, str] = (container.get("state") or {}).get("waiting") or {}
            if waiting.get("reason", "") not in ON_ITS_WAY:
                said = f": {waiting['message']}" if waiting.get("message") else ""
                return Obstacle(
                    waiting["reason"], f"pod {seat.name}, container {container.get('name', '')}{said}"
                )
    return None
