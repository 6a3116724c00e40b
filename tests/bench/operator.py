"""Both operators on one real control plane with pretended nodes, one after the other: many jobs at once.

`python -m tests.bench.operator` prints how soon all pods exist and all jobs run, and what it cost. It needs
KUBEBUILDER_ASSETS, as the oracle does.
"""

import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import psutil

from fullrank.api.meta import Json
from fullrank.api.scheme import POD
from fullrank.client.cache import Cache
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection
from tests.cluster.control_plane import cluster, install, our_operator, training_operator
from tests.contract.kubernetes import NEEDED, assets
from tests.oracle.cases import job
from tests.oracle.stage import KINDS

JOBS, WORKERS = 100, 3
PATIENCE = 180.0
PYTORCH = KINDS["PyTorchJob"]


@dataclass(frozen=True, slots=True)
class Figures:
    pods: float  # seconds until all exist
    running: float  # seconds until all jobs run
    cpu: float  # seconds of the operator
    memory: int  # bytes of it, in the end


def _runs(one: Json) -> bool:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Running" and each["status"] == "True" for each in conditions)


async def measured(connection: Connection, namespace: str, pid: int) -> Figures:
    operator = psutil.Process(pid)
    async with HttpClient(connection) as client, anyio.create_task_group() as tasks:
        jobs, pods = (Cache(client, kind, namespace) for kind in (PYTORCH, POD))
        for cache in (jobs, pods):
            tasks.start_soon(cache.run)
            await cache.synced()
        before, begun = _cpu(operator), anyio.current_time()

        async def passed(true: Callable[[], bool]) -> float:
            with anyio.fail_after(PATIENCE):
                while not true():  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            return anyio.current_time() - begun

        manifest = job("PyTorchJob", {"Master": 1, "Worker": WORKERS})
        async with anyio.create_task_group() as creating:
            for index in range(JOBS):
                metadata = {"name": f"bench-{index}", "namespace": namespace}
                creating.start_soon(client.create, PYTORCH, manifest | {"metadata": metadata})
        made = await passed(lambda: len(pods.all()) == JOBS * (1 + WORKERS))
        running = await passed(lambda: sum(map(_runs, jobs.all())) == JOBS)
        tasks.cancel_scope.cancel()
    return Figures(made, running, _cpu(operator) - before, operator.memory_info().rss)


def _cpu(process: psutil.Process) -> float:
    spent = process.cpu_times()
    return spent.user + spent.system


def main() -> None:
    binaries = assets()
    if binaries is None:
        sys.exit(NEEDED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is taken down
    found: dict[str, Figures] = {}
    with (
        tempfile.TemporaryDirectory(prefix="fullrank-bench-") as folder,
        cluster(binaries, Path(folder)) as one,
    ):
        install(one)
        operators: dict[str, Callable[[str], AbstractContextManager[int]]] = {
            "training-operator v1.8.1": partial(training_operator, one),
            "fullrank": partial(our_operator, one),
        }
        for number, (name, operator) in enumerate(operators.items()):
            namespace = one.namespace(f"bench-{number}")
            with operator(namespace) as pid:
                found[name] = anyio.run(measured, one.connection, namespace, pid)
    _table(found)


def _table(found: dict[str, Figures]) -> None:
    print(f"{JOBS} PyTorchJobs of {1 + WORKERS} pods, created at once")  # noqa: T201
    print(f"{'':26}{'pods made':>12}{'all run':>12}{'jobs/s':>10}{'CPU/job':>12}{'memory':>10}")  # noqa: T201
    for name, one in found.items():
        words = (f"{one.pods:.1f} s", f"{one.running:.1f} s", f"{JOBS / one.running:.1f}")
        cost = (f"{one.cpu / JOBS * 1000:.1f} ms", f"{one.memory / 2**20:.0f} MB")
        print(f"{name:26}{words[0]:>12}{words[1]:>12}{words[2]:>10}{cost[0]:>12}{cost[1]:>10}")  # noqa: T201
    theirs, ours = found.values()
    print(f"jobs/s: {theirs.running / ours.running:.1f} times theirs (to be reached: 10)")  # noqa: T201


if __name__ == "__main__":
    main()
