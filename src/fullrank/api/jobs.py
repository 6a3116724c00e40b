"""One shape for every job: both dialects become a TrainingJob before anything is decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from fullrank.api.meta import Json

RestartPolicy = Literal["Always", "OnFailure", "Never", "ExitCode"]
CleanPodPolicy = Literal["None", "Running", "All"]
State = Literal["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]


@dataclass(frozen=True, slots=True)
class Role:
    """A replica type: how many, from which template. The template stays as the user wrote it."""

    name: str
    replicas: int
    restart_policy: RestartPolicy
    template: Json


@dataclass(frozen=True, slots=True)
class RunPolicy:
    clean_pods: CleanPodPolicy = "None"
    keeps_pods_on_purpose: bool = False  # the manifest itself says that nothing is to be cleaned up
    ttl_after_finished: int | None = None
    deadline: int | None = None
    backoff_limit: int | None = None
    suspend: bool = False
    queue: str = ""
    priority_class: str = ""


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
    started_at: datetime | None = None
    completed_at: datetime | None = None
    restarts: int = 0  # members replaced so far; every one counts against the back-off limit
    counts: Mapping[str, Counts] = field(default_factory=dict)

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
    ports: Mapping[str, int] = field(
        default_factory=dict
    )  # member's name → the port it was given on this machine
    status: JobStatus = JobStatus()
    terminating: bool = False
    managed_elsewhere: bool = False  # another controller runs it: we leave it alone

    def role(self, name: str) -> Role | None:
        return next((role for role in self.roles if role.name == name), None)

    def has(self, *names: str) -> bool:
        """Whether any of these roles has members."""
        return any(role.replicas > 0 for role in self.roles if role.name in names)
