"""A node for tests: the agent over a control plane in memory, with containers that do as they are told."""

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from fullrank.agent.agent import NodeAgent
from fullrank.agent.api_access import ApiAccess
from fullrank.agent.node import Machine
from fullrank.agent.runtime import Runtime
from fullrank.api.meta import Json
from fullrank.api.scheme import CORE_KINDS, EVENT, NAMESPACE, NODE, POD, Scheme
from fullrank.client.port import Client, Key
from fullrank.clock import ManualClock, SystemClock
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.store import Store
from fullrank.images.catalogue import Image, ImageFailed, Images, Progress
from tests.doubles.runtime import PretendedRuntime


class PlainImages(Images):
    """Every image is this machine; `missing` ones cannot be had."""

    def __init__(self) -> None:
        self.missing: dict[str, str] = {}

    async def prepare(self, reference: str, annotations: Mapping[str, str], progress: Progress) -> Image:  # noqa: ARG002
        if reference in self.missing:
            raise ImageFailed(self.missing[reference])
        return Image(reference, {"PATH": "/usr/bin:/bin"})


@dataclass
class World:
    client: Client
    clock: ManualClock
    runtime: PretendedRuntime
    images: PlainImages
    home: Path

    @asynccontextmanager
    async def agent(self, runtime: Runtime | None = None) -> AsyncIterator[None]:
        clock = SystemClock() if runtime else self.clock
        agent = NodeAgent(
            self.client,
            runtime or self.runtime,
            self.images,
            clock,
            home=self.home,
            machine=Machine("here", "0"),
            access=ApiAccess("https://127.0.0.1:7443", "the authority", "the token"),
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.run)
            yield
            tasks.cancel_scope.cancel()

    async def pod(self, name: str, *, bound: bool = True, **fields: Any) -> Json:
        return await self.client.create(POD, a_pod(name, **({"nodeName": "here"} if bound else {}), **fields))

    async def read(self, name: str) -> Json:
        return await self.client.get(Key(POD, "default", name))

    async def until(self, name: str, holds: Callable[[Json], bool]) -> Json:
        async def is_so() -> bool:
            return holds(await self.read(name))

        await eventually(is_so)
        return await self.read(name)

    async def gone(self, name: str) -> None:
        async def is_gone() -> bool:
            return all(pod["metadata"]["name"] != name for pod in (await self.client.select(POD)).items)

        await eventually(is_gone)

    async def has_events(self, name: str, *reasons: str) -> bool:
        events = (await self.client.select(EVENT, "default")).items
        return {*reasons} <= {event["reason"] for event in events if event["involvedObject"]["name"] == name}

    async def has_a_ready_node(self) -> bool:
        return any("status" in node for node in (await self.client.select(NODE)).items)

    async def has_nothing_left(self) -> bool:
        return self.runtime.pods() == ()


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    with anyio.fail_after(10):
        while True:
            if await condition():
                return
            await anyio.sleep(0.005)


def a_pod(name: str, *, script: str = "true", **spec: Any) -> Json:
    container = {"name": "main", "image": "some:1", "command": ["/bin/sh", "-c", script]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {"restartPolicy": "Never", "containers": [container], **spec},
    }


@asynccontextmanager
async def node_world(home: Path) -> AsyncIterator[World]:
    clock = ManualClock()
    store = Store(":memory:", inline=True)
    numbers = itertools.count(1)
    client = LocalClient(Registry(store, Scheme(CORE_KINDS), clock, lambda: f"uid-{next(numbers)}"))
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    yield World(client, clock, PretendedRuntime(clock), PlainImages(), home)
    store.close()


def phase(wanted: str) -> Callable[[Json], bool]:
    return lambda pod: (pod.get("status") or {}).get("phase") == wanted


def state(pod: Json, container: str = "main") -> Json:
    statuses = [
        *((pod.get("status") or {}).get("containerStatuses") or []),
        *((pod.get("status") or {}).get("initContainerStatuses") or []),
    ]
    found: Json = next((one["state"] for one in statuses if one["name"] == container), {})
    return found
