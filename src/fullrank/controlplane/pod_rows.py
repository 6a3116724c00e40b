"""One line about a pod: how many of its containers are ready, and the one word that says how it is doing."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from fullrank.api.ages import age_of
from fullrank.api.meta import Json, name_of

FINISHED = ("Succeeded", "Failed")


class Word(NamedTuple):
    """What the STATUS column says, and the containers whose restarts it counts."""

    reason: str
    counted: list[Json]


def pod_cells(pod: Json, now: datetime) -> list[Any]:
    spec, status = pod.get("spec", {}), pod.get("status", {})
    statuses = status.get("containerStatuses") or []
    ready = sum(1 for each in statuses if each.get("ready") and "running" in each.get("state", {}))
    word = _word(pod)
    gates = spec.get("readinessGates") or []
    met = sum(1 for gate in gates if _condition(status, gate.get("conditionType")) == "True")
    return [
        name_of(pod),
        f"{ready}/{len(spec.get('containers') or [])}",
        _leaving(pod, word.reason),
        _restarts(word.counted, now),
        age_of(pod["metadata"].get("creationTimestamp"), now),
        status.get("podIP") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        f"{met}/{len(gates)}" if gates else "<none>",
    ]


def _word(pod: Json) -> Word:
    status = pod.get("status", {})
    reason = status.get("reason") or status.get("phase", "")
    if any(each.get("reason") == "SchedulingGated" for each in status.get("conditions") or []):
        reason = "SchedulingGated"
    beginners = status.get("initContainerStatuses") or []
    initializing = _initializing(beginners, len(pod.get("spec", {}).get("initContainers") or []))
    if initializing and _condition(status, "Initialized") != "True":
        return Word(initializing, beginners)
    statuses = status.get("containerStatuses") or []
    for each in reversed(statuses):
        reason = _said(each) or reason
    running = any(each.get("ready") and "running" in each.get("state", {}) for each in statuses)
    if reason == "Completed" and running:
        reason = "Running" if _condition(status, "Ready") == "True" else "NotReady"
    return Word(reason, statuses)


def _initializing(statuses: list[Json], total: int) -> str:
    """What the first init container that is not done is up to; empty when all are done."""
    for position, each in enumerate(statuses):
        state = each.get("state", {})
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if ended is not None:
            return f"Init:{_ending(ended)}"
        if waiting.get("reason") and waiting["reason"] != "PodInitializing":
            return f"Init:{waiting['reason']}"
        return f"Init:{position}/{total}"
    return ""


def _said(status: Json) -> str:
    state = status.get("state", {})
    if reason := (state.get("waiting") or {}).get("reason"):
        return str(reason)
    return _ending(state["terminated"]) if "terminated" in state else ""


def _ending(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _leaving(pod: Json, reason: str) -> str:
    status = pod.get("status", {})
    if "deletionTimestamp" not in pod["metadata"]:
        return reason
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return reason if status.get("phase") in FINISHED else "Terminating"


def _restarts(statuses: Iterable[Json], now: datetime) -> str:
    counted = list(statuses)
    count = sum(each.get("restartCount", 0) for each in counted)
    ends = [
        ended["finishedAt"]
        for each in counted
        if (ended := each.get("lastState", {}).get("terminated")) and ended.get("finishedAt")
    ]
    return f"{count} ({age_of(max(ends), now)} ago)" if count and ends else str(count)


def _condition(status: Json, kind: str | None) -> str:
    return next(
        (each.get("status", "") for each in status.get("conditions") or [] if each.get("type") == kind), ""
    )
