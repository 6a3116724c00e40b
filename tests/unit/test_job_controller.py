"""The job controller on the real store: what there is in the end, and that a further look writes nothing."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import anyio
import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import POD, SERVICE
from fullrank.client.port import Key
from tests.build import a_job
from tests.unit.world import World, a_world

pytestmark = pytest.mark.anyio

ALL = ("demo-master-0", "demo-worker-0", "demo-worker-1")


def a_pytorch_job(**more: Any) -> Json:
    return a_job("PyTorchJob", {"Master": 1, "Worker": 2}, **more)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as world:
        yield world


async def running(world: World, **more: Any) -> Key:
    key = await world.submit(a_pytorch_job(**more))
    await world.until_pods(*ALL)
    for name in ALL:
        await world.set_phase(name, "Running")
    await world.until(key, "Created Running")

    async def all_counted() -> bool:
        counts = (await world.client.get(key))["status"]["replicaStatuses"]
        return (counts["Master"].get("active"), counts["Worker"].get("active")) == (1, 2)

    await world.seen(all_counted)
    await all_told(world)
    return key


async def all_told(world: World) -> None:
    """Waits until everything that was made has its event: they are written when there is nothing more urgent."""
    wanted = sorted(
        [f"Normal SuccessfulCreatePod: Created pod: {name}" for name in ALL]
        + [f"Normal SuccessfulCreateService: Created service: {name}" for name in ALL]
    )

    async def told() -> bool:
        return await world.events() == wanted

    await world.seen(told)


async def test_a_job_gets_its_pods_and_services_and_says_so(world: World) -> None:
    await world.submit(a_pytorch_job())
    await world.until_pods(*ALL)
    await all_told(world)
    assert await world.names(SERVICE) == list(ALL)


async def test_a_job_runs_and_succeeds_with_its_master(world: World) -> None:
    key = await running(world)
    await world.set_phase("demo-master-0", "Succeeded", 0)
    await world.until(key, "Created Running=False Succeeded")
    status = (await world.client.get(key))["status"]
    assert status["completionTime"] == status["conditions"][-1]["lastUpdateTime"]

    async def told() -> bool:
        text = "Normal PyTorchJobSucceeded: PyTorchJob demo is successfully completed."
        return text in await world.events()

    await world.seen(told)


async def test_a_settled_job_is_left_alone(world: World) -> None:
    key = await running(world)
    before = world.store.revision
    for _ in range(3):
        assert await world.controller.reconcile(key) is None
    assert world.store.revision == before


async def test_a_failed_pod_is_replaced_by_another_of_the_same_name(world: World) -> None:
    key = await running(world, run_policy={"backoffLimit": 3})
    old = await world.client.get(Key(POD, "kubeflow", "demo-worker-1"))
    await world.set_phase("demo-worker-1", "Failed", 1)

    async def replaced() -> bool:
        pods = (await world.client.select(POD, "kubeflow")).items
        return {pod["metadata"]["uid"] for pod in pods} - {old["metadata"]["uid"]} == {
            pod["metadata"]["uid"] for pod in pods
        } and len(pods) == 3

    await world.seen(replaced)
    await world.until(key, "Created Running")
    assert (await world.client.get(key))["status"]["restarts"] == 1


async def test_a_deleted_job_takes_everything_with_it(world: World) -> None:
    key = await running(world)
    await world.client.delete(key)
    for name in ALL:
        await world.client.delete(Key(POD, "kubeflow", name), grace=0)
    await world.until_pods()

    async def no_services() -> bool:
        return await world.names(SERVICE) == []

    await world.seen(no_services)


async def test_a_pod_of_somebody_else_is_waited_for_and_never_adopted(world: World) -> None:
    stranger = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "demo-worker-0", "namespace": "kubeflow"},
        "spec": {"containers": [{"name": "main", "image": "example/other:1"}]},
    }
    await world.client.create(POD, stranger)
    key = await world.submit(a_pytorch_job())
    await world.until_pods(*ALL)
    await world.until(key, "Progressing=False Created")
    said = (await world.client.get(key))["status"]["conditions"][0]
    assert (said["reason"], said["message"]) == (
        "FailedCreatePod",
        'Error creating: pods "demo-worker-0" already exists',
    )

    async def told() -> bool:
        text = 'Warning FailedCreatePod: Error creating: pods "demo-worker-0" already exists'
        return text in await world.events()

    await world.seen(told)
    await world.client.delete(Key(POD, "kubeflow", "demo-worker-0"), grace=0)

    async def made() -> bool:
        pods = (await world.client.select(POD, "kubeflow")).items
        return len(pods) == 3 and all(pod["metadata"].get("ownerReferences") for pod in pods)

    await world.seen(made)
    await world.until(key, "Created")


async def test_a_member_that_keeps_failing_waits_for_its_next_try(world: World) -> None:
    key = await world.submit(a_job("PyTorchJob", {"Worker": 1}, policy="ExitCode"))
    pod = Key(POD, "kubeflow", "demo-worker-0")
    await world.until_pods("demo-worker-0")
    first = await world.client.get(pod)

    async def another() -> bool:
        found = (await world.client.select(POD, "kubeflow")).items
        return bool(found) and found[0]["metadata"]["uid"] != first["metadata"]["uid"]

    await world.set_phase("demo-worker-0", "Failed", 137)
    await world.seen(another)
    first = await world.client.get(pod)
    await world.set_phase("demo-worker-0", "Failed", 137)
    await world.until(key, "Progressing=False Created Restarting")
    assert await world.controller.reconcile(key) == timedelta(seconds=10)
    assert (await world.client.get(pod))["metadata"]["uid"] == first["metadata"]["uid"]
    world.clock.advance(10)
    await world.controller.reconcile(key)
    await world.seen(another)
    await world.until(key, "Created Restarting")


async def test_a_deadline_needs_no_event_to_be_kept(world: World) -> None:
    key = await running(world, run_policy={"activeDeadlineSeconds": 1})
    world.clock.advance(2)
    with anyio.fail_after(5):
        await world.until(key, "Created Running=False Failed")


async def test_a_second_job_of_the_same_port_is_given_another_and_says_so() -> None:
    async with a_world(ports=True) as world:
        one = await world.submit(a_job("PyTorchJob", {"Master": 1, "Worker": 1}, name="one"))
        await world.until_pods("one-master-0", "one-worker-0")
        two = await world.submit(a_job("PyTorchJob", {"Master": 1, "Worker": 1}, name="two"))
        await world.until_pods("one-master-0", "one-worker-0", "two-master-0", "two-worker-0")
        assert "annotations" not in (await world.client.get(one))["metadata"]
        annotations = (await world.client.get(two))["metadata"]["annotations"]
        assert annotations == {"fullrank.dev/ports": '{"two-master-0":20000}'}
        worker = await world.client.get(Key(POD, "kubeflow", "two-worker-0"))
        env = {one["name"]: one.get("value") for one in worker["spec"]["containers"][0]["env"]}
        assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("two-master-0", "20000")
