"""What a kubelet would do next with a pod, and what it would say of it. Pure: time and everything known come in.

1. Init containers run one after the other, each to success; then the others run together. An init container whose own
   restartPolicy is Always, a sidecar, need only have started before the next one; it runs until all others have ended.
2. What ended is started again if the pod's restartPolicy says so: the first time at once, then after 10 s, doubling up
   to 5 min; a container that ran for 10 min begins that count anew.
3. Nothing is started once the pod is over: asked to go or to stop, past its deadline, or ended for good; what still
   runs is stopped.
4. A phase of Succeeded or Failed is never left again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from fullrank.agent.runtime import Run
from fullrank.api.annotations import STOP
from fullrank.api.meta import Json, annotations_of, is_terminating, name_of, namespace_of, uid_of

FIRST_BACK_OFF = timedelta(seconds=10)
LONGEST_BACK_OFF = timedelta(minutes=5)
FORGIVEN_AFTER = 2 * LONGEST_BACK_OFF
DEFAULT_GRACE = 30


@dataclass(frozen=True, slots=True)
class Delay:
    """Why a container that should run does not yet: an image, a setting, a volume that is not there."""

    reason: str = ""  # "" = it is being prepared, as kubelets put it: ContainerCreating or PodInitializing
    message: str = ""
    until: datetime | None = None  # when to try again


@dataclass(frozen=True, slots=True)
class ContainerRecord:
    runs: tuple[Run, ...] = ()  # oldest first
    delay: Delay = Delay()
    image_id: str = ""
    has_started: bool = True  # by its startup probe and postStart hook, if it has them
    is_well: bool = True  # by its readiness probe, if it has one

    @property
    def latest(self) -> Run | None:
        return self.runs[-1] if self.runs else None

    @property
    def is_running(self) -> bool:
        return self.latest is not None and self.latest.exit is None

    @property
    def is_ready(self) -> bool:
        return self.is_running and self.has_started and self.is_well

    @property
    def has_succeeded(self) -> bool:
        return self.latest is not None and self.latest.exit is not None and self.latest.exit.code == 0

    @property
    def has_failed(self) -> bool:
        return self.latest is not None and self.latest.exit is not None and self.latest.exit.code != 0


@dataclass(frozen=True, slots=True)
class PodRecord:
    """All that is known of a pod on this node, beyond its object."""

    accepted_at: datetime
    containers: Mapping[str, ContainerRecord] = field(default_factory=dict)
    pod_ip: str = ""
    host_ip: str = ""

    def of(self, container: str) -> ContainerRecord:
        return self.containers.get(container, ContainerRecord())

    def having(self, container: str, record: ContainerRecord) -> "PodRecord":
        return replace(self, containers={**self.containers, container: record})

    def running(self) -> tuple[str, ...]:
        return tuple(name for name, record in self.containers.items() if record.is_running)


@dataclass(frozen=True, slots=True)
class Start:
    container: str
    number: int


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do now; with nothing to do, when to look again (None: when something happens)."""

    start: tuple[Start, ...] = ()
    stop: tuple[str, ...] = ()
    grace: float = DEFAULT_GRACE
    wake_at: datetime | None = None
    is_over: bool = False  # nothing runs and nothing ever will


def decide(pod: Json, record: PodRecord, now: datetime) -> Decision:
    """The next step for a pod."""
    if is_leaving(pod, record, now) or _ended_for_good(pod, record):
        return Decision(stop=_next_to_stop(pod, record), grace=_grace(pod), is_over=not record.running())
    starts: list[Start] = []
    alarms = [moment for moment in (_deadline(pod, record),) if moment is not None]
    for name in _due(pod, record):
        container = record.of(name)
        ready_at = max(filter(None, (restart_at(container), container.delay.until)), default=None)
        if ready_at is None or ready_at <= now:
            starts.append(Start(name, len(container.runs)))
        else:
            alarms.append(ready_at)
    return Decision(start=tuple(starts), wake_at=min(alarms, default=None))


