"""The agent against the embedded control plane: pods come, run, end, go, and outlive it."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from fullrank.agent.agent import stop_all_pods
from fullrank.agent.logs import PodLogReader
from fullrank.agent.processes import ProcessRuntime
from fullrank.api.meta import Json, uid_of
from fullrank.api.scheme import CLAIM, NODE, POD, SERVICE
from fullrank.client.port import Key
from fullrank.clock import SystemClock
from tests.unit.node_world import World, eventually, node_world, phase, state

pytestmark = pytest.mark.anyio

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux: mount, PID and UTS namespaces"
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with node_world(tmp_path) as world:
        yield world


async def test_a_machine_becomes_a_node(world: World) -> None:
    async with world.agent():
        await eventually(world.has_a_ready_node)
    (node,) = (await world.client.select(NODE)).items
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "here"
    assert {"cpu", "memory", "pods"} <= node["status"]["allocatable"].keys()
    assert {"type": "Ready", "status": "True"}.items() <= node["status"]["conditions"][-1].items()


async def test_a_pod_runs_and_succeeds(world: World) -> None:
    async with world.agent():
        pod = await world.pod("one")
        running = await world.until("one", phase("Running"))
        assert running["status"]["podIP"].startswith("127.64.")
        world.runtime.finish(uid_of(pod), "main", 0)
        ended = await world.until("one", phase("Succeeded"))
        assert state(ended)["terminated"]["reason"] == "Completed"
        assert world.runtime.pods() == ()
        await eventually(partial(world.has_events, "one", "Created", "Pulled", "Pulling", "Started"))


async def test_a_settled_pod_is_written_no_more(world: World) -> None:
    async with world.agent():
        await world.pod("one")
        before = await world.until("one", phase("Running"))
        await world.pod("two")
        await world.until("two", phase("Running"))
        assert (await world.read("one")) == before


async def test_a_pod_of_another_node_is_left_alone(world: World) -> None:
    async with world.agent():
        await world.pod("other", nodeName="elsewhere", bound=False)
        await world.pod("ours")
        await world.until("ours", phase("Running"))
        assert len(world.runtime.launches) == 1


async def test_a_deleted_pod_is_stopped_before_its_object_goes(world: World) -> None:
    async with world.agent():
        await world.pod("one")
        await world.until("one", phase("Running"))
        await world.client.delete(Key(POD, "default", "one"))
        await world.gone("one")
        assert world.runtime.running() == []


async def test_a_shorter_grace_overtakes_a_longer_one(world: World) -> None:
    world.runtime.stubborn = True
    async with world.agent():
        await world.pod("one")
        await world.until("one", phase("Running"))
        await world.client.delete(Key(POD, "default", "one"), grace=1000)
        await world.client.delete(Key(POD, "default", "one"), grace=1)
        await world.gone("one")


async def test_a_pod_told_to_stop_keeps_its_object(world: World) -> None:
    async with world.agent():
        await world.pod("one")
        await world.until("one", phase("Running"))
        told = {"metadata": {"annotations": {"fullrank.dev/stop": "the job has finished"}}}
        await world.client.patch(Key(POD, "default", "one"), told)
        stopped = await world.until("one", phase("Failed"))
    assert (stopped["status"]["reason"], stopped["status"]["message"]) == ("Stopped", "the job has finished")
    assert state(stopped)["terminated"]["exitCode"] == 143


async def test_a_crash_loop_backs_off(world: World) -> None:
    async with world.agent():
        pod = await world.pod("one", restartPolicy="OnFailure")
        await world.until("one", phase("Running"))
        world.runtime.finish(uid_of(pod), "main", 1)
        await world.until("one", lambda pod: "running" in state(pod) and restarts(pod) == 1)
        world.runtime.finish(uid_of(pod), "main", 1)
        waiting = await world.until("one", lambda pod: "waiting" in state(pod))
        assert state(waiting)["waiting"]["reason"] == "CrashLoopBackOff"
        assert "back-off 10s restarting failed container=main" in state(waiting)["waiting"]["message"]
        assert waiting["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
        assert waiting["status"]["phase"] == "Running"


def restarts(pod: Json) -> int:
    count: int = pod["status"]["containerStatuses"][0]["restartCount"]
    return count


async def test_an_image_that_cannot_be_had_says_why(world: World) -> None:
    world.images.missing["some:1"] = "no such thing"
    async with world.agent():
        await world.pod("one")
        waiting = await world.until(
            "one", lambda pod: state(pod).get("waiting", {}).get("reason") == "ImagePullBackOff"
        )
    assert waiting["status"]["phase"] == "Pending"
    message = 'Back-off pulling image "some:1": ErrImagePull: no such thing'
    assert state(waiting)["waiting"]["message"] == message


async def test_a_missing_config_map_is_awaited(world: World) -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "a"}}}]
    container = {"name": "main", "image": "some:1", "command": ["true"], "env": env}
    async with world.agent():
        await world.pod("one", containers=[container])
        waiting = await world.until(
            "one", lambda pod: state(pod).get("waiting", {}).get("reason") == "CreateContainerConfigError"
        )
    assert state(waiting)["waiting"]["message"] == 'configmap "settings" not found'


async def test_the_next_agent_adopts_what_runs(world: World) -> None:
    async with world.agent():
        pod = await world.pod("one")
        before = await world.until("one", phase("Running"))
    assert len(world.runtime.running()) == 1
    world.runtime.finish(uid_of(pod), "main", 7)
    async with world.agent():
        ended = await world.until("one", phase("Failed"))
    assert state(ended)["terminated"]["exitCode"] == 7
    assert ended["status"]["podIP"] == before["status"]["podIP"]
    assert len(world.runtime.launches) == 1


async def test_a_pod_deleted_while_no_agent_ran_is_stopped(world: World) -> None:
    async with world.agent():
        await world.pod("one")
        await world.until("one", phase("Running"))
    await world.client.delete(Key(POD, "default", "one"), grace=0)
    async with world.agent():
        await eventually(world.has_nothing_left)


async def test_an_agent_that_is_cancelled_in_the_midst_of_stopping_ends_at_once(world: World) -> None:
    world.runtime.stubborn = True
    async with world.agent():
        await world.pod("one")
        await world.until("one", phase("Running"))
        await world.client.delete(Key(POD, "default", "one"), grace=1000)
        await world.until("one", lambda pod: "deletionTimestamp" in pod["metadata"])
        await eventually(partial(world.has_events, "one", "Killing"))
    assert len(world.runtime.running()) == 1


async def test_a_pod_of_the_same_name_waits_for_the_end_of_the_first(world: World) -> None:
    world.runtime.stubborn = True
    async with world.agent():
        first = await world.pod("one", terminationGracePeriodSeconds=20)
        await world.until("one", phase("Running"))
        await world.client.delete(Key(POD, "default", "one"), grace=20)
        await world.client.delete(Key(POD, "default", "one"), grace=0)
        second = await world.pod("one", terminationGracePeriodSeconds=20)
        await world.until("one", phase("Running"))
        assert [attempt.pod_uid for attempt in world.runtime.running()] == [uid_of(second)]
    assert uid_of(first) != uid_of(second)


async def test_one_odd_pod_does_not_stop_the_others(world: World) -> None:
    async with world.agent():
        await world.pod("odd", containers=[{"name": "main", "command": ["true"]}])
        await world.pod("good")
        await world.until("good", phase("Running"))


async def test_a_disk_that_refuses_is_told_and_tried_again(world: World) -> None:
    (world.home / "volumes").write_text("in the way")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk", "namespace": "default"},
    }
    await world.client.create(CLAIM, {**claim, "spec": {}})
    async with world.agent():
        await world.pod("one", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "disk"}}])
        waiting = await world.until("one", lambda pod: "message" in state(pod).get("waiting", {}))
    assert state(waiting)["waiting"]["reason"] == "CreateContainerError"
    assert "Not a directory" in state(waiting)["waiting"]["message"]


# -- with real processes


@asynccontextmanager
async def processes(home: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(home, SystemClock()) as runtime:
        yield runtime
        await stop_all_pods(runtime, 0)


async def log_of(world: World, pod: Json, container: str = "main", **options: Any) -> str:
    pieces = PodLogReader(world.home).read(pod, container, **options)
    return b"".join([piece async for piece in pieces]).decode()


async def test_init_containers_come_first_and_share_a_volume(world: World) -> None:
    shared = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    init = [
        {"name": name, "image": "i", "command": ["/bin/sh", "-c", f"echo {name} >> /shared/order"], **shared}
        for name in ("first", "second")
    ]
    main = [{"name": "main", "image": "i", "command": ["/bin/sh", "-c", "cat /shared/order"], **shared}]
    async with processes(world.home) as runtime, world.agent(runtime):
        await world.pod("one", containers=main, initContainers=init, volumes=[{"name": "v", "emptyDir": {}}])
        ended = await world.until("one", phase("Succeeded"))
        assert await log_of(world, ended) == "first\nsecond\n"
    assert [one["ready"] for one in ended["status"]["initContainerStatuses"]] == [True, True]


@needs_root
async def test_pods_find_each_other_by_the_names_of_services(world: World) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front", "namespace": "default"}}
    await world.client.create(
        SERVICE, {**service, "spec": {"clusterIP": "None", "selector": {"app": "server"}}}
    )
    listen = (
        "import socket; s = socket.create_server((socket.gethostname(), 47613)); c, _ = s.accept(); "
        "print(c.recv(9).decode(), c.getpeername()[0])"
    )
    call = (
        "import socket, time\n"
        "for _ in range(500):\n"
        "    try: s = socket.create_connection(('front.default.svc', 47613), source_address=('client', 0)); break\n"
        "    except OSError: time.sleep(0.01)\n"
        "s.send(b'hi')"
    )
    async with processes(world.home) as runtime, world.agent(runtime):
        for name, program in {"server": listen, "client": call}.items():
            command = [sys.executable, "-c", program]
            await world.pod(name, containers=[{"name": "main", "image": "i", "command": command}])
        server = await world.until("server", phase("Succeeded"))
        client = await world.read("client")
        assert await log_of(world, server) == f"hi {client['status']['podIP']}\n"


async def test_on_failure_a_container_starts_again_in_its_pod(world: World) -> None:
    script = "echo run >> /shared/runs; echo attempt; test $(wc -l < /shared/runs) = 2"
    main: Json = {"name": "main", "image": "i", "command": ["/bin/sh", "-c", script]}
    main |= {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    spec: Json = {
        "containers": [main],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "restartPolicy": "OnFailure",
    }
    async with processes(world.home) as runtime, world.agent(runtime):
        await world.pod("one", **spec)
        ended = await world.until("one", phase("Succeeded"))
    assert restarts(ended) == 1
    assert ended["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1
    assert await log_of(world, ended) == "attempt\n"
    assert await log_of(world, ended, previous=True) == "attempt\n"


async def test_what_cannot_start_fails_its_pod(world: World) -> None:
    async with processes(world.home) as runtime, world.agent(runtime):
        await world.pod("one", containers=[{"name": "main", "image": "i", "command": ["foo"]}])
        ended = await world.until("one", phase("Failed"))
    assert state(ended)["terminated"]["reason"] == "StartError"
    assert state(ended)["terminated"]["message"] == 'exec: "foo": executable file not found in $PATH'


async def test_a_followed_log_ends_with_its_container(world: World) -> None:
    async with processes(world.home) as runtime, world.agent(runtime):
        await world.pod("one", script="for i in 1 2 3; do echo $i; sleep 0.05; done; echo end")
        pod = await world.until("one", lambda pod: "running" in state(pod))
        with anyio.fail_after(5):
            assert await log_of(world, pod, follow=True) == "1\n2\n3\nend\n"
        ended = await world.until("one", phase("Succeeded"))
        assert await log_of(world, ended, tail_lines=2) == "3\nend\n"
        assert await log_of(world, ended, limit_bytes=3) == "1\n2"
        stamped = await log_of(world, ended, timestamps=True, tail_lines=1)
        assert stamped.endswith("Z end\n")
