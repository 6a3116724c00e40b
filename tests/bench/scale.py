"""Crowds in an embedded home: many jobs at once, one job with very many members, and what each running job weighs.

`python -m tests.bench.scale` prints each figure beside what is to be reached, with the CPU that it took and the
machine's load, since seconds alone say little where others work too. The home is the real one, its file on disk, its
door on a socket; only its nodes are pretended (`tests/doubles/nodes.py`), and jobs come over HTTPS, from this process.
"""

import gc
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from time import process_time
from typing import Any
from uuid import uuid4

import anyio
import psutil

from fullrank.agent.network import port_is_free
from fullrank.api.meta import Json, name_of, uid_of
from fullrank.api.scheme import Scheme
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection, Credentials
from fullrank.clock import SystemClock
from fullrank.controllers.apps import AppController
from fullrank.controllers.binder import Binder
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.jobs import JobController
from fullrank.controllers.jupyter import ask_jupyter
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.ports import PortBook
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.collector import Collector
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.namespaces import Namespaces
from fullrank.controlplane.pki import credentials
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.daemon import prepare_process
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS, SUBMITTED_KINDS
from tests.build import kind_of
from tests.contract.conftest import NoLogs
from tests.doubles.nodes import PretendedNodes

JOBS, WORKERS = 1_000, 3
REPLICAS = 2_000
NODES = 100
PATIENCE = 300.0
EVERY = 0.05  # seconds between the small jobs that come while the large one is made
SUBMITTING = 64  # requests of the user on the way


def a_job(name: str, *, workers: int, leader: bool = True) -> Json:
    container = {"name": "pytorch", "image": "python:3.11", "command": ["sleep", "600"]}
    template = {"spec": {"containers": [container]}}
    roles = {"Master": {"replicas": 1, "template": template}} if leader else {}
    roles["Worker"] = {"replicas": workers, "template": template}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"pytorchReplicaSpecs": roles},
    }


PYTORCH = kind_of(a_job("", workers=1)).kind


def _runs(job: Json) -> bool:
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Running" and one["status"] == "True" for one in conditions)


class Scene:
    """What there is, as the home's own copies hear it: looking costs the home nothing."""

    def __init__(self, lookout: Lookout) -> None:
        self.pods: dict[str, float] = {}  # name → when it was there first
        self.running_pods: set[str] = set()
        self.running_jobs: set[str] = set()
        self._news = anyio.Event()
        lookout.pods.listen(self._hear_of_pod)
        lookout.jobs[PYTORCH].listen(self._hear_of_job)

    async def until(self, true: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE):
            while not true():
                self._news = anyio.Event()
                await self._news.wait()

    def _hear_of_pod(self, _old: Json | None, pod: Json | None) -> None:
        if pod:
            self.pods.setdefault(name_of(pod), anyio.current_time())
            if (pod.get("status") or {}).get("phase") == "Running":
                self.running_pods.add(uid_of(pod))
            self._news.set()

    def _hear_of_job(self, _old: Json | None, job: Json | None) -> None:
        if job and _runs(job):
            self.running_jobs.add(uid_of(job))
            self._news.set()


@dataclass(frozen=True, slots=True)
class Home:
    user: HttpClient
    store: Store
    scene: Scene

    async def submit(self, *jobs: Json) -> None:
        limiter = anyio.CapacityLimiter(SUBMITTING)

        async def create(job: Json) -> None:
            async with limiter:
                await self.user.create(PYTORCH, job)

        async with anyio.create_task_group() as tasks:
            for job in jobs:
                tasks.start_soon(create, job)

    async def settled(self) -> None:
        """Returns when nothing is written any more: events are told later than deeds."""
        seen = -1
        while seen != self.store.revision:
            seen = self.store.revision
            await anyio.sleep(1.0)


