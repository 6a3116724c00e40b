"""One shape for every job: both dialects become a TrainingJob before anything is decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from fullrank.api.annotations import RESTART_SCOPE
from fullrank.api.meta import Json

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]
CleanPodPolicy = Literal["None", "Running", "All"]
State = Literal["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]
Indexes: TypeAlias = Mapping[str, frozenset[int]]  # members, by role


@dataclass(frozen=True, slots=True)
class Retry:
    """How often in a row a member failed soon after its start, and before when its successor is not started."""

    times: int
    after: datetime


Retries: TypeAlias = Mapping[str, Mapping[int, Retry]]  # of members, by role


@dataclass(frozen=True, slots=True)
class Role:
    """A replica type: how many, from which template. The template stays as the user wrote it."""

    name: str
    replicas: int
    restart_policy: RestartPolicy
    template: Json
    restart_limit: int | None = (
        None  # how often failed members of this role are replaced; None: no limit of its own
    )


@dataclass(frozen=True, slots=True)
class RunPolicy:
    clean_pods: CleanPodPolicy = "None"
    keeps_pods_on_purpose: bool = False  # the manifest itself says that nothing is to be cleaned up
    ttl_after_finished: int | None = None
    deadline: int | None = None
    backoff_limit: int | None = None  # more restarts than this fail the job
    suspend: bool = False
    queue: str = ""
    priority_class: str = ""
    priority: int | None = None  # where a number says it instead of a class
    restart_budget: int | None = None  # failed members are replaced this often; then their failure is final


@dataclass(frozen=True, slots=True)
class Counts:
    """How the members of one role are doing."""

    active: int = 0
    succeeded: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class JobStatus:
    """What a job's status said when it was last read, whatever words its dialect uses."""

    states: frozenset[State] = frozenset()
    initialized: bool = True  # where a status says that all members have been made
    started_at: datetime | None = None
    completed_at: datetime | None = None
    restarts: int = 0  # so far; every one counts against the back-off limit
    role_restarts: Mapping[str, int] = field(default_factory=dict)  # where roles have limits of their own
    counts: Mapping[str, Counts] = field(default_factory=dict)
    completed: Indexes = field(default_factory=dict)  # members that succeeded: whatever becomes of their pods
    started: Indexes = field(default_factory=dict)  # members that may not simply be started once more
    gone: Indexes = field(default_factory=dict)  # members that were taken away, and without which it goes on
    retries: Retries = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()  # uids of failed pods that were counted and are on their way out

    @property
    def finished(self) -> bool:
        return bool(self.states & {"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class TrainingJob:
    api_version: str
    kind: str
    name: str
    namespace: str
    uid: str
    created_at: datetime
    roles: tuple[Role, ...]
    run_policy: RunPolicy = RunPolicy()
    options: Json = field(default_factory=dict)  # what only this kind has: elasticPolicy, slotsPerWorker, …
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)  # pod's name → the port it has on this machine
    stem: str = ""  # what members' names begin with, where it is not the job's own name
    status: JobStatus = JobStatus()
    terminating: bool = False
    managed_elsewhere: bool = False  # another controller runs it: we leave it alone

    @property
    def restarts_as_one(self) -> bool:
        """Whether a failed member takes all others with it into a new attempt."""
        return self.annotations.get(RESTART_SCOPE) == "gang"

    @property
    def attempt(self) -> int:
        """Which attempt of a job that restarts as one this is, counted from 1."""
        return self.status.restarts + 1

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def has(self, *names: str) -> bool:
        """Whether any of these roles has members."""
        return any(role.replicas > 0 for role in self.roles if role.name in names)
