"""A pod's status from what is known of it, field by field as kubelets write it. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from fullrank.agent.pod_states import (
    PodRecord,
    back_off,
    has_failed_to_begin,
    has_passed_deadline,
    init_names,
    is_initialized,
    is_leaving,
    main_names,
    restart_at,
    sidecar_names,
    title_of,
    will_restart,
)
from fullrank.agent.runtime import Run
from fullrank.api.annotations import STOP
from fullrank.api.meta import Json, annotations_of, is_terminating, stamp

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]
OVER = ("Succeeded", "Failed")


def pod_status(pod: Json, record: PodRecord, now: datetime) -> Json:
    """The whole status; conditions keep the time of their last change, and those of others are kept as they are."""
    old: Json = pod.get("status") or {}
    phase = phase_of(pod, record, now)
    status: Json = {"phase": phase}
    if phase == "Failed" and old.get("phase") != "Failed":
        status |= _why_failed(pod, record, now)
    status["conditions"] = _conditions(pod, record, phase, now)
    if record.host_ip:
        status |= {"hostIP": record.host_ip, "hostIPs": [{"ip": record.host_ip}]}
    if record.pod_ip:
        status |= {"podIP": record.pod_ip, "podIPs": [{"ip": record.pod_ip}]}
    status["startTime"] = old.get("startTime") or stamp(record.accepted_at)
    for field, section in (("initContainerStatuses", "initContainers"), ("containerStatuses", "containers")):
        if pod["spec"].get(section):
            status[field] = [_container_status(pod, record, spec, now) for spec in pod["spec"][section]]
    status["qosClass"] = old.get("qosClass") or qos_class(pod)
    return status


def _why_failed(pod: Json, record: PodRecord, now: datetime) -> Json:
    if has_passed_deadline(pod, record, now):
        return {
            "reason": "DeadlineExceeded",
            "message": "Pod was active on the node longer than the specified deadline",
        }
    if why := annotations_of(pod).get(STOP):
        return {"reason": "Stopped", "message": why}
    return {}


def phase_of(pod: Json, record: PodRecord, now: datetime) -> Phase:
    old = (pod.get("status") or {}).get("phase")
    if old in OVER:
        ended: Phase = "Succeeded" if old == "Succeeded" else "Failed"
        return ended
    mains = [record.of(name) for name in main_names(pod)]
    policy = pod["spec"].get("restartPolicy", "Always")
    if is_leaving(pod, record, now) and not record.running():
        return "Succeeded" if all(container.has_succeeded for container in mains) else "Failed"
    if not is_initialized(pod, record):
        return "Failed" if policy == "Never" and has_failed_to_begin(pod, record) else "Pending"
    if any(not container.runs for container in mains):
        return "Pending"
    if policy == "Always" or record.running():
        return "Running"
    if all(container.has_succeeded for container in mains):
        return "Succeeded"
    return "Failed" if policy == "Never" else "Running"


def _conditions(pod: Json, record: PodRecord, phase: Phase, now: datetime) -> list[Json]:
    sidecars = sidecar_names(pod)
    unready = [name for name in (*sidecars, *main_names(pod)) if not record.of(name).is_ready]
    waiting = [
        name for name in init_names(pod) if name not in sidecars and not record.of(name).has_succeeded
    ] + [name for name in sidecars if not record.of(name).runs]
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(phase)
    ready = {"status": "True"}
    if over:
        ready = {"status": "False", "reason": over}
    elif unready:
        message = f"containers with unready status: [{' '.join(unready)}]"
        ready = {"status": "False", "reason": "ContainersNotReady", "message": message}
    initialized = {"status": "True"} | ({"reason": "PodCompleted"} if phase == "Succeeded" else {})
    if waiting:
        message = f"containers with incomplete status: [{' '.join(waiting)}]"
        initialized = {"status": "False", "reason": "ContainersNotInitialized", "message": message}
    begun = bool(record.pod_ip) and not over
    wanted: Mapping[str, Json] = {
        "PodReadyToStartContainers": {"status": str(begun)},
        "Initialized": initialized,
        "Ready": ready,
        "ContainersReady": ready,
        "PodScheduled": {"status": "True"},
    }
    old: dict[str, Json] = {
        condition["type"]: condition for condition in (pod.get("status") or {}).get("conditions") or []
    }
    ours = [_condition(kind, fields, old.get(kind), now) for kind, fields in wanted.items()]
    return ours + [condition for kind, condition in old.items() if kind not in wanted]


def _condition(kind: str, fields: Json, old: Json | None, now: datetime) -> Json:
    unchanged = old is not None and old.get("status") == fields["status"] and "lastTransitionTime" in old
    since = old["lastTransitionTime"] if old is not None and unchanged else stamp(now)
    return {"type": kind, "lastTransitionTime": since} | fields


def _container_status(pod: Json, record: PodRecord, spec: Json, now: datetime) -> Json:
    name = spec["name"]
    container = record.of(name)
    must_succeed = name in init_names(pod) and name not in sidecar_names(pod)
    state, last = _states(pod, record, name, now)
    status: Json = {
        "name": name,
        "state": state,
        "lastState": last,
        "ready": container.has_succeeded if must_succeed else container.is_ready,
        "restartCount": max(len(container.runs) - 1, 0),
        "image": spec.get("image", ""),
        "imageID": container.image_id,
        "started": container.is_running and container.has_started,
    }
    if container.latest is not None:
        status["containerID"] = _container_id(container.latest)
    return status


def _states(pod: Json, record: PodRecord, name: str, now: datetime) -> tuple[Json, Json]:
    """A container's state, and the one before it."""
    container = record.of(name)
    previous = [terminated(run) for run in container.runs[:-1] if run.exit][-1:]
    last = {"terminated": previous[0]} if previous else {}
    latest = container.latest
    if latest is None:
        default = "PodInitializing" if init_names(pod) else "ContainerCreating"
        return {"waiting": _waiting(container.delay.reason or default, container.delay.message)}, last
    if latest.exit is None:
        return {"running": {"startedAt": stamp(latest.started_at)}}, last
    ended = {"terminated": terminated(latest)}
    again = restart_at(container)
    done_init = name in init_names(pod) and name not in sidecar_names(pod) and container.has_succeeded
    if (
        phase_of(pod, record, now) in OVER
        or is_terminating(pod)
        or done_init
        or not will_restart(pod, name, container)
    ):
        return ended, last
    if container.delay.reason:
        return {"waiting": _waiting(container.delay.reason, container.delay.message)}, ended
    if again is not None and again > now:
        delay = go_duration(back_off(container.runs))
        message = f"back-off {delay} restarting failed container={name} pod={title_of(pod)}"
        return {"waiting": _waiting("CrashLoopBackOff", message)}, ended
    return ended, last


