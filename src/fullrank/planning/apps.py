"""What is to be done about a web program, from what there is to see of it: pure, and the same in both homes.

At home its workload is a pod, which the agent restarts when its program crashes; on a cluster it is a Deployment. It
is stopped when nobody has used it for long: that is written into its spec, so that its owner sees it and undoes it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from fullrank.api.annotations import APP, LAST_VISIT, MADE_FROM
from fullrank.api.apps import PORT_NAME, TOKEN_KEY
from fullrank.api.meta import (
    Json,
    annotations_of,
    is_terminating,
    moment_of,
    name_of,
    namespace_of,
    owner_reference,
    stamp,
    uid_of,
)
from fullrank.api.scheme import DEPLOYMENT, POD, SECRET, SERVICE, Kind
from fullrank.dialects.apps import AppKind
from fullrank.errors import Cause
from fullrank.planning.plan import Announcement

IDLE_AFTER = timedelta(hours=1)  # without use
STOPPED_AFTER = timedelta(hours=24)  # of being idle
ASK_AGAIN = timedelta(minutes=10)  # how a program is doing that nobody uses through the Job Center
ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Use:
    """What a program itself says: when it was last used, and whether it is at work right now."""

    last: datetime
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything there is to see of one program."""

    kind: AppKind
    obj: Json
    now: datetime
    pods: tuple[Json, ...] = ()
    service: Json | None = None
    pulls: bool = False  # whether images are pulled; else the built-in catalogue knows some of ours
    port: int = 0  # that its pod is to have on this machine; 0: the program's own
    deploys: bool = False  # whether its workload is a Deployment
    deployment: Json | None = None
    use: Use | None = None  # as it said just now, if it was asked and answered

    @property
    def name(self) -> str:
        return self.kind.service(self.obj)

    @property
    def pod(self) -> Json | None:
        """The one that people are led to: of several, the newest of those that answer."""
        there = [pod for pod in self.pods if not is_terminating(pod)]
        return max(there, key=lambda pod: (answers(pod), _created(pod)), default=None)

    @property
    def before(self) -> Json:
        status: Json = self.obj.get("status") or {}
        return status


@dataclass(frozen=True, slots=True)
class Create:
    kind: Kind
    obj: Json


@dataclass(frozen=True, slots=True)
class Replace:
    kind: Kind
    obj: Json


@dataclass(frozen=True, slots=True)
class Delete:
    kind: Kind
    obj: Json


Action: TypeAlias = Create | Replace | Delete


@dataclass(frozen=True, slots=True)
class AppPlan:
    """What to write and do, in this order."""

    status: Json
    actions: tuple[Action, ...] = ()
    switch_off: bool = False
    announcements: tuple[Announcement, ...] = ()
    wake_after: timedelta | None = None


def answers(pod: Json) -> bool:
    """Whether its program can be reached; a node that says nothing of that is believed that it runs."""
    status: Json = pod.get("status") or {}
    ready = {one.get("type"): one.get("status") for one in status.get("conditions") or ()}.get(
        "Ready", "True"
    )
    return status.get("phase") == "Running" and ready == "True"


def to_be_asked(sight: Sight) -> Json | None:
    """The pod whose program is to be asked when it was last used, since it may be idle by all else that is known."""
    pod = sight.pod
    if not sight.kind.app.has_token or pod is None or not answers(pod) or sight.kind.is_stopped(sight.obj):
        return None
    return pod if sight.now >= _last_used(sight, pod) + IDLE_AFTER else None


def decide(sight: Sight) -> AppPlan:
    if wrong := sight.kind.complaints(sight.obj):
        return _refused(sight, wrong)
    rest = _rest(sight)
    stopping = rest.since is not None and sight.now >= rest.since + STOPPED_AFTER
    stopped = sight.kind.is_stopped(sight.obj)
    missing = () if sight.service else (Create(SERVICE, service_of(sight)),)
    workload = _deployment if sight.deploys else _lone_pod
    return AppPlan(
        status=_status(sight, rest.conditions, stopped=stopped),
        actions=(*missing, *workload(sight, stopped=stopped)),
        switch_off=stopping and not stopped,
        announcements=_news(sight, rest.conditions, stopping=stopping and not stopped),
        wake_after=None if stopped else rest.wake_after,
    )


