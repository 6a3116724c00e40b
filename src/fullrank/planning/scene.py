"""What there is to see of one job: its members' seats, what is left over, and the time."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from fullrank.api.annotations import ATTEMPT
from fullrank.api.jobs import Counts, Role, TrainingJob
from fullrank.api.meta import Json, moment_of
from fullrank.api.once import once
from fullrank.dialects.contract import JobKind, Obstacle, Seat, Sentences
from fullrank.frameworks.contract import Framework, Gang, Member, main_container


def seat_of(pod: Json, member: Member, framework: Framework) -> Seat:
    metadata, status = pod["metadata"], pod.get("status") or {}
    phase: str = status.get("phase", "Pending")
    states: list[Json] = status.get("containerStatuses") or []
    restarts = 0
    for one in (*states, *(status.get("initContainerStatuses") or ())):
        restarts += one.get("restartCount", 0)
    ended = phase in ("Succeeded", "Failed")
    return Seat(
        member,
        metadata["name"],
        metadata.get("uid", ""),
        phase,
        "deletionTimestamp" in metadata,
        restarts,
        _exit_code(states, main_container(pod, framework)["name"]) if ended else None,
        _finished_at(states) if ended else None,
        (metadata.get("labels") or {}).get(ATTEMPT, ""),
        status,
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
    surplus: tuple[Seat, ...]  # pods that no member ought to have: scaled down, or of a role that went
    outdated: tuple[Seat, ...]  # pods of an earlier attempt, in a job that restarts as one
    services: Mapping[str, str]  # name → uid
    now: datetime
    refusal: Obstacle | None = None  # why a pod or service could not be made when it was last tried
    companions: tuple[Json, ...] = ()  # what it has beside pods and services

    @once
    def gang(self) -> Gang:
        return self.job_kind.gang(self.job)

    @once
    def sentences(self) -> Sentences:
        return self.job_kind.dialect.sentences(self.job_kind.framework, self.job)

    @once
    def _roles(self) -> Mapping[str, Role]:
        return {role.name: role for role in self.job.roles}

    @once
    def completed(self) -> frozenset[Member]:
        """The members that have succeeded, those included whose pods are gone since."""
        remembered = {
            Member(role.name, index)
            for role in self.job.roles
            for index in self.job.status.completed.get(role.name, ())
            if index < role.replicas
        }
        return frozenset(
            remembered.union(seat.member for seat in self.seats.values() if seat.phase == "Succeeded")
        )

    @once
    def held(self) -> Mapping[str, set[int]]:
        """The members whose pods are there to stay, by role."""
        found: dict[str, set[int]] = {role.name: set() for role in self.job.roles}
        for (role, index), seat in self.seats.items():
            if not seat.terminating:
                found[role].add(index)
        return found

    @once
    def lost(self) -> tuple[Member, ...]:
        """Members that were started and cannot be started once more alone, whose pods somebody took away."""
        return tuple(
            member
            for role, indexes in self.job.status.started.items()
            if role in self._roles
            for index in sorted(indexes - self.held[role])
            if index < self._roles[role].replicas
            and (member := Member(role, index)) not in self.completed
            and self.runs_once(member)
        )

    def runs_once(self, member: Member) -> bool:
        return self.job.restarts_as_one or self.role_of(member).restart_policy == "Never"

    @once
    def counts(self) -> Mapping[str, Counts]:
        """How each declared role is doing; members that are being stopped are neither active nor failed."""
        replaced = self.job.status.replaced
        tally = {role.name: [0, 0, 0] for role in self.job.roles}
        for seat in self.seats.values():
            row = tally[seat.member.role]
            if seat.phase == "Running":
                row[0] += not seat.terminating
            elif seat.phase == "Failed":
                row[2] += not seat.terminating or seat.uid in replaced
        for member in self.completed:
            tally[member.role][1] += 1
        counted = set(self.gang.leading_roles) if self._only_leaders_count else set(tally)
        return {role: Counts(*row) if role in counted else Counts() for role, row in tally.items()}

    @property
    def _only_leaders_count(self) -> bool:
        leader = self.gang.leader
        if leader is None or not self.job_kind.framework.others_count_with_leader:
            return False
        seat = self.seats.get(leader)
        return leader in self.completed or (seat is not None and not seat.unfinished)

    @once
    def failed(self) -> tuple[Seat, ...]:
        """In the order in which they failed. What a pod says of its end after it was told to go is nobody's failure."""
        found = [seat for seat in self.seats.values() if seat.phase == "Failed" and not seat.terminating]
        return tuple(sorted(found, key=lambda seat: (self.ended_at(seat), self.gang.rank(seat.member))))

    @once
    def missing(self) -> tuple[Member, ...]:
        """The members that are to get a pod now."""
        gone = set(self.lost)
        return tuple(one for one in self.gang.due if one not in self.seats and one not in gone)

    @property
    def pods(self) -> tuple[Seat, ...]:
        return (*self.seats.values(), *self.surplus, *self.outdated)

    def role_of(self, member: Member) -> Role:
        return self._roles[member.role]

    def ended_at(self, seat: Seat) -> datetime:
        return seat.finished_at or self.now


def scene_of(
    job_kind: JobKind,
    job: Json,
    pods: Iterable[Json],
    services: Iterable[Json],
    now: datetime,
    refusal: Obstacle | None = None,
    companions: Iterable[Json] = (),
) -> Scene:
    training_job = job_kind.read(job)
    wanted = {role.name: role.replicas for role in training_job.roles}
    framework, whose = job_kind.framework, job_kind.dialect.member
    attempt = str(training_job.attempt) if training_job.restarts_as_one else ""
    seats: dict[Member, Seat] = {}
    surplus, outdated = [], []
    for pod in pods:
        member = whose(framework, pod)
        if member is None:
            continue
        seat = seat_of(pod, member, framework)
        if member.index >= wanted.get(member.role, 0):
            surplus.append(seat)
        elif attempt and seat.attempt and seat.attempt != attempt:
            outdated.append(seat)
        else:
            seats[member] = seat
    known = {service["metadata"]["name"]: service["metadata"].get("uid", "") for service in services}
    return Scene(
        job_kind, training_job, seats, tuple(surplus), tuple(outdated), known, now, refusal, tuple(companions)
    )
