"""What an API group has to say for itself, and a job kind: a framework spoken in a dialect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from fullrank.api.jobs import Counts, Indexes, Retries, Role, State, TrainingJob
from fullrank.api.meta import Json
from fullrank.api.once import once
from fullrank.api.schema import Schema
from fullrank.api.scheme import Kind
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang, Member


@dataclass(frozen=True, slots=True)
class Mark:
    """A state the job has reached (or, with `holds=False`, left), in the words users are to read."""

    state: State
    reason: str
    message: str
    holds: bool = True


class Seat(NamedTuple):
    """A member's pod, as far as anybody looks at it."""

    member: Member
    name: str
    uid: str
    phase: str
    terminating: bool
    restarts: int  # of containers, in place
    exit_code: int | None  # of the main container, once the pod has ended
    finished_at: datetime | None
    attempt: str  # which one it belongs to, in jobs that restart as one
    status: Json  # of the pod, whole

    @property
    def active(self) -> bool:
        return self.phase == "Running" and not self.terminating

    @property
    def unfinished(self) -> bool:
        return self.phase not in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a job gets no further, for the time being."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass found out about a job; the dialect turns it into its own status words."""

    marks: tuple[Mark, ...] = ()  # in the order in which they happened
    counts: Mapping[str, Counts] = field(default_factory=dict)
    started_at: datetime | None = None
    completed_at: datetime | None = None
    restarts: int = 0
    role_restarts: Mapping[str, int] = field(default_factory=dict)
    completed: Indexes = field(default_factory=dict)
    started: Indexes = field(default_factory=dict)
    gone: Indexes = field(default_factory=dict)
    retries: Retries = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    obstacle: Obstacle | None = None
    seats: Mapping[Member, Seat] = field(default_factory=dict)
    companions: tuple[Json, ...] = ()  # what it has beside pods and services


@dataclass(frozen=True, slots=True)
class Sentences:
    """What users of an API group read about a job, in the texts their tools have known for years.

    {count}, {role}, {pod} and {code} are filled in: how many failed and of which role, or who did and how.
    """

    created: str
    running: str
    suspended: str
    resumed: str
    succeeded: str
    restarting: str
    restarting_beside_leader: str  # when the job's main member still runs
    failed: str
    failed_for_good: str  # by an exit code that restart policy ExitCode does not forgive
    deleted: str
    deadline: str
    backoff: str
    reason: str  # of conditions and events; {word} is what happened: Running, Failed, Resumed, …
    initialized: str = ""  # said in an event, as `created` then is, when all members have been made


@dataclass(frozen=True, slots=True)
class Dialect:
    group: str
    version: str
    kind: Callable[[Framework], Kind]
    schema: Callable[[Framework], Schema]
    complaints: Callable[[Framework, Json, Json | None], list[Cause]]  # of a new object, and the old one
    warnings: Callable[[Framework, Json], list[str]]
    read: Callable[[Framework, Json], TrainingJob]
    status: Callable[[Framework, TrainingJob, Json, Report, datetime], Json]
    labels: Callable[[Gang, Member], dict[str, str]]  # of a member's pod
    selector: Callable[[Gang, Member], dict[str, str]]  # of the service in front of it
    member: Callable[[Framework, Json], Member | None]  # whose pod this is, by its labels
    pod_restart_policy: Callable[[TrainingJob, Role], str]
    sentences: Callable[[Framework, TrainingJob], Sentences]
    state: Callable[[Json], str]  # of an object, in one word
    retryable: Callable[[int], bool]  # exit codes that restart policy ExitCode forgives
    suspension: Callable[[bool], Json] = lambda on: {"spec": {"runPolicy": {"suspend": on}}}  # a merge patch


@dataclass(frozen=True)
class JobKind:
    """One kind a user can submit."""

    framework: Framework
    dialect: Dialect
    domain: str = ""  # the cluster's, where members' names are to be written out

    @once
    def kind(self) -> Kind:
        return self.dialect.kind(self.framework)

    @once
    def schema(self) -> Schema:
        return self.dialect.schema(self.framework)

    @property
    def controller(self) -> str:
        """The name under which this kind's controller signs labels and events."""
        return f"{self.kind.singular}-controller"

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:
        """What is wrong with the object beyond its schema, which is met; `old` is what it replaces."""
        return self.dialect.complaints(self.framework, obj, old)

    def warnings(self, obj: Json) -> list[str]:
        """What its author ought to know although the object is fine."""
        return self.dialect.warnings(self.framework, obj)

    def read(self, obj: Json) -> TrainingJob:
        return self.dialect.read(self.framework, obj)

    def state(self, obj: Json) -> str:
        """How the job is doing, in one word: what lists show; empty as long as nobody has looked at it."""
        return self.dialect.state(obj)

    def gang(self, job: TrainingJob) -> Gang:
        return Gang(job, self.framework, self.domain)