def _refused(sight: Sight, wrong: list[Cause]) -> AppPlan:
    """On a cluster nobody checks an object when it comes in."""
    text = "; ".join(str(cause) for cause in wrong)
    before: list[Json] = sight.before.get("conditions") or []
    old = next((one for one in before if one["type"] == "Invalid"), None)
    same = old is not None and old.get("message") == text
    condition = old if same else _condition("Invalid", "True", text, {}, sight.now)
    told = () if same else (Announcement("Warning", f"{sight.kind.kind.kind}FailedValidation", text),)
    status = {"phase": "Failed", "url": sight.kind.url(sight.obj), "conditions": [condition]}
    return AppPlan(status, announcements=told)


# -- status --------------------------------------------------------------------------------------------------------


def _status(sight: Sight, conditions: list[Json], *, stopped: bool) -> Json:
    pod = sight.pod
    running = pod is not None and answers(pod)
    status: Json = {
        "phase": "Paused" if stopped else "Running" if running else "Pending",
        "url": sight.kind.url(sight.obj),
    }
    if pod is not None and not stopped:
        reference = {"name": name_of(pod), "uid": uid_of(pod)}
        status["pod"] = {"reference": reference, "phase": (pod.get("status") or {}).get("phase", "Pending")}
    return status | ({"conditions": conditions} if conditions else {})


# -- rest ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rest:
    """Whether it is idle, since when, and when that may be otherwise."""

    conditions: list[Json]
    since: datetime | None = None
    wake_after: timedelta | None = None


def _rest(sight: Sight) -> _Rest:
    before: list[Json] = sight.before.get("conditions") or []
    old = next((one for one in before if one["type"] == "Idle"), {})
    pod = sight.pod
    if pod is None or not answers(pod) or sight.kind.is_stopped(sight.obj):
        return _Rest([old] if old else [])
    if sight.use is not None and sight.use.busy:
        said = _condition("Idle", "False", "It is at work.", old, sight.now)
        return _Rest([said], wake_after=ASK_AGAIN)
    used = _last_used(sight, pod)
    if sight.now < used + IDLE_AFTER:
        said = _condition("Idle", "False", "It is in use.", old, sight.now)
        return _Rest([said], wake_after=used + IDLE_AFTER - sight.now)
    if sight.kind.app.has_token and sight.use is None:
        text = "The program does not say when it was last used, so it is left running."
        return _Rest([_condition("Idle", "Unknown", text, old, sight.now)], wake_after=ASK_AGAIN)
    said = _condition("Idle", "True", f"Nobody has used it since {stamp(used)}.", old, sight.now)
    since = moment_of(said["lastTransitionTime"])
    left = since + STOPPED_AFTER - sight.now
    return _Rest([said], since, min(left, ASK_AGAIN) if sight.kind.app.has_token else left)


def _last_used(sight: Sight, pod: Json) -> datetime:
    """A program that has just been started counts as used: somebody wanted it."""
    started = (pod.get("status") or {}).get("startTime")
    visited = _moment(annotations_of(sight.obj).get(LAST_VISIT, ""))
    known = [visited, _moment(started or ""), sight.use.last if sight.use else None]
    return max((one for one in known if one is not None), default=sight.now)


def _moment(text: str) -> datetime | None:
    """Anybody may write an annotation: nonsense counts as none."""
    try:
        found = moment_of(text)
    except ValueError:
        return None
    return found if found.tzinfo else None


def _condition(type_: str, status: str, message: str, old: Json, now: datetime) -> Json:
    same = old.get("status") == status
    if same and old.get("message") == message:
        return old
    return {
        "type": type_,
        "status": status,
        "message": message,
        "lastTransitionTime": old.get("lastTransitionTime") if same else stamp(now),
        "lastProbeTime": stamp(now),
    }


