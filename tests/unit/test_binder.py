"""The binder with the job controller on the real store; the agent is pretended: bound pods run, leaving ones leave."""

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from fullrank.api.annotations import DEVICES, PREEMPTED_BY
from fullrank.api.meta import Json, annotations_of, is_terminating, name_of, stamp, uid_of
from fullrank.api.queues import CLUSTER_QUEUE, LOCAL_QUEUE, QUEUE_KINDS, RESOURCE_FLAVOR
from fullrank.api.scheme import EVENT, NODE, POD, PRIORITY_CLASS, Kind, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controllers.binder import Binder
from fullrank.controllers.jobs import JobController
from fullrank.controllers.lookout import Lookout
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.collector import Collector
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.store import Store
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import Conflict, NotFound
from tests.build import a_template

pytestmark = pytest.mark.anyio

PYTORCH = next(one.kind for one in JOB_KINDS if one.kind.kind == "PyTorchJob")
GPU = "nvidia.com/gpu"
PATIENCE = 20  # seconds; only a failure takes that long


@dataclass
class World:
    client: LocalClient
    clock: ManualClock
    store: Store
    lookout: Lookout

    async def node(self, name: str = "box", **resources: str) -> None:
        offer = {"cpu": "64", "memory": "64Gi", "pods": "1000"} | {
            key.replace("_", ".com/"): amount for key, amount in resources.items()
        }
        status = {
            "allocatable": offer,
            "capacity": offer,
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        await self.client.create(NODE, {"metadata": {"name": name}, "status": status})

    async def submit(
        self, name: str, workers: int = 0, *, gpus: int = 0, queue: str = "", **spec: Any
    ) -> Key:
        limits = {GPU: gpus} if gpus else {}
        template = a_template("pytorch", resources={"limits": limits | spec.pop("limits", {})})
        template["spec"] |= spec.pop("pod", {})
        replica = {"template": template, "restartPolicy": spec.pop("restart", "OnFailure")}
        roles = {"Master": replica} | ({"Worker": replica | {"replicas": workers}} if workers else {})
        labels = {"kueue.x-k8s.io/queue-name": queue} if queue else {}
        job = {
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"pytorchReplicaSpecs": roles, **spec},
        }
        self.clock.advance(1)
        return Key.of(PYTORCH, await self.client.create(PYTORCH, job))

    async def make(self, kind: Kind, name: str, **fields: Any) -> None:
        metadata = {"name": name} | ({"namespace": "default"} if kind.namespaced else {})
        await self.client.create(kind, {"metadata": metadata, **fields})

    async def queue(self, name: str, quota: dict[str, str], **spec: Any) -> None:
        """A ClusterQueue with these quotas, and the LocalQueue of the same name."""
        shares = [{"name": resource, "nominalQuota": amount} for resource, amount in quota.items()]
        group = {"coveredResources": list(quota), "flavors": [{"name": "any", "resources": shares}]}
        await self.make(
            CLUSTER_QUEUE, name, spec={"resourceGroups": [group], "namespaceSelector": {}, **spec}
        )
        await self.make(LOCAL_QUEUE, name, spec={"clusterQueue": name})

    async def finish(self, job: str) -> None:
        """All its pods succeed."""
        for pod in await self.pods(job):
            end = {"terminated": {"exitCode": 0, "finishedAt": stamp(self.clock.now())}}
            state = {
                "name": "pytorch",
                "restartCount": 0,
                "ready": False,
                "image": "",
                "imageID": "",
                "state": end,
            }
            status = {"phase": "Succeeded", "containerStatuses": [state]}
            await self.client.patch(Key.of(POD, pod), {"status": status}, subresource="status")

    async def pods(self, job: str) -> list[Json]:
        listing = await self.client.select(POD, labels=f"training.kubeflow.org/job-name={job}")
        return listing.items

    async def seats(self, job: str) -> list[str]:
        return [pod["spec"].get("nodeName", "") for pod in await self.pods(job)]

    async def events(self, job: str) -> list[str]:
        found = (await self.client.select(EVENT, "default")).items
        mine = [one for one in found if one["involvedObject"]["name"] == job]
        return [
            f"{one['reason']}: {one['message']}"
            for one in mine
            if one["source"]["component"] == "fullrank-scheduler"
        ]

    async def until(self, wanted: Callable[[], Awaitable[bool]]) -> None:
        with anyio.fail_after(PATIENCE):
            while not await wanted():
                await self.settled()

    async def until_running(self, job: str, pods: int = 1) -> None:
        async def runs() -> bool:
            found = await self.pods(job)
            return len(found) == pods and all(pod["status"]["phase"] == "Running" for pod in found)

        await self.until(runs)

    async def until_waiting(self, job: str, reason: str) -> None:
        """Its event says so, and the condition of every pod; none is seated."""

        async def says() -> bool:
            pods = await self.pods(job)
            told = f"FailedScheduling: {reason}" in await self.events(job)
            return told and all(_why(pod) == reason for pod in pods)

        try:
            await self.until(says)
        except TimeoutError:
            pytest.fail(f"{job} says {await self.events(job)} {[_why(pod) for pod in await self.pods(job)]}")
        assert not any(await self.seats(job))

    async def settled(self) -> None:
        """Nothing happens any more."""
        quiet, before = 0, -1
        with anyio.fail_after(PATIENCE):
            while quiet < 50:
                await anyio.lowlevel.checkpoint()
                quiet = quiet + 1 if self.store.revision == before else 0
                before = self.store.revision


