"""The embedded home, measured from outside: how soon it answers, what it weighs, how soon ranks run.

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

import psutil

RANKS = 64
JOB: dict[str, Any] = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob"}


class Bench:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {
            **os.environ,
            "FULLRANK_HOME": str(home),
            "FULLRANK_PORT": "0",
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


def start_of_ranks(bench: Bench, name: str, ranks: int) -> float:
    """From create to the last rank running, in seconds: the container's own start time against the job's creation."""
    container = {
        "name": "pytorch",
        "image": "python:3.11",
        "command": ["sh", "-c", "date +%s.%N; exec sleep 60"],
    }
    replicas = {"replicas": ranks, "template": {"spec": {"containers": [container]}}}
    job = {**JOB, "metadata": {"name": name}, "spec": {"pytorchReplicaSpecs": {"Worker": replicas}}}
    begun = datetime.now().timestamp()  # noqa: DTZ005, TID251  # the machine's clock, as `date` in the ranks reads it
    bench.kubectl("create", "-f", "-", stdin=json.dumps(job))
    selector = f"training.kubeflow.org/job-name={name}"
    while True:
        pods = json.loads(bench.kubectl("get", "pods", "-l", selector, "-o", "json"))["items"]
        if len(pods) == ranks and all(pod["status"]["phase"] == "Running" for pod in pods):
            break
        sleep(0.05)
    logs = bench.kubectl("logs", "-l", selector, "--max-log-requests=100", "--tail=1").split()
    bench.kubectl("delete", "pytorchjob", name, "--cascade=foreground", "--grace-period=0")
    return max(float(moment) for moment in logs) - begun


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
        rows.append(
            (f"create to {RANKS} ranks running", f"{start_of_ranks(bench, 'many', RANKS):.2f} s", "≤ 2 s")
        )
        bench.fullrank("down")
    for what, found, reach in rows:
        sys.stdout.write(f"{what:50} {found:>18}   {reach}\n")


if __name__ == "__main__":
    main()
