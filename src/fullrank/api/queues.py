"""Queues as Kueue writes them, as far as the embedded home's scheduler reads them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from fullrank.api.meta import Json
from fullrank.api.quantity import amount
from fullrank.api.schema import (
    Schema,
    array,
    integer,
    mapping,
    obj,
    quantity,
    string,
    timestamp,
    whole_object,
)
from fullrank.api.scheme import Column, Kind
from fullrank.errors import Cause

GROUP, VERSION = "kueue.x-k8s.io", "v1beta1"
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
_AGE = Column("Age", ".metadata.creationTimestamp", type="date")
_PENDING = Column("Pending Workloads", ".status.pendingWorkloads", type="integer")
_ADMITTED = Column("Admitted Workloads", ".status.admittedWorkloads", type="integer")
CLUSTER_QUEUE = Kind(
    GROUP, VERSION, "ClusterQueue", "clusterqueues", namespaced=False, short_names=("cq",), subresources=("status",),
    columns=(Column("Strategy", ".spec.queueingStrategy"), _PENDING, _ADMITTED, _AGE),
)  # fmt: skip
LOCAL_QUEUE = Kind(
    GROUP, VERSION, "LocalQueue", "localqueues", short_names=("queue", "queues", "lq"), subresources=("status",),
    columns=(Column("ClusterQueue", ".spec.clusterQueue"), _PENDING, _ADMITTED, _AGE),
)  # fmt: skip
RESOURCE_FLAVOR = Kind(
    GROUP, VERSION, "ResourceFlavor", "resourceflavors", namespaced=False, short_names=("flavor", "flavors", "rf"),
    columns=(_AGE,),
)  # fmt: skip
STOP = string("None", "Hold", default="None", description="Hold: nothing of this queue is started.")


def _cluster_queue() -> Schema:
    share = obj(
        {"name": string(), "nominalQuota": quantity(description="How much of it the queue may use.")},
        required=("name", "nominalQuota"),
    )
    flavor = obj(
        {"name": string(description="A ResourceFlavor."), "resources": array(share, key="name")},
        required=("name", "resources"),
    )
    covered = {
        "coveredResources": array(string()),
        "flavors": array(flavor, description="Quotas of one resource in several flavors add up."),
    }
    preemption = {
        "withinClusterQueue": string(
            "Never", "LowerPriority", "LowerOrNewerEqualPriority", default="Never",
            description="Whose jobs of this queue are suspended when another one lacks quota.",
        )
    }  # fmt: skip
    spec = {
        "resourceGroups": array(obj(covered, required=("coveredResources", "flavors"))),
        "namespaceSelector": obj(
            {"matchLabels": mapping(string()), "matchExpressions": array(obj())},
            description="Only {}, every namespace, in the embedded home.",
        ),
        "queueingStrategy": string("BestEffortFIFO", "StrictFIFO", default="BestEffortFIFO"),
        "preemption": obj(preemption),
        "fairSharing": obj({"weight": quantity(description="A queue of weight 2 gets twice the share.")}),
        "stopPolicy": STOP,
    }
    return whole_object(
        obj(spec), _queue_status("flavorsUsage"), description="ClusterQueue: quotas for jobs."
    )


def _local_queue() -> Schema:
    spec = {"clusterQueue": string(description="The ClusterQueue whose quotas count."), "stopPolicy": STOP}
    return whole_object(
        obj(spec, required=("clusterQueue",)),
        _queue_status("flavorUsage"),
        description="LocalQueue: what jobs of a namespace name in the label kueue.x-k8s.io/queue-name.",
        required=True,
    )


def _resource_flavor() -> Schema:
    spec = {
        "nodeLabels": mapping(string(), description="Not looked at in the embedded home: it is one machine.")
    }
    return whole_object(obj(spec), description="ResourceFlavor: a sort of machine that quotas name.")


def _queue_status(usage: str) -> Schema:
    texts = {name: string() for name in ("type", "status", "reason", "message")}
    condition = obj(texts | {"lastTransitionTime": timestamp()}, required=("type", "status"))
    used = obj({"name": string(), "total": quantity()}, required=("name",))
    flavor = obj({"name": string(), "resources": array(used, key="name")}, required=("name",))
    return obj(
        {
            "pendingWorkloads": integer(),
            "reservingWorkloads": integer(),
            "admittedWorkloads": integer(),
            usage: array(flavor, key="name"),
            "conditions": array(condition, key="type"),
        }
    )


@dataclass(frozen=True)
class QueueKind:
    """One of the kinds, as the door admits it."""

    kind: Kind

    @cached_property
    def schema(self) -> Schema:
        return SCHEMAS[self.kind]()

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:
        if self.kind == LOCAL_QUEUE:
            return _moved(obj, old)
        return _about_quotas(obj) if self.kind == CLUSTER_QUEUE else []

    def warnings(self, _obj: Json) -> list[str]:
        return []


SCHEMAS = {CLUSTER_QUEUE: _cluster_queue, LOCAL_QUEUE: _local_queue, RESOURCE_FLAVOR: _resource_flavor}
QUEUE_KINDS = tuple(QueueKind(kind) for kind in SCHEMAS)


def _moved(obj: Json, old: Json | None) -> list[Cause]:
    now, before = obj["spec"]["clusterQueue"], ((old or {}).get("spec") or {}).get("clusterQueue")
    if before in (None, now):
        return []
    hint = f'it is "{before}"; make another LocalQueue'
    return [Cause("spec.clusterQueue", f'Invalid value: "{now}": field is immutable', hint=hint)]


def _about_quotas(obj: Json) -> list[Cause]:
    spec: Json = obj.get("spec") or {}
    found = []
    if spec.get("namespaceSelector"):
        problem = "Invalid value: the embedded home lets every namespace use a queue"
        found.append(Cause("spec.namespaceSelector", problem, hint="write {}"))
    if "fairSharing" in spec and amount((spec["fairSharing"] or {}).get("weight", 1)) <= 0:
        found.append(Cause("spec.fairSharing.weight", "Invalid value: must be more than 0"))
    for path, covered, share in _quotas(spec):
        if amount(share["nominalQuota"]) < 0:
            problem = f'Invalid value: "{share["nominalQuota"]}": must be 0 or more'
            found.append(Cause(f"{path}.nominalQuota", problem))
        if share["name"] not in covered:
            problem = f'Invalid value: "{share["name"]}": is not among the coveredResources of its group'
            found.append(Cause(f"{path}.name", problem))
    return found


def _quotas(spec: Json) -> list[tuple[str, list[str], Mapping[str, str]]]:
    return [
        (f"spec.resourceGroups[{g}].flavors[{f}].resources[{r}]", group["coveredResources"], share)
        for g, group in enumerate(spec.get("resourceGroups") or [])
        for f, flavor in enumerate(group["flavors"])
        for r, share in enumerate(flavor["resources"])
    ]