def _why(pod: Json) -> str:
    conditions = {one["type"]: one for one in (pod.get("status") or {}).get("conditions") or []}
    found = conditions.get("PodScheduled") or {}
    return found["message"] if found.get("reason") == "Unschedulable" else ""


class PretendedAgent:
    """Bound pods run at once; pods that are to go are gone."""

    def __init__(self, client: LocalClient, lookout: Lookout) -> None:
        self._client = client
        self._changed, self._pods = anyio.create_memory_object_stream[Json](math.inf)
        lookout.pods.listen(lambda _, new: self._changed.send_nowait(new) if new else None)

    async def run(self) -> None:
        async with self._changed, self._pods:
            async for pod in self._pods:
                try:
                    await self._tend(pod)
                except (NotFound, Conflict):
                    continue

    async def _tend(self, pod: Json) -> None:
        key = Key.of(POD, pod)
        if is_terminating(pod):
            await self._client.delete(key, uid=uid_of(pod), grace=0)
        elif pod["spec"].get("nodeName") and pod["status"].get("phase") == "Pending":
            await self._client.patch(key, {"status": {"phase": "Running"}}, subresource="status")


@asynccontextmanager
async def a_world(*, cpu_overcommit: float = 10) -> AsyncIterator[World]:
    clock, numbers = ManualClock(), count(1)
    store = Store(":memory:", inline=True)
    admission = Admission((*JOB_KINDS, *QUEUE_KINDS))
    scheme = Scheme(admission.kinds)
    registry = Registry(store, scheme, clock, lambda: f"uid-{next(numbers)}", admission)
    await ensure_namespaces(registry)
    client = LocalClient(registry)
    lookout = Lookout(client, JOB_KINDS)
    parts = (
        lookout, Collector(client, scheme), JobController(client, lookout, clock), PretendedAgent(client, lookout),
        Binder(client, lookout, clock, cpu_overcommit=cpu_overcommit),
    )  # fmt: skip
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(part.run)
        yield World(client, clock, store, lookout)
        tasks.cancel_scope.cancel()
    store.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as world:
        yield world


# -- gangs ---------------------------------------------------------------------------------------------------------


async def test_64_ranks_start_together_each_with_a_gpu_of_its_own(world: World) -> None:
    await world.node(nvidia_gpu="64")
    await world.submit("wide", 63, gpus=1)
    await world.until_running("wide", 64)
    devices = {name_of(pod): annotations_of(pod)[DEVICES] for pod in await world.pods("wide")}
    assert sorted(devices.values(), key=int) == [str(number) for number in range(64)]
    assert [devices[f"wide-worker-{index}"] for index in range(63)] == [str(number) for number in range(63)]