def terminated(run: Run) -> Json:
    if run.exit is None:
        raise ValueError(f"{run.attempt} still runs")
    state: Json = {
        "exitCode": run.exit.code,
        "reason": run.exit.reason or ("Completed" if run.exit.code == 0 else "Error"),
        "startedAt": stamp(run.exit.started_at),
        "finishedAt": stamp(run.exit.finished_at),
        "containerID": _container_id(run),
    }
    return state | ({"message": run.exit.message} if run.exit.message else {})


def _container_id(run: Run) -> str:
    return f"{run.engine}://{run.attempt.pod_uid}/{run.attempt.container}/{run.attempt.number}"


def _waiting(reason: str, message: str) -> Json:
    return {"reason": reason} | ({"message": message} if message else {})


def go_duration(delay: timedelta) -> str:
    """`10s`, `1m20s`, `5m0s`: as Go prints them, and so everybody greps for them."""
    minutes, seconds = divmod(int(delay.total_seconds()), 60)
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def qos_class(pod: Json) -> str:
    containers = [*(pod["spec"].get("initContainers") or []), *pod["spec"]["containers"]]
    asked = [spec.get("resources") or {} for spec in containers]
    amounts = [(side.get("requests") or {}, side.get("limits") or {}) for side in asked]
    if not any(resource in side for pair in amounts for side in pair for resource in ("cpu", "memory")):
        return "BestEffort"
    guaranteed = all(
        resource in limits and requests.get(resource, limits[resource]) == limits[resource]
        for requests, limits in amounts
        for resource in ("cpu", "memory")
    )
    return "Guaranteed" if guaranteed else "Burstable"
