"""What is used, by whom: as `kubectl top` asks for it."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count

import pytest
from multidict import MultiDict

from fullrank.agent.gpu_usage import CardUsage, parsed_usage
from fullrank.agent.meter import Meter, Reading
from fullrank.agent.runtime import Attempt, Usage
from fullrank.api.annotations import DEVICES
from fullrank.api.meta import Json
from fullrank.api.scheme import CORE_KINDS, NAMESPACE, NODE, POD, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controlplane.metrics_route import Asked, asked_for, metrics
from fullrank.controlplane.questions import Query
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.store import Store
from fullrank.errors import NotFound
from tests.doubles.runtime import PretendedRuntime

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Busy(PretendedRuntime):
    """Every look at a container finds that it worked for another second."""

    seconds = 0.0

    def usage(self, attempt: Attempt) -> Usage | None:
        self.seconds += 1
        return Usage(self.seconds, 5 << 20) if attempt.container == "main" else None


def a_pod(uid: str = "u1") -> Json:
    running: list[Json] = [
        {"name": name, "state": {"running": {}}, "restartCount": 2} for name in ("main", "nobody-counts")
    ]
    over = {"name": "over", "state": {"terminated": {}}, "restartCount": 0}
    spec = {"containers": [{"name": name} for name in ("main", "nobody-counts", "over")]}
    return {"metadata": {"uid": uid}, "spec": spec, "status": {"containerStatuses": [*running, over]}}


async def test_cpu_is_counted_over_a_while_and_memory_at_its_end() -> None:
    (found,) = await Meter(Busy(ManualClock()), window=0.001).measure([a_pod()])
    assert found.keys() == {"main"}
    assert found["main"].memory == 5 << 20
    assert found["main"].cores > 0


async def test_a_container_is_shown_what_its_own_cards_do() -> None:
    cards = parsed_usage("GPU-a, 87, 1024\nGPU-b, [N/A], 3\nGPU-c, 50, 7\n\n")
    assert cards == {
        "GPU-a": CardUsage(0.87, 1 << 30),
        "GPU-b": CardUsage(0.0, 3 << 20),
        "GPU-c": CardUsage(0.5, 7 << 20),
    }
    pod, meter = a_pod(), Meter(Busy(ManualClock()), window=0.001, cards=lambda: cards)
    assert ((await meter.measure([pod]))[0]["main"]).gpus is None
    pod["metadata"]["annotations"] = {DEVICES: "GPU-a,GPU-c"}
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 2}}
    found = (await meter.measure([pod]))[0]["main"]
    assert found.gpus == pytest.approx(1.37)
    assert found.gpu_memory == 1031 << 20


async def test_the_machine_uses_something() -> None:
    assert (await Meter(Busy(ManualClock()), window=0.001).machine()).memory > 0


@dataclass
class Pretended:
    window: float = 0.5

    async def measure(self, pods: Sequence[Json]) -> list[Mapping[str, Reading]]:
        known: Mapping[str, Reading] = {"main": Reading(0.25, 3 << 20, 0.875, 5 << 30)}
        return [known if pod["metadata"]["name"] == "one" else {} for pod in pods]

    async def machine(self) -> Reading:
        return Reading(1.5, 1 << 30)


@pytest.fixture
async def registry() -> AsyncIterator[Registry]:
    numbers = count(1)
    store = Store(":memory:", inline=True)
    registry = Registry(store, Scheme(CORE_KINDS), ManualClock(), lambda: f"uid-{next(numbers)}")
    await registry.create(NAMESPACE, {"metadata": {"name": "default"}})
    await registry.create(NODE, {"metadata": {"name": "here"}})
    for name in ("one", "two"):
        spec = {"containers": [{"name": "main", "image": "i"}]}
        pod = await registry.create(
            POD, {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}, namespace="default"
        )
        running = pod | {"status": {"phase": "Running"}}
        await registry.replace(Key(POD, "default", name), running, subresource="status")
    yield registry
    store.close()


ASKED = {
    "pods": Asked("pods"),
    "namespaces/default/pods": Asked("pods", "default"),
    "namespaces/default/pods/one": Asked("pods", "default", "one"),
    "nodes": Asked("nodes"),
    "nodes/here": Asked("nodes", "", "here"),
}


@pytest.mark.parametrize("path", ASKED)
def test_paths_of_the_metrics_api(path: str) -> None:
    assert asked_for(path.split("/")) == ASKED[path]


def test_other_paths_lead_nowhere() -> None:
    with pytest.raises(NotFound):
        asked_for(["pods", "one"])


async def test_a_node_uses_what_its_machine_does(registry: Registry) -> None:
    found = await metrics(registry, Pretended(), Asked("nodes", "", "here"), Query(MultiDict()), NOW)
    assert found["usage"] == {"cpu": "1500000000n", "memory": "1048576Ki"}
    assert (found["window"], found["kind"]) == ("0.5s", "NodeMetrics")


async def test_pods_that_run_are_listed_with_what_is_known_of_them(registry: Registry) -> None:
    found = await metrics(registry, Pretended(), Asked("pods", "default"), Query(MultiDict()), NOW)
    (item,) = found["items"]
    assert (found["kind"], item["metadata"]["name"], item["metadata"]["labels"]) == (
        "PodMetricsList",
        "one",
        {"app": "one"},
    )
    assert item["containers"] == [
        {
            "name": "main",
            "usage": {
                "cpu": "250000000n",
                "memory": "3072Ki",
                "nvidia.com/gpu": "875m",
                "nvidia.com/gpumem": "5120",
            },
        }
    ]
    chosen = Query(MultiDict(labelSelector="app=two"))
    assert (await metrics(registry, Pretended(), Asked("pods"), chosen, NOW))["items"] == []
    with pytest.raises(NotFound, match='"two" not found'):
        await metrics(registry, Pretended(), Asked("pods", "default", "two"), Query(MultiDict()), NOW)
