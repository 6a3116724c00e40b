"""What a framework has to say for itself: a value of data and a few functions, so that nobody else asks for its kind.

Adding one is a file with a `Framework`, a line in `registry.py`, rows in the wiring and finish tables, and an
example folder.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar

from fullrank.api.jobs import RestartPolicy, Role, TrainingJob
from fullrank.api.meta import Json
from fullrank.api.once import once
from fullrank.api.schema import Schema
from fullrank.api.scheme import Kind
from fullrank.errors import Cause

T = TypeVar("T")


class Member(NamedTuple):
    """One seat of a job: the n-th replica of a role."""

    role: str
    index: int  # type: ignore[assignment]  # a tuple has a method of that name, which nobody asks a member for


@dataclass(frozen=True, slots=True)
class Wiring:
    """What a member's pod gets beyond the user's template; `planning.desired` alone merges it in."""

    env: tuple[Json, ...] = ()
    init_containers: tuple[Json, ...] = ()
    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()  # in the first container
    command: tuple[str, ...] = ()  # what the first container runs if the template does not say
    launcher: tuple[
        str, ...
    ] = ()  # what the main container runs instead of its command, before its arguments
    variables: Mapping[str, str] = field(default_factory=dict)  # what $(name) stands for in what users wrote
    service_account: str = ""  # likewise


def meeting_at(gang: "Gang", leader: Member, member: Member) -> tuple[Json, ...]:
    """The four variables by which PyTorch and many others find each other."""
    return env(
        MASTER_ADDR=gang.service(leader),
        MASTER_PORT=gang.port(leader),
        RANK=gang.rank(member),
        WORLD_SIZE=gang.size,
    )


def env(**values: str | int) -> tuple[Json, ...]:
    """Environment entries in the order written."""
    return tuple({"name": name, "value": str(value)} for name, value in values.items())


@dataclass(frozen=True, slots=True)
class Companion:
    """An object that a job needs beside its pods; who owns it and where it lives is added later."""

    kind: Kind
    name: str
    content: Json = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    own: tuple[str, ...] = ()  # fields of its spec that others may change once it is made
    optional: bool = False  # the job does without it where it cannot be had


@dataclass(frozen=True, slots=True)
class Words:
    """What users read about a job, in the texts their tools have known for years."""

    running: str
    succeeded: str
    failed: str  # {count} and {role} are filled in
    restarting: str  # likewise


def plain_words(job: TrainingJob) -> Words:
    name = f"{job.kind} {job.name}"
    return Words(
        running=f"{name} is running.",
        succeeded=f"{name} is successfully completed.",
        failed=f"{name} is failed because {{count}} {{role}} replica(s) failed.",
        restarting=f"{name} is restarting because {{count}} {{role}} replica(s) failed.",
    )


def masterless_words(job: TrainingJob) -> Words:
    """The words about a job whose workers are all alike: they name its namespace."""
    plain, name = plain_words(job), f"{job.kind} {job.namespace}/{job.name}"
    return Words(f"{name} is running.", f"{name} successfully completed.", plain.failed, plain.restarting)


def words_by_master(job: TrainingJob) -> Words:
    return plain_words(job) if job.has("Master") else masterless_words(job)


@dataclass(frozen=True, slots=True)
class Refusals:
    """How a replica map that cannot be is refused, in each kind's own words; {role} and {name} are filled in."""

    name: str = 'Invalid value: "{name}": should match: {problem}'
    roles: str = "Required value: must be required"
    role: str = 'Unsupported value: "{role}": supported values: {supported}'
    containers: str = "Required value: must be specified"
    image: str = "Required value: must be required"
    main: str = "Required value: must have at least one container with name {name}"  # "": any name will do


Done = Mapping[Member, datetime]  # the members that have succeeded (or failed for good), and when


@dataclass(frozen=True, slots=True)
class Doom:
    """That a job has failed: when, through whom and, where the framework has words for it, why."""

    at: datetime
    member: Member
    why: str = ""


def stem_of(job: TrainingJob) -> str:
    return job.stem or job.name


def leads(gang: "Gang", member: Member) -> bool:
    return member == gang.leader


def masters(_gang: "Gang", member: Member) -> bool:
    return member.role == "Master"


def leader_alone(gang: "Gang") -> tuple[Member, ...]:
    return (gang.leader,) if gang.leader else ()


def everyone(gang: "Gang") -> tuple[Member, ...]:
    return gang.members


def leaders_done(gang: "Gang", done: Done) -> datetime | None:
    """When the last leading member succeeded; None while one has not."""
    if any(member not in done for member in gang.leading):
        return None
    return max((done[member] for member in gang.leading), default=gang.job.created_at)


def leader_done(gang: "Gang", done: Done) -> datetime | None:
    """When the main member succeeded, whatever the others do."""
    return done.get(gang.leader) if gang.leader else gang.job.created_at


def all_but_the_leader(gang: "Gang", member: Member) -> bool:
    return member != gang.leader