def _due(pod: Json, record: PodRecord) -> list[str]:
    """Containers that ought to run and do not."""
    due: list[str] = []
    sidecars = sidecar_names(pod)
    for name in init_names(pod):
        container = record.of(name)
        if not container.is_running and (name in sidecars or not container.has_succeeded):
            due.append(name)
        if not _lets_go_on(pod, record, name):
            return due
    return due + [
        name
        for name in main_names(pod)
        if not (container := record.of(name)).is_running
        and (not container.runs or will_restart(pod, name, container))
    ]


def _lets_go_on(pod: Json, record: PodRecord, name: str) -> bool:
    """Whether what comes after this init container may run."""
    container = record.of(name)
    if name not in sidecar_names(pod):
        return container.has_succeeded
    has_begun = any(record.of(main).runs for main in main_names(pod))
    return has_begun or (container.is_running and container.has_started)


def _next_to_stop(pod: Json, record: PodRecord) -> tuple[str, ...]:
    """Sidecars go after all others, the last one first."""
    sidecars = sidecar_names(pod)
    others = tuple(name for name in record.running() if name not in sidecars)
    return others or tuple(name for name in sidecars if record.of(name).is_running)[-1:]


def will_restart(pod: Json, name: str, container: ContainerRecord) -> bool:
    """Whether a container of the pod (not an init container that succeeded) that has ended is started again."""
    policy = pod["spec"].get("restartPolicy", "Always")
    if name in sidecar_names(pod):
        return True
    return policy == "Always" or (policy == "OnFailure" and container.has_failed)


def is_leaving(pod: Json, record: PodRecord, now: datetime) -> bool:
    """Whether the pod was told to end, whatever its containers would do."""
    return is_terminating(pod) or STOP in annotations_of(pod) or has_passed_deadline(pod, record, now)


def _ended_for_good(pod: Json, record: PodRecord) -> bool:
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return True
    policy = pod["spec"].get("restartPolicy", "Always")
    if policy == "Never" and has_failed_to_begin(pod, record):
        return True
    return is_initialized(pod, record) and all(
        (container := record.of(name)).runs
        and not container.is_running
        and not will_restart(pod, name, container)
        for name in main_names(pod)
    )


def back_off(runs: tuple[Run, ...]) -> timedelta:
    """How long after the end of the latest run the next one waits."""
    delay = timedelta(0)
    for number, run in enumerate(runs):
        if run.exit is None:
            continue
        lasted = run.exit.finished_at - run.started_at if run.exit.reason != "StartError" else timedelta(0)
        if number == 0 or lasted > FORGIVEN_AFTER:
            delay = timedelta(0)
        else:
            delay = min(max(2 * delay, FIRST_BACK_OFF), LONGEST_BACK_OFF)
    return delay


def restart_at(container: ContainerRecord) -> datetime | None:
    """When a container that has ended may start again; None if it never ran."""
    latest = container.latest
    if latest is None or latest.exit is None:
        return None
    return latest.exit.finished_at + back_off(container.runs)


def has_passed_deadline(pod: Json, record: PodRecord, now: datetime) -> bool:
    deadline = _deadline(pod, record)
    return deadline is not None and deadline <= now


def _deadline(pod: Json, record: PodRecord) -> datetime | None:
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return None if seconds is None else record.accepted_at + timedelta(seconds=seconds)


def _grace(pod: Json) -> float:
    asked = pod["metadata"].get("deletionGracePeriodSeconds")
    if asked is None:
        asked = pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
    return float(asked)


def init_names(pod: Json) -> list[str]:
    return [container["name"] for container in pod["spec"].get("initContainers") or []]


def sidecar_names(pod: Json) -> list[str]:
    return [
        container["name"]
        for container in pod["spec"].get("initContainers") or []
        if container.get("restartPolicy") == "Always"
    ]


def main_names(pod: Json) -> list[str]:
    return [container["name"] for container in pod["spec"]["containers"]]


def is_initialized(pod: Json, record: PodRecord) -> bool:
    return all(_lets_go_on(pod, record, name) for name in init_names(pod))


def has_failed_to_begin(pod: Json, record: PodRecord) -> bool:
    sidecars = sidecar_names(pod)
    return any(record.of(name).has_failed for name in init_names(pod) if name not in sidecars)


def title_of(pod: Json) -> str:
    """How kubelets name a pod in messages."""
    return f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
