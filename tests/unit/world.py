"""A control plane in memory with the job controller on it: tests set pods' phases and look at what comes of it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import anyio
import anyio.lowlevel

from fullrank.api.meta import Json, name_of, stamp
from fullrank.api.scheme import CORE_KINDS, EVENT, POD, Kind, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.jobs import JobController
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.ports import PortBook
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.collector import Collector
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.store import Store
from fullrank.dialects.registry import JOB_KINDS, SUBMITTED_KINDS

SCHEME = Scheme((*CORE_KINDS, *(one.kind for one in SUBMITTED_KINDS)))
KINDS = {one.kind.kind: one.kind for one in JOB_KINDS}


@dataclass
class World:
    client: LocalClient
    store: Store
    clock: ManualClock
    controller: JobController
    lookout: Lookout
    numbers: Any = field(default_factory=lambda: count(1))

    async def submit(self, job: Json) -> Key:
        metadata = {
            name: job["metadata"][name] for name in ("name", "annotations") if name in job["metadata"]
        }
        fresh = job | {"metadata": metadata | {"namespace": "kubeflow"}}
        created = await self.client.create(KINDS[job["kind"]], fresh)
        return Key.of(KINDS[job["kind"]], created)

    async def names(self, kind: Kind) -> list[str]:
        return [name_of(one) for one in (await self.client.select(kind, "kubeflow")).items]

    async def events(self) -> list[str]:
        found = (await self.client.select(EVENT, "kubeflow")).items
        return sorted(f"{one['type']} {one['reason']}: {one['message']}" for one in found)

    async def set_phase(self, pod: str, phase: str, code: int | None = None) -> None:
        status: Json = {"phase": phase}
        if code is not None:
            end = {"exitCode": code, "finishedAt": stamp(self.clock.now())}
            found = await self.client.get(Key(POD, "kubeflow", pod))
            container = found["spec"]["containers"][0]["name"]
            status["containerStatuses"] = [
                {
                    "name": container,
                    "restartCount": 0,
                    "ready": False,
                    "image": "",
                    "imageID": "",
                    "state": {"terminated": end},
                }
            ]
        await self.client.patch(Key(POD, "kubeflow", pod), {"status": status}, subresource="status")

    async def seen(self, wanted: Callable[[], Any]) -> None:
        """Waits until the question is answered with yes."""
        with anyio.fail_after(5):
            while not await wanted():
                await anyio.lowlevel.checkpoint()

    async def conditions(self, key: Key) -> str:
        """`Created Running=False Succeeded`"""
        job = await self.client.get(key)
        listed = (job.get("status") or {}).get("conditions") or []
        return " ".join(one["type"] + ("" if one["status"] == "True" else "=False") for one in listed)

    async def until(self, key: Key, conditions: str) -> None:
        async def there() -> bool:
            return await self.conditions(key) == conditions

        await self.seen(there)

    async def until_pods(self, *names: str) -> None:
        async def there() -> bool:
            return await self.names(POD) == sorted(names)

        await self.seen(there)


@asynccontextmanager
async def a_world(*, ports: bool = False, checked: bool = True) -> AsyncIterator[World]:
    """`checked` is what a home does at its door and a cluster does not."""
    clock = ManualClock()
    numbers = count(1)
    store = Store(":memory:", inline=True)
    door = (Admission(SUBMITTED_KINDS),) if checked else ()
    registry = Registry(store, SCHEME, clock, lambda: f"uid-{next(numbers)}", *door)
    await ensure_namespaces(registry)
    client = LocalClient(registry)
    companions = (kind for kind in companion_kinds(JOB_KINDS) if kind in set(SCHEME))
    lookout = Lookout(client, JOB_KINDS, companions)
    controller = JobController(client, lookout, clock, PortBook(lambda _port: True) if ports else None)
    async with anyio.create_task_group() as tasks:
        for part in (lookout.run, Collector(client, SCHEME).run, controller.run):
            tasks.start_soon(part)
        await lookout.synced()
        yield World(client, store, clock, controller, lookout)
        tasks.cancel_scope.cancel()
    store.close()
