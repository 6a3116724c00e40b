"""What an API group has to say for itself, and a job kind: a framework spoken in a dialect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from fullrank.api.jobs import Counts, State, TrainingJob
from fullrank.api.meta import Json
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


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass found out about a job; the dialect turns it into its own status words."""

    marks: tuple[Mark, ...] = ()  # in the order in which they happened
    counts: Mapping[str, Counts] = field(default_factory=dict)
    started_at: datetime | None = None
    completed_at: datetime | None = None
    restarts: int = 0


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
    retryable: Callable[[int], bool]  # exit codes that restart policy ExitCode forgives


@dataclass(frozen=True)
class JobKind:
    """One kind a user can submit."""

    framework: Framework
    dialect: Dialect
    domain: str = ""  # the cluster's, where members' names are to be written out

    @cached_property
    def kind(self) -> Kind:
        return self.dialect.kind(self.framework)

    @cached_property
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

    def gang(self, job: TrainingJob) -> Gang:
        return Gang(job, self.framework, self.domain)
