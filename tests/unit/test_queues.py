"""Queues at the door: what Kueue's manifests may say here, and what is wrong with them."""

import pytest

from fullrank.api.meta import Json
from fullrank.api.queues import CLUSTER_QUEUE, LOCAL_QUEUE, QUEUE_KINDS, RESOURCE_FLAVOR
from fullrank.api.scheme import Kind
from fullrank.controlplane.admission import Admission
from fullrank.errors import Invalid

ADMIT = Admission(QUEUE_KINDS)


def a_queue(resource: str = "cpu", quota: str = "4", **spec: object) -> Json:
    flavor = {"name": "default-flavor", "resources": [{"name": resource, "nominalQuota": quota}]}
    group = {"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": [flavor]}
    return {
        "metadata": {"name": "team"},
        "spec": {"resourceGroups": [group], "namespaceSelector": {}, **spec},
    }


def test_a_cluster_queue_gets_kueues_defaults() -> None:
    spec = ADMIT(CLUSTER_QUEUE, a_queue(), None)["spec"]
    assert (spec["queueingStrategy"], spec["stopPolicy"]) == ("BestEffortFIFO", "None")


def test_a_flavor_and_a_local_queue_are_taken() -> None:
    ADMIT(RESOURCE_FLAVOR, {"metadata": {"name": "default-flavor"}}, None)
    ADMIT(LOCAL_QUEUE, {"metadata": {"name": "team"}, "spec": {"clusterQueue": "team"}}, None)


MOVED = {"metadata": {"name": "team"}, "spec": {"clusterQueue": "other"}}
WRONG: dict[str, tuple[Kind, Json, Json | None, str]] = {
    "a quota below zero": (
        CLUSTER_QUEUE, a_queue(quota="-1"), None,
        'spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: Invalid value: "-1": must be 0 or more',
    ),
    "a quota of something that is not covered": (
        CLUSTER_QUEUE, a_queue("memory"), None,
        'spec.resourceGroups[0].flavors[0].resources[0].name: Invalid value: "memory": '
        "is not among the coveredResources of its group",
    ),
    "a choice of namespaces": (
        CLUSTER_QUEUE, a_queue(namespaceSelector={"matchLabels": {"a": "b"}}), None,
        "spec.namespaceSelector: Invalid value: the embedded home lets every namespace use a queue (write {})",
    ),
    "no weight": (
        CLUSTER_QUEUE, a_queue(fairSharing={"weight": "0"}), None,
        "spec.fairSharing.weight: Invalid value: must be more than 0",
    ),
    "a local queue that moves": (
        LOCAL_QUEUE, MOVED, MOVED | {"spec": {"clusterQueue": "team"}},
        'spec.clusterQueue: Invalid value: "other": field is immutable (it is "team"; make another LocalQueue)',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "obj", "old", "text"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told(kind: Kind, obj: Json, old: Json | None, text: str) -> None:
    with pytest.raises(Invalid) as caught:
        ADMIT(kind, obj, old)
    assert [str(cause) for cause in caught.value.causes] == [text]