def first_failure(gang: "Gang", failed: Done) -> Doom | None:
    """The first failure that the job does not tolerate."""
    fatal = [member for member in failed if not gang.framework.tolerates(gang, member)]
    first = min(fatal, key=lambda member: (failed[member], gang.rank(member)), default=None)
    return Doom(failed[first], first) if first else None


def each_has_one(_job: TrainingJob) -> bool:
    return True


def none_has_one(_job: TrainingJob) -> bool:
    return False


def those_of_the_container(_job: TrainingJob) -> list[Json]:
    return []


def none_of_its_own(_gang: "Gang", _member: Member) -> dict[str, str]:
    return {}


def nobody(_gang: "Gang", _member: Member) -> bool:
    return False


def none_may_fail(_gang: "Gang", _member: Member) -> bool:
    return False


def plainly_made(_member: Member, pod: str) -> tuple[str, str]:
    return "SuccessfulCreatePod", f"Created pod: {pod}"


def no_companions(_gang: "Gang", _running: Collection[Member]) -> tuple[Companion, ...]:
    return ()


def plain_policy_warning(_member: Member) -> str:
    """The event that tells of a template's own restart policy, which does not count; empty for none."""
    return "SetPodTemplateRestartPolicy"


def no_complaints(_job: TrainingJob) -> list[Cause]:
    return []


def no_warnings(_job: TrainingJob) -> list[str]:
    return []


@dataclass(frozen=True, slots=True)
class Framework:
    """How one framework's members find each other, and when they are done."""

    kind: str
    plural: str
    replicas_field: str
    container: str  # the container whose port, and often environment, is ours to extend
    port_name: str
    port: int
    roles: tuple[str, ...]  # in rank order
    wire: Callable[["Gang", Member], Wiring]
    leading: tuple[tuple[str, ...], ...]  # whose work is the job's: the first group with members, else all
    restart_policy: RestartPolicy = "Never"
    replicas: Mapping[str, int] = field(default_factory=dict)  # of roles that leave them out; 1 elsewhere
    unnumbered: tuple[str, ...] = ()  # roles of a single member, whose name has no index
    services: Callable[[TrainingJob], bool] = (
        each_has_one  # whether each member has one, with the framework's port
    )
    service_stem: Callable[[TrainingJob], str] = stem_of  # what their names begin with
    service_ports: Callable[[TrainingJob], list[Json]] = those_of_the_container
    env_goes_to: Literal["every container", "main container", "first container"] = "every container"
    listeners: Callable[["Gang"], tuple[Member, ...]] = (
        leader_alone  # who opens a port that a machine has once
    )
    spellings: Mapping[str, str] = field(init=False, default_factory=dict)  # a role's label → its name
    counted_as: str = ""  # how metrics call it; its container's name unless said otherwise
    scalable: bool = False  # has the `scale` subresource
    keeps_finalizers: bool = True  # of pod templates
    deletion_told_as: str = (
        "SuccessfulDeletePod"  # the event when a job's time is over; tools know these words
    )
    policy_warning: Callable[[Member], str] = plain_policy_warning
    selector_in_status: bool = False
    others_count_with_leader: bool = False  # once it has ended, nobody else is counted
    columns: tuple[str, ...] = ("State", "Age")
    short_names: tuple[str, ...] = ()
    restart_budget: int | None = None  # how often members are replaced where the manifest does not say
    limits_by_role: bool = False  # each role has a restart limit of its own
    labels: Callable[["Gang", Member], dict[str, str]] = none_of_its_own  # further ones, of a member's pod
    master_role: Callable[["Gang", Member], bool] = leads
    finished_at: Callable[["Gang", Done], datetime | None] = leaders_done
    tolerates: Callable[["Gang", Member], bool] = none_may_fail  # the job goes on without this one
    doomed: Callable[["Gang", Done], Doom | None] = first_failure  # by the members that failed for good
    words: Callable[[TrainingJob], Words] = plain_words
    made: Callable[[Member, str], tuple[str, str]] = plainly_made  # the event of a new pod: reason and text
    companions: Callable[["Gang", Collection[Member]], tuple[Companion, ...]] = no_companions
    companion_kinds: tuple[Kind, ...] = ()
    options: Mapping[str, Schema] = field(default_factory=dict)  # fields of the spec that only this kind has
    required_options: tuple[str, ...] = ()
    refusals: Refusals = Refusals()
    complaints: Callable[[TrainingJob], list[Cause]] = no_complaints
    warnings: Callable[[TrainingJob], list[str]] = no_warnings

    def __post_init__(self) -> None:
        object.__setattr__(self, "spellings", {role.lower(): role for role in self.roles})
        object.__setattr__(self, "counted_as", self.counted_as or self.container)


