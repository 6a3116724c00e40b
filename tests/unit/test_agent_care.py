"""Hooks, probes, sidecars, last words and files that follow their objects: pods looked after as kubelets do."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from fullrank.agent.api_access import FOLDER
from fullrank.agent.runtime import Execution, Launch
from fullrank.api.meta import Json, uid_of
from fullrank.api.scheme import CONFIG_MAP, POD, SERVICE, SERVICE_ACCOUNT
from fullrank.client.port import Key
from tests.unit.node_world import World, a_pod, eventually, node_world, phase, state

pytestmark = pytest.mark.anyio


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with node_world(tmp_path) as world:
        yield world


async def create(world: World, name: str, container: Json | None = None, **spec: Any) -> Json:
    pod = a_pod(name, nodeName="here", **spec)
    pod["spec"]["containers"][0] |= container or {}
    return await world.client.create(POD, pod)


def is_ready(pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def running(pod: Json) -> bool:
    return "running" in state(pod)


async def test_a_container_has_started_when_its_hook_has_run(world: World) -> None:
    async with world.agent():
        await create(world, "one", {"lifecycle": {"postStart": {"exec": {"command": ["warm-up"]}}}})
        await world.until("one", is_ready)
        assert [argv for _, argv in world.runtime.executed] == [("warm-up",)]


async def test_a_container_whose_hook_fails_is_stopped(world: World) -> None:
    world.runtime.outcomes["warm-up",] = Execution(1)
    async with world.agent():
        await create(world, "one", {"lifecycle": {"postStart": {"exec": {"command": ["warm-up"]}}}})
        await world.until("one", phase("Failed"))
        await eventually(partial(world.has_events, "one", "FailedPostStartHook", "Killing"))


async def test_a_container_is_asked_before_it_is_stopped(world: World) -> None:
    async with world.agent():
        await create(world, "one", {"lifecycle": {"preStop": {"exec": {"command": ["save"]}}}})
        await world.until("one", running)
        await world.client.delete(Key(POD, "default", "one"))
        await world.gone("one")
        assert [argv for _, argv in world.runtime.executed] == [("save",)]


QUICK = {"exec": {"command": ["ask"]}, "periodSeconds": 0.01, "failureThreshold": 1, "timeoutSeconds": 5}


async def test_a_container_is_ready_when_its_probe_says_so(world: World) -> None:
    world.runtime.outcomes["ask",] = Execution(1)
    async with world.agent():
        await create(world, "one", {"readinessProbe": QUICK})
        await world.until("one", running)
        await eventually(partial(world.has_events, "one", "Unhealthy"))
        assert not is_ready(await world.read("one"))
        world.runtime.outcomes.clear()
        await world.until("one", is_ready)
        world.runtime.outcomes["ask",] = Execution(1)
        await world.until("one", lambda pod: not is_ready(pod))


@pytest.mark.parametrize("kind", ["livenessProbe", "startupProbe"])
async def test_a_container_that_is_not_well_is_started_again(kind: str, world: World) -> None:
    world.runtime.ills = {0}
    async with world.agent():
        await create(world, "one", {kind: QUICK}, restartPolicy="Always")
        await eventually(partial(world.has_events, "one", "Unhealthy", "Killing"))
        again = await world.until("one", lambda pod: running(pod) and _restarts(pod) == 1)
        assert again["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 143


def _restarts(pod: Json) -> int:
    count: int = pod["status"]["containerStatuses"][0]["restartCount"]
    return count


async def test_a_sidecar_runs_beside_the_others_and_ends_after_them(world: World) -> None:
    sidecar = {"name": "proxy", "image": "some:1", "command": ["proxy"], "restartPolicy": "Always"}
    async with world.agent():
        pod = await create(world, "one", initContainers=[sidecar])
        await world.until("one", is_ready)
        assert [launch.attempt.container for launch in world.runtime.launches] == ["proxy", "main"]
        world.runtime.finish(uid_of(pod), "main", 0)
        ended = await world.until("one", phase("Succeeded"))
        assert "terminated" in state(ended, "proxy")
        assert world.runtime.running() == []


async def test_a_sidecar_that_ends_is_started_again_whatever_the_policy(world: World) -> None:
    sidecar = {"name": "proxy", "image": "some:1", "command": ["proxy"], "restartPolicy": "Always"}
    async with world.agent():
        pod = await create(world, "one", initContainers=[sidecar])
        await world.until("one", is_ready)
        world.runtime.finish(uid_of(pod), "proxy", 1)
        await world.until("one", lambda pod: pod["status"]["initContainerStatuses"][0]["restartCount"] == 1)
        assert len(world.runtime.running()) == 2


def source_of(launch: Launch, target: str) -> Path:
    return next(mount.source for mount in launch.mounts if mount.target == target)


async def test_what_a_container_says_last_is_in_its_status(world: World) -> None:
    async with world.agent():
        pod = await create(world, "one", {"terminationMessagePath": "/tmp/why"})
        await world.until("one", running)
        source_of(world.runtime.launches[0], "/tmp/why").write_text("the data ran out")
        world.runtime.finish(uid_of(pod), "main", 3)
        ended = await world.until("one", phase("Failed"))
        assert state(ended)["terminated"]["message"] == "the data ran out"


async def test_who_fails_in_silence_is_quoted_from_its_log(world: World) -> None:
    async with world.agent():
        pod = await create(world, "one", {"terminationMessagePolicy": "FallbackToLogsOnError"})
        await world.until("one", running)
        log = world.runtime.launches[0].log
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("2026-01-01T00:00:00.000000000Z stderr F no such layer\n")
        world.runtime.finish(uid_of(pod), "main", 1)
        ended = await world.until("one", phase("Failed"))
        assert state(ended)["terminated"]["message"] == "no such layer\n"


async def test_a_pod_is_given_what_clients_in_a_cluster_look_for(world: World) -> None:
    async with world.agent():
        await create(world, "one")
        await world.until("one", running)
        launch = world.runtime.launches[0]
        assert (launch.env["KUBERNETES_SERVICE_HOST"], launch.env["KUBERNETES_SERVICE_PORT"]) == (
            "127.0.0.1",
            "7443",
        )
        folder = source_of(launch, FOLDER)
        read = {name: (folder / name).read_text() for name in ("token", "ca.crt", "namespace")}
        assert read == {"token": "the token", "ca.crt": "the authority", "namespace": "default"}


@pytest.mark.parametrize("who", ["the pod", "its account"])
async def test_no_token_where_none_is_wanted(who: str, world: World) -> None:
    wish: Json = {"automountServiceAccountToken": False}
    account = {"metadata": {"name": "shy", "namespace": "default"}, **(wish if who == "its account" else {})}
    await world.client.create(SERVICE_ACCOUNT, {"apiVersion": "v1", "kind": "ServiceAccount", **account})
    async with world.agent():
        await create(world, "one", None, serviceAccountName="shy", **(wish if who == "the pod" else {}))
        await world.until("one", running)
        assert FOLDER not in [mount.target for mount in world.runtime.launches[0].mounts]


async def test_services_are_variables_that_lead_to_a_pod(world: World) -> None:
    ports = [{"name": "web", "port": 80, "targetPort": 8080}]
    service = {"metadata": {"name": "foo-bar", "namespace": "default"}}
    async with world.agent():
        await create(world, "server")
        server = await world.until("server", running)
        await world.client.create(
            SERVICE, {**service, "spec": {"selector": {"app": "server"}, "ports": ports}}
        )

        async def is_told() -> bool:
            name = f"client-{len(world.runtime.launches)}"
            await create(world, name)
            await world.until(name, running)
            return "FOO_BAR_SERVICE_HOST" in world.runtime.launches[-1].env

        await eventually(is_told)
        env = world.runtime.launches[-1].env
        assert env["FOO_BAR_SERVICE_HOST"] == server["status"]["podIP"]
        assert (env["FOO_BAR_SERVICE_PORT"], env["FOO_BAR_SERVICE_PORT_WEB"]) == ("8080", "8080")
        assert env["FOO_BAR_PORT_80_TCP"] == f"tcp://{server['status']['podIP']}:8080"


async def test_files_follow_the_objects_they_were_made_from(world: World) -> None:
    settings = {"metadata": {"name": "settings", "namespace": "default"}, "data": {"a": "1", "b": "2"}}
    await world.client.create(CONFIG_MAP, settings)
    volumes: list[Json] = [
        {"name": "settings", "configMap": {"name": "settings"}},
        {
            "name": "down",
            "downwardAPI": {
                "items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}],
            },
        },
    ]
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in volumes]
    async with world.agent():
        await create(world, "one", {"volumeMounts": mounts}, volumes=volumes)
        await world.until("one", running)
        folder = source_of(world.runtime.launches[0], "/settings")
        labels = source_of(world.runtime.launches[0], "/down") / "labels"
        assert ((folder / "a").read_text(), labels.read_text()) == ("1", 'app="one"')
        await world.client.patch(Key(CONFIG_MAP, "default", "settings"), {"data": {"a": "3", "b": None}})
        await eventually(partial(_reads, folder / "a", "3"))
        assert not (folder / "b").exists()
        await world.client.patch(Key(POD, "default", "one"), {"metadata": {"labels": {"app": "two"}}})
        await eventually(partial(_reads, labels, 'app="two"'))


async def _reads(file: Path, text: str) -> bool:
    return await anyio.Path(file).read_text() == text
