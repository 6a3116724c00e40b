"""`metrics.k8s.io`: what pods and the node use at this moment, for `kubectl top` and whoever else knows how to ask."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from fullrank.api.meta import Json, labels_of, name_of, namespace_of, stamp, uid_of
from fullrank.api.scheme import NODE, POD, Kind
from fullrank.client.port import Key
from fullrank.controlplane.questions import Query
from fullrank.controlplane.registry import Registry
from fullrank.errors import NotFound

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
POD_METRICS = Kind(GROUP, VERSION, "PodMetrics", "pods")
NODE_METRICS = Kind(GROUP, VERSION, "NodeMetrics", "nodes", namespaced=False)
METRICS = (POD_METRICS, NODE_METRICS)


class Reading(Protocol):
    @property
    def cores(self) -> float: ...

    @property
    def memory(self) -> int: ...

    @property
    def gpus(self) -> float | None: ...

    @property
    def gpu_memory(self) -> int | None: ...


class Meter(Protocol):
    """Whoever can tell what running containers and the machine use."""

    @property
    def window(self) -> float:
        """Seconds over which CPU time is counted."""

    async def measure(self, pods: Sequence[Json]) -> Sequence[Mapping[str, Reading]]:
        """For each pod what each of its running containers uses; nothing for those of which it is not known."""

    async def machine(self) -> Reading: ...


class Asked(NamedTuple):
    plural: str
    namespace: str = ""
    name: str = ""


def asked_for(rest: list[str]) -> Asked:
    match rest:
        case [("pods" | "nodes") as plural]:
            return Asked(plural)
        case ["nodes", name]:
            return Asked("nodes", "", name)
        case ["namespaces", namespace, "pods"]:
            return Asked("pods", namespace)
        case ["namespaces", namespace, "pods", name]:
            return Asked("pods", namespace, name)
    raise NotFound("the server could not find the requested resource")


async def metrics(registry: Registry, meter: Meter, asked: Asked, query: Query, now: datetime) -> Json:
    """A list, or the one that was asked for by name."""
    kind = POD if asked.plural == "pods" else NODE
    shown = POD_METRICS if asked.plural == "pods" else NODE_METRICS
    if asked.name:
        found = [registry.get(Key(kind, asked.namespace, asked.name)).obj]
    else:
        labels, fields = query.text("labelSelector"), query.text("fieldSelector")
        page = registry.select(kind, asked.namespace, labels=labels, fields=fields)
        found = [record.obj for record in page.records]
    moment = {"timestamp": stamp(now), "window": f"{meter.window:g}s"}
    head = {"kind": shown.kind, "apiVersion": shown.api_version}
    measured = await (_pods(meter, found) if kind is POD else _nodes(meter, found))
    items: list[Json] = [head | {"metadata": _metadata(obj), **moment, **usage} for obj, usage in measured]
    if not asked.name:
        kinds = {"kind": f"{shown.kind}List", "apiVersion": shown.api_version}
        return kinds | {"metadata": {}, "items": items}
    if not items:
        raise NotFound(f'podmetrics.{GROUP} "{asked.name}" not found')
    return items[0]


async def _pods(meter: Meter, pods: Sequence[Json]) -> list[tuple[Json, Json]]:
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
    return [
        (pod, {"containers": [{"name": name, "usage": _amounts(each)} for name, each in usage.items()]})
        for pod, usage in zip(running, await meter.measure(running), strict=True)
        if usage
    ]


async def _nodes(meter: Meter, nodes: Sequence[Json]) -> list[tuple[Json, Json]]:
    usage = _amounts(await meter.machine())
    return [(node, {"usage": usage}) for node in nodes]


def _amounts(reading: Reading) -> Json:
    """GPUs in the units in which they are asked for: cards, and megabytes of them."""
    used = {"cpu": f"{round(reading.cores * 1e9)}n", "memory": f"{reading.memory // 1024}Ki"}
    if reading.gpus is not None:
        used["nvidia.com/gpu"] = f"{round(reading.gpus * 1000)}m"
    if reading.gpu_memory is not None:
        used["nvidia.com/gpumem"] = str(reading.gpu_memory >> 20)
    return used


def _metadata(obj: Json) -> Json:
    metadata: Json = {"name": name_of(obj), "uid": uid_of(obj), "labels": dict(labels_of(obj))}
    return metadata | ({"namespace": namespace_of(obj)} if namespace_of(obj) else {})