async def test_with_room_for_63_of_64_ranks_none_starts_and_the_job_says_who_holds_the_missing_one(
    world: World,
) -> None:
    await world.node(nvidia_gpu="64")
    await world.submit("bert", gpus=1)
    await world.until_running("bert")
    await world.submit("wide", 63, gpus=1)
    await world.until_waiting("wide", "needs 64 nvidia.com/gpu, 63 free of 64; held by default/bert (1)")
    await world.finish("bert")
    await world.until_running("wide", 64)


async def test_two_jobs_that_each_need_everything_run_one_after_the_other(world: World) -> None:
    await world.node(nvidia_gpu="4")
    await world.submit("first", 3, gpus=1)
    await world.submit("second", 3, gpus=1)
    await world.until_running("first", 4)
    await world.until_waiting("second", "needs 4 nvidia.com/gpu, 0 free of 4; held by default/first (4)")
    await world.finish("first")
    await world.until_running("second", 4)


async def test_a_member_that_is_replaced_gets_its_seat_back_before_anybody_else(world: World) -> None:
    await world.node(nvidia_gpu="2")
    await world.submit("ours", 1, gpus=1, restart="ExitCode")
    await world.until_running("ours", 2)
    worker = next(pod for pod in await world.pods("ours") if "worker" in name_of(pod))
    await world.submit("greedy", gpus=1)
    await world.until_waiting("greedy", "needs 1 nvidia.com/gpu, 0 free of 2; held by default/ours (2)")
    await world.client.delete(Key.of(POD, worker), grace=0)

    async def replaced() -> bool:
        pods = {name_of(pod): pod for pod in await world.pods("ours")}
        found = pods.get(name_of(worker))
        return bool(found and uid_of(found) != uid_of(worker) and found["status"]["phase"] == "Running")

    await world.until(replaced)
    now = await world.client.get(Key.of(POD, worker))
    assert annotations_of(now)[DEVICES] == annotations_of(worker)[DEVICES]
    assert await world.seats("greedy") == [""]


