"""What v1 leaves to chance, or gets wrong under stress: nobody in a role, opposite ends, pods that take their time."""

from collections.abc import Mapping
from typing import Any

from fullrank.api.meta import Json
from tests.oracle.cases import (
    FRAMEWORKS,
    MAIN,
    Case,
    Deed,
    Delete,
    Edit,
    Scale,
    Unseen,
    Wait,
    end,
    job,
    main_pod,
    replica,
    spec_of,
    suspend,
    usual,
)

LINGERS = "5s"  # how long a pod takes to stop, where it takes its time
POLICIES = ("Never", "OnFailure", "ExitCode")
CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}


def slow(kind: str, policy: str, workers: int = 2, **run_policy: Any) -> Json:
    """The usual job, whose workers take their time to stop."""
    whole = usual(kind, policy, workers, **run_policy)
    replicas: Json = whole["spec"][FRAMEWORKS[kind].replicas_field]
    template = replicas["Worker"]["template"]
    template["metadata"] = {"annotations": {"pretend/lingers": LINGERS}}
    return whole


def _nobody() -> dict[str, Case]:
    cases = {
        f"{kind}: replicas 0 beside the main pod": Case(
            usual(kind, workers=0), {"main exits 0": end(0, main_pod(kind))}
        )
        for kind in MAIN
    }
    for kind in ("PyTorchJob", "PaddleJob", "TFJob", "MXJob"):
        cases[f"{kind}: replicas 0 and nobody else"] = Case(job(kind, {"Worker": 0}), {})
        cases[f"{kind}: replicas 0 after a while"] = Case(
            usual(kind, workers=1), {"nobody": spec_of(kind, "Worker", replicas=0)}
        )
    return cases


def _opposites() -> dict[str, Case]:
    """Both ends happen while no operator looks; pods say in whole seconds when they ended."""
    cases = {}
    for kind in MAIN:
        well, badly = end(0, main_pod(kind)), end(1, "worker-0")
        for title, deeds in (("success first", (well, badly)), ("failure first", (badly, well))):
            cases[f"{kind}: opposite ends, {title}"] = Case(usual(kind, "Never"), {"both": Unseen(deeds)})
    return cases


def _slow_stops() -> dict[str, Case]:
    cases = {}
    for kind in MAIN:
        fewer: dict[str, Deed] = {"fewer": spec_of(kind, "Worker", replicas=2), "gone": Wait(6)}
        cases[f"{kind}: slow to stop, scaled down"] = Case(slow(kind, "Never", 3), fewer)
        for policy in POLICIES:
            deleted: dict[str, Deed] = {"deleted": Delete("Pod", "worker-0"), "gone": Wait(6)}
            cases[f"{kind}: slow to stop, deleted under {policy}"] = Case(slow(kind, policy), deleted)
    for kind in ("XGBoostJob", "MXJob"):
        more: dict[str, Deed] = {"fewer": spec_of(kind, "Worker", replicas=2), "gone": Wait(6)}
        cases[f"{kind}: slow to stop, scaled down under ExitCode"] = Case(slow(kind, "ExitCode", 3), more)
    cases["MPIJob: slow to stop, suspended"] = Case(
        slow("MPIJob", "Never"), {"suspended": suspend(True), "gone": Wait(6), "resumed": suspend(False)}
    )
    return cases


def _restarts() -> dict[str, Case]:
    cases = {}
    for kind in ("PyTorchJob", "TFJob"):
        worker = {"replicas": 1} | _lingering(kind)
        steps: dict[str, Deed] = {
            "killed": end(137, "worker-0"),
            "suspended": suspend(True),
            "gone": Wait(6),
            "resumed": suspend(False),
            "exits 0": end(0, "worker-0"),
        }
        cases[f"{kind}: suspended while restarting"] = Case(job(kind, {"Worker": worker}, "ExitCode"), steps)
    return cases


def _lingering(kind: str) -> Json:
    return {
        "template": replica(kind, metadata={"annotations": {"pretend/lingers": LINGERS}})["template"],
    }


def _times() -> dict[str, Case]:
    cases = {}
    for kind in ("PyTorchJob", "TFJob", "MPIJob"):
        late: dict[str, Deed] = {
            "suspended": suspend(True),
            "longer than its deadline": Wait(13),
            "resumed": suspend(False),
            "the time is over": Wait(13),
            "an edit": Edit({"metadata": {"labels": {"x": "y"}}}),
        }
        cases[f"{kind}: activeDeadlineSeconds, suspended meanwhile"] = Case(
            usual(kind, activeDeadlineSeconds=12), late
        )
        for policy in ("Running", "All"):
            gone: dict[str, Deed] = {"main exits 0": end(0, main_pod(kind)), "the time is over": Wait(9)}
            cases[f"{kind}: ttlSecondsAfterFinished, cleanPodPolicy {policy}"] = Case(
                usual(kind, ttlSecondsAfterFinished=8, cleanPodPolicy=policy), gone
            )
    failed: dict[str, Deed] = {"a worker exits 1": end(1, "worker-0"), "the time is over": Wait(9)}
    cases["PyTorchJob: ttlSecondsAfterFinished after a failure"] = Case(
        usual("PyTorchJob", "Never", ttlSecondsAfterFinished=8, cleanPodPolicy="Running"), failed
    )
    return cases


def _elastic() -> dict[str, Case]:
    scaled = {"minReplicas": 1, "maxReplicas": 3, "metrics": [CPU]}
    whole = job("PyTorchJob", {"Worker": 2}, elasticPolicy=scaled)
    return {
        "PyTorchJob: an autoscaler, scaled beyond its bounds": Case(
            whole, {"five": Scale(5), "one": Scale(1)}
        ),
        "PyTorchJob: an autoscaler, its metrics taken away": Case(
            whole, {"taken away": Edit({"spec": {"elasticPolicy": {"metrics": None}}})}
        ),
        "PyTorchJob: an autoscaler beside a master": Case(
            job("PyTorchJob", {"Master": 1, "Worker": 1}, elasticPolicy=scaled),
            {"exits 0": end(0, "master-0")},
        ),
    }


ODD: Mapping[str, Case] = {
    **_nobody(), **_opposites(), **_slow_stops(), **_restarts(), **_times(), **_elastic(),
}  # fmt: skip
