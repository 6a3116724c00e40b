"""What a look at a settled job costs: `python -m tests.bench.planner`.

One look is everything a pass does before it writes: the scene, the plan, the new status and its comparison with the
old one. The job is settled, so that there is nothing to do: this is what most passes of a busy home are.
"""

import gc
import sys
from statistics import median
from time import process_time

from fullrank.api.meta import Json
from fullrank.dialects.contract import JobKind
from fullrank.planning.rules import plan
from fullrank.planning.scene import scene_of
from tests.build import NOW, a_job, a_pod, kind_of, services_of

REACH = {8: 0.2, 64: 0.6, 1024: 6.0}  # members → milliseconds
ROLES = {
    "PyTorchJob": ("Worker", "OnFailure"),
    "TFJob": ("Worker", "Never"),
    "MPIJob": ("Worker", "Never"),
    "MXJob": ("Worker", "ExitCode"),
    "PaddleJob": ("Worker", "OnFailure"),
    "XGBoostJob": ("Worker", "Never"),
    "JAXJob": ("Worker", "ExitCode"),
    "TensorFlowTrainingJob": ("worker", "ExitCode"),
    "PyTorchTrainingJob": ("node", "OnFailure"),
    "XGBoostTrainingJob": ("worker", "ExitCode"),
    "GenericJob": ("worker", "OnFailure"),
}
LEADERS = {
    "PyTorchJob": {"Master": 1}, "MPIJob": {"Launcher": 1}, "XGBoostJob": {"Master": 1}, "MXJob": {"Scheduler": 1},
    "XGBoostTrainingJob": {"master": 1},
}  # fmt: skip


def settled(kind: str, members: int) -> tuple[Json, list[Json], list[Json]]:
    role, policy = ROLES[kind]
    leaders = LEADERS.get(kind, {})
    job = a_job(kind, leaders | {role: members - len(leaders)}, policy=policy)
    names = [f"{name.lower()}-0" for name in leaders]
    names += [f"{role.lower()}-{index}" for index in range(members - len(leaders))]
    pods, services = [a_pod(job, name, "Running") for name in names], services_of(job)
    for _ in range(3):
        job, _ = look(kind_of(job), job, pods, services)
    return job, pods, services


def look(job_kind: JobKind, job: Json, pods: list[Json], services: list[Json]) -> tuple[Json, bool]:
    scene = scene_of(job_kind, job, pods, services, NOW)
    decision = plan(scene)
    before = job.get("status") or {}
    status = decision.status(scene, before)
    return job | {"status": status}, status == before and decision.actions == ()


def measure(kind: str, members: int) -> float:
    """The median look, in milliseconds."""
    job, pods, services = settled(kind, members)
    job_kind = kind_of(job)
    times = []
    for _ in range(max(20, 4000 // members)):
        begin = process_time()
        _, quiet = look(job_kind, job, pods, services)
        times.append(process_time() - begin)
        assert quiet
    return median(times) * 1000


def main() -> None:
    gc.set_threshold(100_000, 50, 1000)  # as the home does
    out = sys.stdout
    out.write(f"{'kind':<24}{'members':>8}{'ms':>10}{'reach':>8}\n")
    for kind in ROLES:
        for members, reach in REACH.items():
            spent = min(measure(kind, members) for _ in range(3))
            verdict = "" if spent <= reach else "  missed"
            out.write(f"{kind:<24}{members:>8}{spent:>10.3f}{reach:>8}{verdict}\n")


if __name__ == "__main__":
    main()
