"""What there is to see of one job: its members' seats, what is left over, and the time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from fullrank.api.jobs import Counts, Role, TrainingJob
from fullrank.api.meta import Json, is_terminating, moment_of, name_of, uid_of
from fullrank.dialects.contract import JobKind
from fullrank.frameworks.contract import Gang, Member, main_container


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's pod, as far as a decision looks at it."""

    member: Member
    name: str
    uid: str
    phase: str
    terminating: bool
    restarts: int  # of containers, in place
    exit_code: int | None  # of the main container, once it has ended
    finished_at: datetime | None

    @property
    def active(self) -> bool:
        return self.phase == "Running" and not self.terminating

    @property
    def unfinished(self) -> bool:
        return self.phase not in ("Succeeded", "Failed")


def seat_of(pod: Json, member: Member, container: str) -> Seat:
    status: Json = pod.get("status") or {}
    phase: str = status.get("phase", "Pending")
    states: list[Json] = status.get("containerStatuses") or []
    inits: list[Json] = status.get("initContainerStatuses") or []
    ended = phase in ("Succeeded", "Failed")
    return Seat(
        member=member,
        name=name_of(pod),
        uid=uid_of(pod),
        phase=phase,
        terminating=is_terminating(pod),
        restarts=sum(one.get("restartCount", 0) for one in (*states, *inits)),
        exit_code=_exit_code(states, container) if ended else None,
        finished_at=_finished_at(states) if ended else None,
    )


def _ends(states: list[Json]) -> Iterable[tuple[str, Json]]:
    for one in states:
        if terminated := (one.get("state") or {}).get("terminated"):
            yield one.get("name", ""), terminated


def _exit_code(states: list[Json], container: str) -> int | None:
    return next((end.get("exitCode") for name, end in _ends(states) if name == container), None)


def _finished_at(states: list[Json]) -> datetime | None:
    return max(
        (moment_of(end["finishedAt"]) for _, end in _ends(states) if end.get("finishedAt")), default=None
    )


@dataclass(frozen=True)
class Scene:
    """Everything a rule may look at."""

    job_kind: JobKind
    job: TrainingJob
    seats: Mapping[Member, Seat]
    surplus: tuple[
        Seat, ...
    ]  # pods of the job that no member ought to have: scaled down, or of a role that went
    services: Mapping[str, str]  # name → uid
    now: datetime

    @cached_property
    def gang(self) -> Gang:
        return self.job_kind.gang(self.job)

    @cached_property
    def counts(self) -> Mapping[str, Counts]:
        """How each declared role is doing; members that are being stopped are neither active nor failed."""
        tally = {role.name: [0, 0, 0] for role in self.job.roles}
        for seat in self.seats.values():
            row = tally[seat.member.role]
            row[0] += seat.active
            row[1] += seat.phase == "Succeeded"
            row[2] += seat.phase == "Failed"
        return {role: Counts(*row) for role, row in tally.items()}

    @cached_property
    def missing(self) -> tuple[Member, ...]:
        return tuple(member for member in self.gang.members if member not in self.seats)

    @property
    def pods(self) -> tuple[Seat, ...]:
        return (*self.seats.values(), *self.surplus)

    def role_of(self, seat: Seat) -> Role:
        return next(role for role in self.job.roles if role.name == seat.member.role)

    def ended_at(self, seat: Seat) -> datetime:
        return seat.finished_at or self.now


def scene_of(
    job_kind: JobKind, job: Json, pods: Iterable[Json], services: Iterable[Json], now: datetime
) -> Scene:
    training_job = job_kind.read(job)
    wanted = {role.name: role.replicas for role in training_job.roles}
    framework = job_kind.framework
    seats, surplus = {}, []
    for pod in pods:
        member = job_kind.dialect.member(framework, pod)
        if member is None:
            continue
        seat = seat_of(pod, member, main_container(pod, framework)["name"])
        if member.index < wanted.get(member.role, 0):
            seats[member] = seat
        else:
            surplus.append(seat)
    known = {name_of(service): uid_of(service) for service in services}
    return Scene(job_kind, training_job, seats, tuple(surplus), known, now)
