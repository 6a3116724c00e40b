"""What is going wrong in a pod that has not ended, in the words of the events that jobs have always told it with."""

from collections.abc import Iterator

from fullrank.api.meta import Json, name_of


def troubles(pod: Json) -> list[tuple[str, str]]:
    """Reason and message of everything that is wrong: containers that ended badly or cannot start, no place to run."""
    status: Json = pod.get("status") or {}
    if status.get("phase") in ("Succeeded", "Failed"):
        return []
    states: list[Json] = [
        *(status.get("initContainerStatuses") or ()),
        *(status.get("containerStatuses") or ()),
    ]
    return list(_of_containers(name_of(pod), states) if states else _of_the_pod(name_of(pod), status))


def _of_containers(pod: str, states: list[Json]) -> Iterator[tuple[str, str]]:
    for one in states:
        state: Json = one.get("state") or {}
        ended, waiting = state.get("terminated") or {}, state.get("waiting") or {}
        about = f"Error pod {pod} container {one['name']}"
        if ended.get("exitCode"):
            text = f"exitCode: {ended['exitCode']} terminated message: {ended.get('message', '')}"
            yield ended.get("reason") or "Error", f"{about} {text}"
        if waiting.get("message") and waiting.get("reason") not in PREPARING:
            yield waiting.get("reason") or "Waiting", f"{about} waiting message: {waiting['message']}"


def _of_the_pod(pod: str, status: Json) -> Iterator[tuple[str, str]]:
    conditions: list[Json] = status.get("conditions") or []
    latest = max(conditions, key=lambda one: one.get("lastTransitionTime") or "", default={})
    if latest and latest.get("status") != "True" and latest.get("message"):
        yield (
            latest.get("reason") or latest["type"],
            f"Error pod {pod} condition message: {latest['message']}",
        )


PREPARING = ("ContainerCreating", "PodInitializing")  # progress, not trouble: its message says how far it is
