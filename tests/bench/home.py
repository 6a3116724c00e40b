"""The embedded home, measured from outside: how soon it answers, what it weighs, how soon ranks run, stage by stage.

`python -m tests.bench.home` prints each figure beside what is to be reached.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import anyio
import psutil

from fullrank.api.scheme import POD
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from fullrank.dialects.registry import JOB_KINDS

RANKS = 64
ROUNDS = 10
JOB: dict[str, Any] = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}


class Bench:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            **os.environ,
            "FULLRANK_HOME": str(home),
            "FULLRANK_PORT": "0",
            "FULLRANK_UI_PORT": "0",
            "KUBECONFIG": str(home / "kubeconfig"),
        }

    def fullrank(self, *words: str) -> str:
        return self._run([sys.executable, "-m", "fullrank", *words])

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        return self._run(["kubectl", *words], stdin)

    def _run(self, words: list[str], stdin: str | None = None) -> str:
        return subprocess.run(
            words, env=self.environ, input=stdin, text=True, capture_output=True, check=True
        ).stdout


def seconds(deed: Callable[[], Any]) -> float:
    begun = perf_counter()
    deed()
    return perf_counter() - begun


def up_and_answered(bench: Bench) -> float:
    def deed() -> None:
        bench.fullrank("up", "--detach")
        bench.kubectl("get", "namespaces")

    return seconds(deed)


def memory_of(bench: Bench) -> float:
    pid = json.loads(bench.fullrank("status", "-o", "json"))["pid"]
    process = psutil.Process(pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True))) / 1e6


def a_job(name: str, ranks: int) -> dict[str, Any]:
    container = {
        "name": "pytorch",
        "image": "python:3.11",
        "command": ["sh", "-c", "date +%s.%N; exec sleep 60"],
    }
    replicas = {"replicas": ranks, "template": {"spec": {"containers": [container]}}}
    spec = {"pytorchReplicaSpecs": {"Worker": replicas}}
    return {**JOB, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def start_of_ranks(bench: Bench, name: str, ranks: int) -> float:
    """From create to the last rank running, in seconds: the container's own start time against the job's creation."""
    begun = datetime.now().timestamp()  # noqa: DTZ005, TID251  # the machine's clock, as `date` in the ranks reads it
    bench.kubectl("create", "-f", "-", stdin=json.dumps(a_job(name, ranks)))
    selector = f"training.kubeflow.org/job-name={name}"
    while True:
        pods = json.loads(bench.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        if len(pods) == ranks and all(pod["status"]["phase"] == "Running" for pod in pods):
            break
        sleep(0.05)
    logs = bench.kubectl("logs", "-l", selector, "--max-log-requests=100", "--tail=1").split()
    delete(bench, name)
    return max(float(moment) for moment in logs) - begun


def stages_of_a_start(bench: Bench, name: str) -> dict[str, float]:
    """When a job's only rank had come how far, in seconds after it was submitted, as a watch of its pods hears it."""
    return anyio.run(_stages_of_a_start, bench, name)


async def _stages_of_a_start(bench: Bench, name: str) -> dict[str, float]:
    found: dict[str, float] = {}
    kind = next(one.kind for one in JOB_KINDS if one.kind.kind == "PyTorchJob")
    async with HttpClient(load([bench.home / "kubeconfig"])) as client:
        since = (await client.select(POD, "default")).revision
        async with client.watch(POD, "default", since=since) as events:
            begun, wall = perf_counter(), datetime.now().timestamp()  # noqa: DTZ005, TID251  # as `date` reads it
            await client.create(kind, a_job(name, 1))
            found["admitted"] = perf_counter() - begun
            async for event in events:
                at, pod = perf_counter() - begun, event.obj
                if not pod["metadata"]["name"].startswith(f"{name}-"):
                    continue
                found.setdefault("pod created", at)
                if pod["spec"].get("nodeName"):
                    found.setdefault("bound", at)
                if pod["status"].get("startTime"):
                    found.setdefault("container creating", at)
                if pod["status"].get("phase") == "Running":
                    found["reported running"] = at
                    break
    found["process started"] = _said_by(bench, f"{name}-worker-0") - wall
    return dict(sorted(found.items(), key=lambda one: one[1]))


def _said_by(bench: Bench, pod: str) -> float:
    while not (text := bench.kubectl("logs", pod).strip()):
        sleep(0.01)
    return float(text)


def cost_of_a_parent(bench: Bench, pod: str) -> tuple[float, float]:
    """What a container's parent has of its own, in megabytes, and the CPU time it took so far, in milliseconds."""
    uid = bench.kubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
    started = json.loads((bench.home / "pods" / uid / "pytorch" / "0" / "started.json").read_text())
    ran = int(Path("/proc", str(started["parent"]), "schedstat").read_text().split()[0])  # in nanoseconds
    return psutil.Process(started["parent"]).memory_full_info().uss / 1e6, ran / 1e6


def delete(bench: Bench, name: str) -> None:
    bench.kubectl("delete", "pytorchjob", name, "--cascade=foreground", "--grace-period=0")


def main() -> None:
    if shutil.which("kubectl") is None:
        sys.exit("this bench needs kubectl")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder) / "home")
        rows = [("up to first answered kubectl call", f"{up_and_answered(bench):.2f} s", "≤ 1.0 s")]
        rows.append(("idle memory, nursery included", f"{memory_of(bench):.0f} MB", "≤ 150 MB"))
        start_of_ranks(bench, "warm", 1)
        times = sorted(start_of_ranks(bench, f"one-{number}", 1) for number in range(20))
        spread = f"{statistics.median(times) * 1000:.0f} / {times[18] * 1000:.0f} ms"
        rows.append(("create to first rank running, median / p95 of 20", spread, "p95 ≤ 300 ms"))
        stages, cost = [], (0.0, 0.0)
        for number in range(ROUNDS):
            stages.append(stages_of_a_start(bench, f"stage-{number}"))
            cost = cost_of_a_parent(bench, f"stage-{number}-worker-0")
            delete(bench, f"stage-{number}")
        for stage in stages[-1]:
            median = statistics.median(one[stage] for one in stages)
            rows.append((f"  {stage}, median of {ROUNDS}", f"{median * 1000:.0f} ms", ""))
        rows.append(
            ("a container's parent: memory, CPU", f"{cost[0]:.1f} MB, {cost[1]:.1f} ms", "≤ 2 MB, ≤ 5 ms")
        )
        rows.append(
            (f"create to {RANKS} ranks running", f"{start_of_ranks(bench, 'many', RANKS):.2f} s", "≤ 2 s")
        )
        bench.fullrank("down")
    for what, found, reach in rows:
        sys.stdout.write(f"{what:50} {found:>18}   {reach}\n")


if __name__ == "__main__":
    main()