@dataclass(frozen=True)
class Gang:
    """All members of a job, in rank order, and how to reach each. Plugins ask here and never format an address."""

    job: TrainingJob
    framework: Framework
    domain: str = ""  # the cluster's, where names are to be written out
    shared: dict[object, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @once
    def roles(self) -> tuple[Role, ...]:
        """The roles that have members, in rank order; ones the framework does not know come last."""
        order = {name: rank for rank, name in enumerate(self.framework.roles)}
        present = (role for role in self.job.roles if role.replicas > 0)
        return tuple(sorted(present, key=lambda role: order.get(role.name, len(order))))

    @once
    def members(self) -> tuple[Member, ...]:
        return tuple([Member(role.name, index) for role in self.roles for index in range(role.replicas)])

    @property
    def served(self) -> tuple[Member, ...]:
        """The members that have a service in front of them."""
        return self.members if self.framework.services(self.job) else ()

    @once
    def services(self) -> Mapping[str, Member]:
        """The names of these services, and whose they are."""
        if not self.framework.services(self.job):
            return {}
        stem = self.framework.service_stem(self.job)
        return {self._named(stem, one): one for one in self.members}

    @once
    def due(self) -> tuple[Member, ...]:
        """The members whose work is not done, nor done without: each of them ought to have a pod."""
        done, gone = self.job.status.completed, self.job.status.gone
        if not done and not gone:
            return self.members
        return tuple(
            one
            for one in self.members
            if one.index not in done.get(one.role, ()) and one.index not in gone.get(one.role, ())
        )

    @once
    def leading(self) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.role in self.leading_roles)

    @once
    def size(self) -> int:
        return sum(role.replicas for role in self.roles)

    @once
    def _first_rank(self) -> Mapping[str, int]:
        first, ranks = 0, {}
        for role in self.roles:
            ranks[role.name] = first
            first += role.replicas
        return ranks

    @once
    def _declared_ports(self) -> Mapping[str, int]:
        return {role.name: declared_port(role.template, self.framework) for role in self.job.roles}

    @once
    def leading_roles(self) -> tuple[str, ...]:
        groups = (tuple(name for name in group if self.job.has(name)) for group in self.framework.leading)
        return next((group for group in groups if group), tuple(role.name for role in self.roles))

    @property
    def leader(self) -> Member | None:
        """Where the others meet."""
        return Member(self.leading_roles[0], 0) if self.leading_roles else None

    def count(self, role: str) -> int:
        found = self.job.role(role)
        return found.replicas if found else 0

    def of(self, role: str) -> tuple[Member, ...]:
        """The members of one role, by index."""
        return tuple(Member(role, index) for index in range(self.count(role)))

    def rank(self, member: Member) -> int:
        return self._first_rank[member.role] + member.index

    def name(self, member: Member) -> str:
        """The name of the member's pod."""
        return self._named(self.job.stem or self.job.name, member)

    def service(self, member: Member) -> str:
        """The name of the service in front of it, by which others find it: nearly always the pod's own."""
        return self._named(self.framework.service_stem(self.job), member)

    def _named(self, stem: str, member: Member) -> str:
        role, index = member
        if role in self.framework.unnumbered:
            return f"{stem}-{role.lower()}"
        return f"{stem}-{role.lower()}-{index}"

    def host(self, member: Member) -> str:
        """The member's name as one of another namespace would write it."""
        domain = f".{self.domain}" if self.domain else ""
        return f"{self.service(member)}.{self.job.namespace}.svc{domain}"

    def declared_port(self, member: Member) -> int:
        """The port the manifest names, or the framework's own."""
        return self._declared_ports[member.role]

    def port(self, member: Member) -> int:
        return self.job.ports.get(self.name(member)) or self.declared_port(member)


def per_gang(compute: Callable[[Gang], T]) -> Callable[[Gang], T]:
    """Works out what all members are told alike once for each gang, so that wiring a large one stays linear."""

    @wraps(compute)
    def shared(gang: Gang) -> T:
        if compute not in gang.shared:
            gang.shared[compute] = compute(gang)
        found: T = gang.shared[compute]
        return found

    return shared


def main_container(template: Json, framework: Framework) -> Json:
    """The container the framework is about: the one with its name, else the first."""
    containers: list[Json] = template["spec"]["containers"]
    return next((one for one in containers if one.get("name") == framework.container), containers[0])


def declared_port(template: Json, framework: Framework) -> int:
    ports: list[Json] = main_container(template, framework).get("ports") or []
    named = (port["containerPort"] for port in ports if port.get("name") == framework.port_name)
    return next(named, framework.port)


def must_be_one(job: TrainingJob, role: str, path: str) -> list[Cause]:
    """Complains of a role that may have one member and has another number."""
    found = job.role(role)
    if found is None or found.replicas == 1:
        return []
    problem = f"Forbidden: must be 1, is {found.replicas}"
    hint = "further processes belong in Worker"
    return [Cause(f"{path}[{role}].replicas", problem, "FieldValueForbidden", hint)]


def elastic_needs_workers(job: TrainingJob, path: str) -> list[Cause]:
    if "elasticPolicy" not in job.options or job.role("Worker") is not None:
        return []
    problem = "Required value: must be configured if elastic policy is used"
    return [Cause(f"{path}[Worker]", problem, "FieldValueRequired")]