async def test_a_pod_of_its_own_is_seated_too(world: World) -> None:
    await world.node()
    pod = {
        "metadata": {"name": "alone", "namespace": "default"},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    await world.client.create(POD, pod)

    async def runs() -> bool:
        return bool((await world.client.get(Key(POD, "default", "alone")))["status"]["phase"] == "Running")

    await world.until(runs)


async def test_cores_may_be_asked_for_many_times_over_and_memory_may_not(world: World) -> None:
    await world.node()
    await world.submit("cores", limits={"cpu": "600"})
    await world.until_running("cores")
    await world.submit("memory", limits={"memory": "65Gi"})
    text = "needs 65Gi memory, the machine has 64Gi: it can never run here; lower the request"
    await world.until_waiting("memory", text)


async def test_without_overcommit_cores_are_strict() -> None:
    async with a_world(cpu_overcommit=1) as world:
        await world.node()
        await world.submit("cores", limits={"cpu": "65"})
        await world.until_waiting(
            "cores",
            "needs 65 cpu, the machine has 64: it can never run here; "
            "lower the request or start with a larger --cpu-overcommit",
        )


async def test_what_could_never_run_says_how_it_could(world: World) -> None:
    await world.node(nvidia_gpu="2")
    await world.submit("huge", gpus=8)
    await world.until_waiting(
        "huge",
        "needs 8 nvidia.com/gpu, the machine has 2: it can never run here; "
        "lower the request or start with --gpus fake:8",
    )


async def test_a_look_at_what_is_settled_writes_nothing(world: World) -> None:
    await world.node(nvidia_gpu="1")
    await world.submit("runs", gpus=1)
    await world.submit("waits", gpus=1)
    await world.until_waiting("waits", "needs 1 nvidia.com/gpu, 0 free of 1; held by default/runs (1)")
    await world.settled()
    before = world.store.revision
    binder = Binder(world.client, world.lookout, world.clock, cpu_overcommit=10)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(binder.run)
        await anyio.wait_all_tasks_blocked()
        for pod in world.lookout.pods.all():
            binder._pod_changed(None, pod)
        for node in world.lookout.nodes.all():
            binder._node_changed(None, node)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert world.store.revision == before


# -- the line ------------------------------------------------------------------------------------------------------


async def test_a_small_job_starts_beside_the_head_and_never_delays_it(world: World) -> None:
    await world.node(nvidia_gpu="2")
    await world.submit("runs", gpus=1)
    await world.until_running("runs")
    await world.submit("big", gpus=2)
    await world.until_waiting("big", "needs 2 nvidia.com/gpu, 1 free of 2; held by default/runs (1)")
    await world.submit("small", gpus=1)
    await world.until_waiting("small", "waits behind default/big (priority 0)")
    await world.submit("cores", limits={"cpu": "1"})
    await world.until_running("cores")
    await world.finish("runs")
    await world.until_running("big")
    await world.until_waiting("small", "needs 1 nvidia.com/gpu, 0 free of 2; held by default/big (2)")


async def test_a_higher_priority_takes_the_room_and_the_victim_goes_on_afterwards(world: World) -> None:
    await world.node(nvidia_gpu="2")
    await world.make(PRIORITY_CLASS, "urgent", value=100)
    low = await world.submit("low", 1, gpus=1)
    await world.until_running("low", 2)
    await world.submit("high", gpus=2, runPolicy={"schedulingPolicy": {"priorityClass": "urgent"}})
    await world.until_running("high")
    victim = await world.client.get(low)
    assert victim["spec"]["runPolicy"]["suspend"] is True
    assert annotations_of(victim)[PREEMPTED_BY] == "default/high"
    assert (
        "Preempted: Suspended to make room for default/high (priority 100); it goes on when there is room again"
        in await world.events("low")
    )
    assert "Preempting: Suspends default/low (priority 0) to have its room" in await world.events("high")
    why = "suspended to make room for default/high; it goes on when there is room again"

    async def says_why() -> bool:
        return (await conditions(world, low))[0] == ("Progressing", "False", "Preempted", why)

    await world.until(says_why)
    await world.until_waiting("low", "needs 2 nvidia.com/gpu, 0 free of 2; held by default/high (2)")
    await world.finish("high")
    await world.until_running("low", 2)
    again = await world.client.get(low)
    assert again["spec"]["runPolicy"]["suspend"] is False
    assert PREEMPTED_BY not in annotations_of(again)
    assert "Readmitted: There is room again after default/high had it: goes on" in await world.events("low")


async def test_what_a_user_suspended_stays_suspended_also_after_it_was_preempted_once(world: World) -> None:
    await world.node(nvidia_gpu="1")
    await world.make(PRIORITY_CLASS, "urgent", value=100)
    low = await world.submit("low", gpus=1)
    await world.until_running("low")
    await world.submit("high", gpus=1, pod={"priorityClassName": "urgent"})
    await world.until_running("high")
    await world.client.patch(low, {"spec": {"runPolicy": {"suspend": False}}})

    async def is_unmarked() -> bool:
        return PREEMPTED_BY not in annotations_of(await world.client.get(low))

    await world.until(is_unmarked)
    await world.client.patch(low, {"spec": {"runPolicy": {"suspend": True}}})
    await world.finish("high")
    await world.settled()
    assert (await world.client.get(low))["spec"]["runPolicy"]["suspend"] is True
    assert await world.pods("low") == []


# -- queues --------------------------------------------------------------------------------------------------------


async def test_a_job_waits_for_its_queues_quota_while_others_run(world: World) -> None:
    await world.make(RESOURCE_FLAVOR, "any")
    await world.queue("team-a", {GPU: "2"})
    await world.node(nvidia_gpu="8")
    await world.submit("first", gpus=1, queue="team-a")
    await world.until_running("first")
    await world.submit("second", gpus=2, queue="team-a")
    text = "queue team-a: needs 2 nvidia.com/gpu, 1 left of 2; used by default/first (1)"
    await world.until_waiting("second", text)
    await world.submit("free", gpus=4)
    await world.until_running("free")
    await world.finish("first")
    await world.until_running("second")


async def test_a_raised_quota_lets_a_job_start(world: World) -> None:
    await world.make(RESOURCE_FLAVOR, "any")
    await world.queue("team-a", {GPU: "1"})
    await world.node(nvidia_gpu="8")
    await world.submit("job", gpus=2, queue="team-a")
    await world.until_waiting(
        "job",
        "queue team-a: needs 2 nvidia.com/gpu, its quota is 1: it can never run there; "
        "lower the request or raise the quota of ClusterQueue team-a",
    )
    key = Key(CLUSTER_QUEUE, "", "team-a")
    groups = (await world.client.get(key))["spec"]["resourceGroups"]
    groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = "2"
    await world.client.patch(key, {"spec": {"resourceGroups": groups}})
    await world.until_running("job")


async def test_a_queue_that_does_not_exist_is_named_and_waited_for(world: World) -> None:
    await world.make(RESOURCE_FLAVOR, "any")
    await world.queue("team-a", {GPU: "2"})
    await world.node(nvidia_gpu="2")
    await world.submit("lost", gpus=1, queue="team-b")
    text = 'queue "team-b" does not exist: create LocalQueue default/team-b or name one of team-a'
    await world.until_waiting("lost", text)
    await world.queue("team-b", {GPU: "1"})
    await world.until_running("lost")


async def test_in_a_home_without_queues_every_name_means_the_default_one(world: World) -> None:
    await world.node()
    await world.submit("job", queue="anything")
    await world.until_running("job")


async def test_a_queue_on_hold_says_so(world: World) -> None:
    await world.make(RESOURCE_FLAVOR, "any")
    await world.queue("team-a", {GPU: "2"}, stopPolicy="Hold")
    await world.node(nvidia_gpu="2")
    await world.submit("job", gpus=1, queue="team-a")
    await world.until_waiting("job", "queue team-a is on hold: set stopPolicy of ClusterQueue team-a to None")


async def conditions(world: World, key: Key) -> list[tuple[str, ...]]:
    found: list[Json] = ((await world.client.get(key)).get("status") or {}).get("conditions") or []
    return [(one["type"], one["status"], one["reason"], one["message"]) for one in found]


async def test_a_waiting_job_says_why_in_its_first_condition_until_it_runs(world: World) -> None:
    await world.node(nvidia_gpu="1")
    first = await world.submit("first", gpus=1)
    await world.until_running("first")
    second = await world.submit("second", gpus=1)
    why = f"needs 1 {GPU}, 0 free of 1; held by default/first (1)"

    async def says() -> bool:
        stuck, *others = await conditions(world, second) or [()]
        return stuck == ("Progressing", "False", "Unschedulable", why) and [one[0] for one in others] == [
            "Created"
        ]

    await world.until(says)
    assert [one[0] for one in await conditions(world, first)] == ["Created", "Running"]
    await world.finish("first")

    async def runs() -> bool:
        return [one[0] for one in await conditions(world, second)] == ["Created", "Running"]

    await world.until(runs)


async def test_queues_tell_who_waits_who_runs_and_what_they_use(world: World) -> None:
    await world.node(nvidia_gpu="8")
    await world.make(RESOURCE_FLAVOR, "any")
    await world.queue("vision", {GPU: "2"})
    await world.submit("first", workers=1, gpus=1, queue="vision")
    await world.until_running("first", 2)
    await world.submit("second", gpus=1, queue="vision")
    places = {
        "flavorsUsage": Key(CLUSTER_QUEUE, "", "vision"),
        "flavorUsage": Key(LOCAL_QUEUE, "default", "vision"),
    }

    async def until_told(pending: int, admitted: int, total: str) -> None:
        for usage, key in places.items():
            wanted = {
                "pendingWorkloads": pending,
                "reservingWorkloads": admitted,
                "admittedWorkloads": admitted,
                usage: [{"name": "any", "resources": [{"name": GPU, "total": total}]}],
            }

            async def told(key: Key = key, wanted: Json = wanted) -> bool:
                status: Json = (await world.client.get(key)).get("status") or {}
                return status.items() >= wanted.items()

            await world.until(told)

    await until_told(1, 1, "2")
    await world.finish("first")
    await world.until_running("second")
    await until_told(0, 1, "1")
    await world.client.patch(Key(CLUSTER_QUEUE, "", "vision"), {"spec": {"stopPolicy": "Hold"}})

    async def held() -> bool:
        (active,) = (await world.client.get(Key(LOCAL_QUEUE, "default", "vision")))["status"]["conditions"]
        return bool(active["status"] == "False" and "is on hold" in active["message"])

    await world.until(held)
