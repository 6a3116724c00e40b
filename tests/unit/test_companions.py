"""What jobs have beside pods and services: made before the pods, kept true, and never taken from somebody else."""

from collections.abc import AsyncIterator

import anyio
import pytest

from fullrank.api.meta import Json, name_of
from fullrank.api.scheme import CONFIG_MAP, POD, SERVICE_ACCOUNT
from fullrank.client.port import Key
from tests.build import a_job
from tests.unit.world import World, a_world

pytestmark = pytest.mark.anyio

CONFIG = Key(CONFIG_MAP, "kubeflow", "demo-config")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as world:
        yield world


def an_mpi_job(workers: int = 2) -> Json:
    return a_job("MPIJob", {"Launcher": 1, "Worker": workers})


async def running(world: World) -> Key:
    key = await world.submit(an_mpi_job())
    pods = ("demo-launcher", "demo-worker-0", "demo-worker-1")
    await world.until_pods(*pods)
    for name in pods:
        await world.set_phase(name, "Running")
    await world.until(key, "Created Running")
    return key


async def files(world: World) -> dict[str, str]:
    found: dict[str, str] = (await world.client.get(CONFIG))["data"]
    return found


async def test_they_are_there_before_the_first_pod_and_belong_to_the_job(world: World) -> None:
    key = await world.submit(an_mpi_job())
    await world.until_pods("demo-launcher", "demo-worker-0", "demo-worker-1")
    made = {
        one["metadata"]["resourceVersion"]: one for one in (await world.client.select(POD, "kubeflow")).items
    }
    config = await world.client.get(CONFIG)
    account = await world.client.get(Key(SERVICE_ACCOUNT, "kubeflow", "demo-launcher"))
    for one in (config, account):
        assert int(one["metadata"]["resourceVersion"]) < min(map(int, made))
        assert one["metadata"]["ownerReferences"][0]["name"] == key.name


async def test_they_follow_the_members_that_run(world: World) -> None:
    await running(world)

    async def all_there() -> bool:
        return (await files(world))["discover_hosts.sh"].count("echo") == 2

    await world.seen(all_there)


async def test_they_follow_the_job(world: World) -> None:
    key = await running(world)
    await world.client.patch(key, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 3}}}})

    async def third_there() -> bool:
        return "demo-worker-2 slots=1" in (await files(world))["hostfile"]

    await world.seen(third_there)


async def test_what_somebody_took_away_is_made_again(world: World) -> None:
    await running(world)
    await world.client.delete(CONFIG)

    async def back() -> bool:
        return "demo-config" in await world.names(CONFIG_MAP)

    await world.seen(back)


async def test_what_is_somebody_elses_stays_so_and_the_job_waits(world: World) -> None:
    mine = {"metadata": {"name": "demo-config", "namespace": "kubeflow"}, "data": {"a": "b"}}
    await world.client.create(CONFIG_MAP, mine)
    key = await world.submit(an_mpi_job())
    text = 'Resource "demo-config" of MPIJobKind "ConfigMap" already exists and is not managed by MPIJob'

    async def told() -> bool:
        return f"Warning ErrResourceExists: {text}" in await world.events()

    await world.seen(told)
    assert (await files(world)) == {"a": "b"}
    assert await world.names(POD) == []
    assert name_of(await world.client.get(key)) == "demo"


async def test_an_account_that_the_user_made_is_taken_as_it_is(world: World) -> None:
    theirs = {"metadata": {"name": "mine", "namespace": "kubeflow", "labels": {"a": "b"}}}
    before = await world.client.create(SERVICE_ACCOUNT, theirs)
    job = an_mpi_job()
    job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["serviceAccountName"] = "mine"
    await world.submit(job)
    await world.until_pods("demo-launcher", "demo-worker-0", "demo-worker-1")
    assert await world.client.get(Key(SERVICE_ACCOUNT, "kubeflow", "mine")) == before


async def test_a_finished_jobs_companions_stay_as_they_were(world: World) -> None:
    key = await running(world)
    before = await files(world)
    await world.set_phase("demo-launcher", "Succeeded", 0)
    await world.until(key, "Created Running=False Succeeded")
    await world.client.patch(key, {"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": 1}}}})
    await anyio.wait_all_tasks_blocked()
    assert (await files(world))["hostfile"] == before["hostfile"]