@asynccontextmanager
async def _running(*parts: Callable[[], Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(part)
        yield
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def a_home(folder: Path) -> AsyncIterator[Home]:
    """The parts of an embedded home, put together as the daemon does, but for the agent."""
    clock, admission = SystemClock(), Admission(SUBMITTED_KINDS)
    scheme = Scheme(admission.kinds)
    proof = credentials(folder / "pki", clock.now(), ("127.0.0.1", ""))
    ca = proof.ca.read_text()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(closing(Store(folder / "state.db")))
        registry = Registry(store, scheme, clock, lambda: str(uuid4()), admission, root_ca=ca)
        await stack.enter_async_context(_running(store.run))
        await ensure_namespaces(registry)
        client = LocalClient(registry)
        api = Api(registry, admission, Access(proof.token), NoLogs(), clock)
        bound = await stack.enter_async_context(serving(api, proof.server_context()))
        lookout = Lookout(
            client, JOB_KINDS, (one for one in companion_kinds(JOB_KINDS) if one in admission.kinds)
        )
        ports = PortBook(port_is_free)
        scene = Scene(lookout)
        parts = (
            lookout.run,
            Collector(client, scheme).run,
            Namespaces(client, scheme, ca, clock).run,
            JobController(client, lookout, clock, ports).run,
            AppController(client, clock, APP_KINDS, new_token=token_hex, ask=ask_jupyter, ports=ports).run,
            Binder(client, lookout, clock, cpu_overcommit=1.0).run,
            PretendedNodes(client, clock, NODES).run,
        )
        await stack.enter_async_context(_running(*parts))
        await lookout.synced()
        with anyio.fail_after(PATIENCE):
            while len(lookout.nodes.all()) < NODES:  # noqa: ASYNC110
                await anyio.sleep(0.05)
        way_in = Connection(bound.url, ca=ca, credentials=Credentials(token=proof.token))
        user = await stack.enter_async_context(HttpClient(way_in))
        yield Home(user, store, scene)


def _memory() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


async def many_jobs(home: Home) -> list[tuple[str, str, str]]:
    pods = JOBS * (1 + WORKERS)
    await home.submit(a_job("first", workers=WORKERS))
    await home.scene.until(lambda: len(home.scene.running_jobs) == 1)
    memory, writes = _memory(), home.store.revision
    begun, cpu = anyio.current_time(), process_time()
    await home.submit(*(a_job(f"job-{number}", workers=WORKERS) for number in range(JOBS)))
    submitted = anyio.current_time() - begun
    await home.scene.until(lambda: len(home.scene.running_pods) == pods + 1 + WORKERS)
    await home.scene.until(lambda: len(home.scene.running_jobs) == JOBS + 1)
    took, spent = anyio.current_time() - begun, process_time() - cpu
    written = home.store.revision - writes
    await home.settled()
    weight = _memory() - memory
    writes = home.store.revision - writes
    return [
        (f"{JOBS:,} jobs of {1 + WORKERS} pods at once: all are Running", f"{took:.1f} s", "≤ 20 s"),
        ("  pods that came to run", f"{pods / took:.0f}/s", "≥ 200/s"),
        ("  all submitted; CPU, the user's and the nodes' too", f"{submitted:.1f} s; {spent:.1f} s", ""),
        ("  writes a job until then; events and all", f"{written / JOBS:.1f}; {writes / JOBS:.1f}", ""),
        ("memory for each job that runs, history and all", f"{weight / JOBS / 1e6:.2f} MB", "≤ 1 MB"),
    ]


async def one_large_job(home: Home) -> list[tuple[str, str, str]]:
    await home.submit(a_job("first", workers=1, leader=False))
    await home.scene.until(lambda: len(home.scene.running_jobs) == 1)
    asked: dict[str, float] = {}
    scene, begun, cpu, writes = home.scene, anyio.current_time(), process_time(), home.store.revision

    async def small_jobs() -> None:
        while True:
            name = f"small-{len(asked)}"
            asked[f"{name}-worker-0"] = anyio.current_time()
            await home.submit(a_job(name, workers=1, leader=False))
            await anyio.sleep(EVERY)

    def made() -> int:
        return len(scene.pods) - sum(pod in scene.pods for pod in asked) - 1

    async with anyio.create_task_group() as others:
        others.start_soon(small_jobs)
        await home.submit(a_job("large", workers=REPLICAS - 1))
        await scene.until(lambda: made() == REPLICAS)
        created = anyio.current_time() - begun
        await scene.until(lambda: len(scene.running_pods) >= REPLICAS)
        running, spent = anyio.current_time() - begun, process_time() - cpu
        others.cancel_scope.cancel()
    await scene.until(lambda: all(pod in scene.pods for pod in list(asked)[:-1]))
    waits = sorted(scene.pods[pod] - since for pod, since in asked.items() if pod in scene.pods)
    await home.settled()
    written = home.store.revision - writes
    spread = f"{waits[len(waits) // 2]:.2f} / {waits[int(len(waits) * 0.99)]:.2f} s"
    return [
        (f"a job of {REPLICAS:,} replicas: its pods are made", f"{created:.1f} s", "≤ 10 s"),
        (
            f"  until they run, with {len(waits)} small jobs: seconds; CPU",
            f"{running:.1f} s; {spent:.1f} s",
            "",
        ),
        ("  writes", f"{written:,}", ""),
        ("  small jobs meanwhile, asked to pod made: median / p99", spread, "p99 ≤ 1 s"),
    ]


async def measured() -> None:
    for measure in (many_jobs, one_large_job):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            async with a_home(Path(folder)) as home:
                rows = await measure(home)
        load = f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
        for what, found, reach in rows:
            sys.stdout.write(f"{what:62} {found:>20}   {reach:10} {load}\n")


def main() -> None:
    prepare_process()
    anyio.run(measured)


if __name__ == "__main__":
    main()