def _news(sight: Sight, conditions: list[Json], *, stopping: bool) -> tuple[Announcement, ...]:
    if stopping:
        hours = STOPPED_AFTER // timedelta(hours=1)
        text = f"Idle for {hours} hours: stopped. To resume: {sight.kind.resumption(sight.obj)}"
        return (Announcement("Normal", "StoppedIdle", text),)
    was_idle = any(one["status"] == "True" for one in sight.before.get("conditions") or ())
    idle = [one["message"] for one in conditions if one["status"] == "True"]
    return () if was_idle else tuple(Announcement("Normal", "Idle", text) for text in idle)


# -- what ought to exist -------------------------------------------------------------------------------------------


def _lone_pod(sight: Sight, *, stopped: bool) -> tuple[Action, ...]:
    """The next one is made when the one before is gone: both have the same name, and maybe the same files."""
    if not sight.pods:
        return () if stopped else (Create(POD, pod_of(sight)),)
    unwanted = (pod for pod in sight.pods if stopped or _is_done_with(pod, sight))
    return tuple(Delete(POD, pod) for pod in unwanted if not is_terminating(pod))


def _is_done_with(pod: Json, sight: Sight) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ENDED or annotations_of(pod).get(MADE_FROM) != sight.kind.mark(sight.obj)


def _deployment(sight: Sight, *, stopped: bool) -> tuple[Action, ...]:
    found, replicas = sight.deployment, 0 if stopped else 1
    if found is None:
        return () if stopped else (Create(DEPLOYMENT, deployment_of(sight, replicas)),)
    is_same = annotations_of(found).get(MADE_FROM) == sight.kind.mark(sight.obj)
    if is_terminating(found) or (is_same and found["spec"].get("replicas") == replicas):
        return ()
    if is_same:
        return (Replace(DEPLOYMENT, found | {"spec": found["spec"] | {"replicas": replicas}}),)
    wanted = deployment_of(sight, replicas)
    metadata = found["metadata"] | {"annotations": annotations_of(found) | wanted["metadata"]["annotations"]}
    return (Replace(DEPLOYMENT, wanted | {"metadata": metadata}),)


def service_of(sight: Sight) -> Json:
    """Without an address of its own, so that its name leads to the pod in either home."""
    port = {"name": PORT_NAME, "port": sight.kind.port, "targetPort": PORT_NAME}
    spec = {"clusterIP": "None", "selector": _label(sight), "ports": [port]}
    return _child(sight, SERVICE) | {"spec": spec}


def pod_of(sight: Sight) -> Json:
    template = _template(sight)
    made = _child(sight, POD, annotations=template["metadata"].get("annotations"))
    made["metadata"]["labels"] = template["metadata"]["labels"] | _label(sight)
    return made | {"spec": template["spec"] | {"restartPolicy": "Always"}}


def deployment_of(sight: Sight, replicas: int) -> Json:
    """Two pods at once would share a volume, and a kernel's files with it: the old one goes first."""
    template = _template(sight)
    template["metadata"]["labels"] = template["metadata"]["labels"] | _label(sight)
    spec = {
        "replicas": replicas,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": _label(sight)},
        "template": template,
    }
    return _child(sight, DEPLOYMENT) | {"spec": spec}


def secret_of(sight: Sight, token: str) -> Json:
    """What lets the Job Center in."""
    return _child(sight, SECRET) | {"type": "Opaque", "stringData": {TOKEN_KEY: token}}


def _template(sight: Sight) -> Json:
    image = sight.kind.pulled_image if sight.pulls else sight.kind.image
    return sight.kind.template(sight.kind, sight.obj, image, sight.port or sight.kind.port)


def _child(sight: Sight, kind: Kind, annotations: Json | None = None) -> Json:
    mark = {MADE_FROM: sight.kind.mark(sight.obj)} if kind in (POD, DEPLOYMENT) else {}
    metadata: Json = {
        "name": sight.name,
        "namespace": namespace_of(sight.obj),
        "labels": _label(sight),
        "ownerReferences": [owner_reference(sight.obj)],
    }
    noted = (annotations or {}) | mark
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": metadata | ({"annotations": noted} if noted else {}),
    }


def _label(sight: Sight) -> dict[str, str]:
    return {APP: sight.name}


def _created(pod: Json) -> str:
    created: str = pod["metadata"].get("creationTimestamp") or ""
    return created
