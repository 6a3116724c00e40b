"""A plan is a value: what to make, what to remove, what to say, and when to look again."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, TypeAlias

from fullrank.api.meta import Json
from fullrank.dialects.contract import Report, Seat
from fullrank.frameworks.contract import Member
from fullrank.planning.scene import Scene


@dataclass(frozen=True, slots=True)
class CreatePod:
    member: Member


@dataclass(frozen=True, slots=True)
class CreateService:
    member: Member


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Names are used again after a restart, so a deletion says which very pod it means."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteService:
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class StopPod:
    """Ends a pod's processes and keeps the object and its logs: a finished job frees the machine."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DeleteJob:
    pass


Action: TypeAlias = CreatePod | CreateService | DeletePod | DeleteService | StopPod | DeleteJob


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event on the job, emitted once the status that goes with it is written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Plan:
    report: Report
    actions: tuple[Action, ...] = ()
    announcements: tuple[Announcement, ...] = ()
    wake_after: timedelta | None = None

    def status(self, scene: Scene, before: Json) -> Json:
        kind = scene.job_kind
        report = replace(self.report, companions=scene.companions) if scene.companions else self.report
        return kind.dialect.status(kind.framework, scene.job, before, report, scene.now)


def sweep(scene: Scene, seats: Iterable[Seat]) -> tuple[Action, ...]:
    """Removes pods and the services in front of them."""
    actions: list[Action] = []
    for seat in seats:
        if not seat.terminating:
            actions.append(DeletePod(seat.name, seat.uid))
        service = scene.gang.service(seat.member)
        if service in scene.services:
            actions.append(DeleteService(service, scene.services[service]))
    return tuple(actions)


def sweep_all(scene: Scene) -> tuple[Action, ...]:
    pods = tuple(DeletePod(seat.name, seat.uid) for seat in scene.pods if not seat.terminating)
    return (*pods, *(DeleteService(name, uid) for name, uid in scene.services.items()))
