"""The manifests that both operators are given, and what is done to the jobs then."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from fullrank.api.meta import Json
from fullrank.dialects.registry import JOB_KINDS

EXAMPLES = Path(__file__).parents[2] / "examples"
FRAMEWORKS = {one.kind.kind: one.framework for one in JOB_KINDS if one.kind.group == "kubeflow.org"}
MAIN = {"PyTorchJob": "Master", "PaddleJob": "Master", "TFJob": "Chief", "XGBoostJob": "Master",
        "MXJob": "Scheduler", "MPIJob": "Launcher"}  # fmt: skip


# -- what is done to a job; pods are named without the job's name --------------------------------------------------


@dataclass(frozen=True, slots=True)
class End:
    """Pods end with a code; "*" is all of them."""

    code: int
    pods: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """Containers of a pod have been restarted in place."""

    times: int
    pod: str


@dataclass(frozen=True, slots=True)
class Evict:
    pod: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A merge patch of the job."""

    patch: Json


@dataclass(frozen=True, slots=True)
class Scale:
    """Workers, through the `scale` subresource."""

    replicas: int


@dataclass(frozen=True, slots=True)
class Delete:
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Unseen:
    """Pods end one after the other while neither operator looks."""

    deeds: tuple[End, ...]


Deed = End | Restart | Evict | Edit | Scale | Delete | Wait | Unseen


@dataclass(frozen=True, slots=True)
class Case:
    manifest: Json
    steps: Mapping[str, Deed]
    beside: tuple[Json, ...] = ()  # objects that are there before


def end(code: int, *pods: str) -> End:
    return End(code, pods)


def suspend(yes: bool) -> Edit:
    return Edit({"spec": {"runPolicy": {"suspend": yes}}})


# -- manifests -----------------------------------------------------------------------------------------------------


def tutorial(name: str) -> Json:
    """As it is in the book, but for the namespace."""
    found: Json = yaml.safe_load((EXAMPLES / name / f"{name}.yaml").read_text())
    found["metadata"].pop("namespace", None)
    return found


def job(kind: str, roles: Mapping[str, int | Json], policy: str = "", **spec: Any) -> Json:
    """A job with a plain container in each role; a role is a number or a whole replica spec that has what matters."""
    framework = FRAMEWORKS[kind]
    replicas = {}
    for role, given in roles.items():
        one: Json = {"replicas": given} if isinstance(given, int) else deepcopy(given)
        one.setdefault("template", {}).setdefault("spec", {}).setdefault("containers", [container(kind)])
        if policy:
            one.setdefault("restartPolicy", policy)
        replicas[role] = one
    extra = {"jobMode": "MXTrain"} if kind == "MXJob" else {}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
        "spec": {framework.replicas_field: replicas, **extra, **spec},
    }


def container(kind: str, **fields: Any) -> Json:
    return {"name": FRAMEWORKS[kind].container, "image": "training:1", "command": ["train"], **fields}


def replica(kind: str, replicas: int = 1, *, metadata: Json | None = None, **spec: Any) -> Json:
    """A replica spec whose pod spec has more than a container."""
    whole = {"containers": [container(kind)], **spec}
    return {"replicas": replicas, "template": {"metadata": metadata or {}, "spec": whole}}


def usual(kind: str, policy: str = "", workers: int = 2, **run_policy: Any) -> Json:
    """The main role, some workers, and a parameter server where that is usual."""
    servers = {"TFJob": {"PS": 1}, "MXJob": {"Server": 1}}.get(kind, {})
    more = {"runPolicy": run_policy} if run_policy else {}
    return job(kind, {MAIN[kind]: 1, **servers, "Worker": workers}, policy, **more)


def main_pod(kind: str) -> str:
    return "launcher" if kind == "MPIJob" else f"{MAIN[kind].lower()}-0"


def spec_of(kind: str, role: str, **fields: Any) -> Edit:
    return Edit({"spec": {FRAMEWORKS[kind].replicas_field: {role: fields}}})


# -- cases ---------------------------------------------------------------------------------------------------------


def _tutorials() -> dict[str, Case]:
    ends = {
        "mxnet-single": "worker-0", "mxnet-distributed": "scheduler-0", "mpi-benchmarks": "launcher",
        "paddle-single": "worker-0", "paddle-distributed": "worker-0", "pytorch-simple": "master-0",
    }  # fmt: skip
    return {
        f"tutorial {name}": Case(
            tutorial(name), {"the main pod exits 0": end(0, pod), "the others too": end(0, "*")}
        )
        for name, pod in ends.items()
    }


def _examples() -> dict[str, Case]:
    """Our own, of the kinds that v1 knows."""
    found = {}
    for name, pod in (("tensorflow-ps", "chief-0"), ("xgboost-iris", "master-0")):
        documents = list(yaml.safe_load_all((EXAMPLES / name / f"{name}.yaml").read_text()))
        manifest = next(one for one in documents if one["kind"] in FRAMEWORKS)
        found[f"example {name}"] = Case(manifest, {"the main pod exits 0": end(0, pod)})
    return found


def _ends() -> dict[str, Case]:
    cases = {}
    for kind in MAIN:
        workers = {"workers exit 0": end(0, "worker-0", "worker-1"), "main exits 0": end(0, main_pod(kind))}
        cases[f"{kind}: workers end before the main pod"] = Case(usual(kind), workers)
        cases[f"{kind}: the main pod ends first"] = Case(
            usual(kind), {"main exits 0": end(0, main_pod(kind))}
        )
    return cases


def _failures() -> dict[str, Case]:
    cases = {}
    for kind in MAIN:
        for policy, code in (
            ("Never", 1),
            ("OnFailure", 1),
            ("Always", 1),
            ("ExitCode", 1),
            ("ExitCode", 137),
        ):
            exits = {f"a worker exits {code}": end(code, "worker-1")}
            cases[f"{kind}: {policy}, a worker exits {code}"] = Case(usual(kind, policy), exits)
        for policy, code in (("Never", 3), ("ExitCode", 143)):
            exits = {f"the main pod exits {code}": end(code, main_pod(kind))}
            cases[f"{kind}: {policy}, the main pod exits {code}"] = Case(usual(kind, policy), exits)
    for kind, policy in (("PyTorchJob", "ExitCode"), ("PaddleJob", "OnFailure"), ("TFJob", "ExitCode")):
        cases[f"{kind}: {policy}, a worker is evicted"] = Case(
            usual(kind, policy), {"evicted": Evict("worker-0")}
        )
    return cases


def _policies() -> dict[str, Case]:
    cases = {}
    for kind in ("PyTorchJob", "TFJob", "MPIJob"):
        for policy in ("None", "Running", "All", "Foo"):
            steps = {"a worker exits 0": end(0, "worker-1"), "main exits 0": end(0, main_pod(kind))}
            cases[f"{kind}: cleanPodPolicy {policy}"] = Case(usual(kind, cleanPodPolicy=policy), steps)
        fails = {"a worker exits 1": end(1, "worker-0")}
        case = Case(usual(kind, "Never", cleanPodPolicy="Running"), fails)
        cases[f"{kind}: cleanPodPolicy Running after a failure"] = case
        limit = usual(kind, "OnFailure", backoffLimit=2)
        cases[f"{kind}: backoffLimit 2, restarts in place"] = Case(
            limit, {"once": Restart(1, "worker-0"), "twice": Restart(1, "worker-1")}
        )
        cases[f"{kind}: backoffLimit -1"] = Case(usual(kind, backoffLimit=-1), {})
        late: dict[str, Deed] = {
            "the time is over": Wait(13),
            "an edit": Edit({"metadata": {"labels": {"x": "y"}}}),
        }
        cases[f"{kind}: activeDeadlineSeconds"] = Case(usual(kind, activeDeadlineSeconds=12), late)
        gone: dict[str, Deed] = {"main exits 0": end(0, main_pod(kind)), "the time is over": Wait(9)}
        cases[f"{kind}: ttlSecondsAfterFinished"] = Case(usual(kind, ttlSecondsAfterFinished=8), gone)
        cases[f"{kind}: suspended, resumed, suspended, resumed"] = Case(
            usual(kind, suspend=True),
            {
                "resumed": suspend(False),
                "suspended": suspend(True),
                "resumed again": suspend(False),
                "main exits 0": end(0, main_pod(kind)),
                "suspended too late": suspend(True),
            },
        )
        scaling = {"four": spec_of(kind, "Worker", replicas=4), "one": spec_of(kind, "Worker", replicas=1)}
        cases[f"{kind}: workers scaled up and down"] = Case(usual(kind), scaling)
    cases["PyTorchJob: backoffLimit 0, a pod fails"] = Case(
        usual("PyTorchJob", "OnFailure", backoffLimit=0), {"a worker exits 1": end(1, "worker-0")}
    )
    cases["PyTorchJob: backoffLimit 1, Never"] = Case(
        usual("PyTorchJob", "Never", backoffLimit=1), {"restarted": Restart(5, "worker-0")}
    )
    cases["PyTorchJob: backoffLimit 1, a worker is replaced twice"] = Case(
        usual("PyTorchJob", "ExitCode", backoffLimit=1),
        {"once": end(137, "worker-0"), "again": end(137, "worker-0")},
    )
    cases["PyTorchJob: ttlSecondsAfterFinished 0"] = Case(
        usual("PyTorchJob", ttlSecondsAfterFinished=0), {"main exits 0": end(0, "master-0")}
    )
    cases["PyTorchJob: ttl after a fatal exit code"] = Case(
        usual("PyTorchJob", "ExitCode", ttlSecondsAfterFinished=1),
        {"exits 1": end(1, "worker-0"), "later": Wait(3)},
    )
    return cases


def _tensorflow() -> dict[str, Case]:
    one_by_one = {"worker 1 exits 0": end(0, "worker-1"), "worker 0 exits 0": end(0, "worker-0")}
    return {
        "TFJob: worker 0 decides": Case(job("TFJob", {"Worker": 2}), {"worker 0 exits 0": end(0, "worker-0")}),
        "TFJob: worker 0 decides, in the end": Case(job("TFJob", {"Worker": 2, "PS": 1}), one_by_one),
        "TFJob: all workers decide": Case(
            job("TFJob", {"Worker": 2}, successPolicy="AllWorkers"),
            {"worker 0 exits 0": end(0, "worker-0"), "worker 1 exits 0": end(0, "worker-1")},
        ),
        "TFJob: all workers decide, one fails": Case(
            job("TFJob", {"Worker": 2}, successPolicy="AllWorkers"), {"worker 1 exits 1": end(1, "worker-1")}
        ),
        "TFJob: a chief decides whatever the policy": Case(
            job("TFJob", {"Chief": 1, "Worker": 2}, successPolicy="AllWorkers"), {"chief exits 0": end(0, "chief-0")}
        ),
        "TFJob: a master": Case(job("TFJob", {"Master": 1, "Worker": 1}), {"master exits 0": end(0, "master-0")}),
        "TFJob: dynamic workers": Case(
            job("TFJob", {"PS": 1, "Worker": 3}, enableDynamicWorker=True),
            {"worker 1 exits 1": end(1, "worker-1"), "worker 0 exits 0": end(0, "worker-0")},
        ),
        "TFJob: dynamic workers, a server fails": Case(
            job("TFJob", {"PS": 1, "Worker": 2}, enableDynamicWorker=True), {"exits 1": end(1, "ps-0")}
        ),
        "TFJob: dynamic workers and a chief": Case(
            job("TFJob", {"Chief": 1, "Worker": 1}, enableDynamicWorker=True), {}
        ),
        "TFJob: an evaluator that ends": Case(
            job("TFJob", {"Chief": 1, "Evaluator": 1, "Worker": 1}), {"evaluator exits 0": end(0, "evaluator-0")}
        ),
        "TFJob: an evaluator that fails": Case(
            job("TFJob", {"Chief": 1, "Evaluator": 1, "Worker": 1}), {"evaluator exits 1": end(1, "evaluator-0")}
        ),
        "TFJob: alone, without TF_CONFIG": Case(job("TFJob", {"Worker": 1}), {"exits 0": end(0, "worker-0")}),
        "TFJob: servers only": Case(job("TFJob", {"PS": 2}), {"all exit 0": end(0, "*")}),
        "TFJob: other ports": Case(
            job("TFJob", {"PS": 1, "Worker": replica("TFJob", 1, containers=[_sidecar(), _ported("TFJob", 7777)])}), {}
        ),
        "TFJob: small letters": Case(job("TFJob", {"ps": 1, "worker": 1}), {}),
    }  # fmt: skip


def _ported(kind: str, port: int, *more: Json) -> Json:
    return container(kind, ports=[{"name": FRAMEWORKS[kind].port_name, "containerPort": port}, *more])


def _sidecar(**fields: Any) -> Json:
    return {"name": "sidecar", "image": "sidecar:1", **fields}


def _pytorch() -> dict[str, Case]:
    elastic = {
        "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "etcd", "rdzvPort": 2379, "rdzvHost": "etcd", "rdzvId": "7",
        "rdzvConf": [{"key": "a", "value": "1"}, {"key": "b", "value": "2"}], "standalone": True, "maxRestarts": 3,
    }  # fmt: skip
    cpu = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    scaled = {"minReplicas": 1, "maxReplicas": 3, "metrics": [cpu]}
    written = {
        "labels": {"mine": "x", "training.kubeflow.org/job-name": "other"}, "annotations": {"kept": "y"},
        "name": "ignored", "namespace": "ignored", "finalizers": ["a.example/b"],
    }  # fmt: skip
    resources = {"limits": {"nvidia.com/gpu": 1, "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    full = [
        container(
            "PyTorchJob",
            env=[{"name": "RANK", "value": "mine"}, {"name": "A", "value": "b"}],
            resources=resources,
        ),
        _sidecar(env=[{"name": "B", "value": "c"}]),
    ]
    spec: Json = {
        "containers": full, "initContainers": [{"name": "first", "image": "init:1"}],
        "tolerations": [{"key": "gpu", "operator": "Exists"}], "volumes": [{"name": "v", "emptyDir": {}}],
        "restartPolicy": "Always", "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 5,
    }  # fmt: skip
    return {
        "PyTorchJob: workers only": Case(
            job("PyTorchJob", {"Worker": 2}), {"one exits 0": end(0, "worker-0"), "both did": end(0, "worker-1")}
        ),
        "PyTorchJob: a master only": Case(job("PyTorchJob", {"Master": 1}), {"exits 0": end(0, "master-0")}),
        "PyTorchJob: four processes a node": Case(job("PyTorchJob", {"Master": 1, "Worker": 2}, nprocPerNode="4"), {}),
        "PyTorchJob: gpu processes": Case(job("PyTorchJob", {"Master": 1, "Worker": 1}, nprocPerNode="gpu"), {}),
        "PyTorchJob: elastic, everything said": Case(
            job("PyTorchJob", {"Worker": 2}, elasticPolicy=elastic), {"one exits 0": end(0, "worker-1")}
        ),
        "PyTorchJob: elastic, nothing said": Case(job("PyTorchJob", {"Worker": 2}, elasticPolicy={}), {}),
        "PyTorchJob: elastic with a master, one bound": Case(
            job("PyTorchJob", {"Master": 1, "Worker": 2}, elasticPolicy={"maxReplicas": 4, "nProcPerNode": 2}), {}
        ),
        "PyTorchJob: elastic, scaled": Case(
            job("PyTorchJob", {"Worker": 2}, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}),
            {"three": Scale(3), "one": Scale(1)},
        ),
        "PyTorchJob: an autoscaler": Case(
            job("PyTorchJob", {"Worker": 2}, elasticPolicy=scaled),
            {
                "more": Edit({"spec": {"elasticPolicy": {"maxReplicas": 5}}}),
                "suspended": suspend(True),
                "resumed": suspend(False),
                "one exits 0": end(0, "worker-0"),
            },
        ),
        "PyTorchJob: a template with everything": Case(
            job("PyTorchJob", {"Master": 1, "Worker": replica("PyTorchJob", metadata=written, **spec)}, "OnFailure"), {}
        ),
        "PyTorchJob: ports of its own": Case(
            job("PyTorchJob", {
                "Master": replica("PyTorchJob", containers=[
                    _ported("PyTorchJob", 5555, {"name": "metrics", "containerPort": 9090, "protocol": "UDP"})
                ]),
                "Worker": 1,
            }), {},
        ),
        "PyTorchJob: counts and policies left out": Case(job("PyTorchJob", {"Master": {}, "Worker": {}}), {}),
        "PyTorchJob: small letters": Case(job("PyTorchJob", {"master": 1, "worker": 1}), {}),
        "PyTorchJob: a running pod is deleted": Case(usual("PyTorchJob"), {"deleted": Delete("Pod", "worker-0")}),
        "PyTorchJob: a pod that ended is deleted": Case(
            usual("PyTorchJob"), {"exits 0": end(0, "worker-0"), "deleted": Delete("Pod", "worker-0")}
        ),
        "PyTorchJob: a service is deleted": Case(usual("PyTorchJob"), {"deleted": Delete("Service", "worker-0")}),
        "PyTorchJob: its image changes": Case(
            usual("PyTorchJob"),
            {
                "changed": spec_of("PyTorchJob", "Worker", template={"spec": {"containers": [
                    container("PyTorchJob", image="training:2")
                ]}}),
                "and deleted": Delete("Pod", "worker-0"),
            },
        ),
        "PyTorchJob: a role is taken away": Case(
            usual("PyTorchJob"), {"gone": Edit({"spec": {"pytorchReplicaSpecs": {"Worker": None}}})}
        ),
        "PyTorchJob: somebody else's pod": Case(
            {**usual("PyTorchJob"), "metadata": {"name": "taken"}}, {},
            beside=({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "taken-worker-0"},
                     "spec": {"containers": [{"name": "a", "image": "a:1"}]}},),
        ),
    }  # fmt: skip


def _mpi() -> dict[str, Case]:
    gpu = {"limits": {"nvidia.com/gpu": 1}}
    launcher = replica("MPIJob", containers=[container("MPIJob", resources=gpu), _sidecar()])
    written = {"labels": {"mine": "x"}, "annotations": {"kept": "y"}, "finalizers": ["a.example/b"]}
    named = {
        name: replica("MPIJob", metadata=written, serviceAccountName=name, restartPolicy="Always")
        for name in ("no-account", "user-account")
    }
    bare = {"name": "any", "image": "mpi:1", "args": ["--flag"]}
    intel = container("MPIJob", env=[{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}])
    taken = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "taken-mpi-config"},
        "data": {"a": "b"},
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "user-account"}}
    return {
        "MPIJob: slots and a launcher with a GPU": Case(
            job("MPIJob", {"Launcher": launcher, "Worker": 2}, slotsPerWorker=4, mainContainer="mpi"),
            {"a worker exits 0": end(0, "worker-1"), "main exits 0": end(0, "launcher")},
        ),
        "MPIJob: an account that is not there": Case(job("MPIJob", {"Launcher": named["no-account"], "Worker": 1}), {}),
        "MPIJob: an account that is there": Case(
            job("MPIJob", {"Launcher": named["user-account"], "Worker": 1}), {}, beside=(account,)
        ),
        "MPIJob: a launcher alone": Case(job("MPIJob", {"Launcher": 1}), {"exits 0": end(0, "launcher")}),
        "MPIJob: no workers": Case(job("MPIJob", {"Launcher": 1, "Worker": 0}), {"exits 0": end(0, "launcher")}),
        "MPIJob: workers without a command": Case(
            job("MPIJob", {
                "Launcher": replica("MPIJob", containers=[intel]),
                "Worker": replica("MPIJob", 2, containers=[bare, _sidecar()], restartPolicy="Always"),
            }), {},
        ),
        "MPIJob: the old place of cleanPodPolicy": Case(
            job("MPIJob", {"Launcher": 1, "Worker": 1}, cleanPodPolicy="All"), {"exits 0": end(0, "launcher")}
        ),
        "MPIJob: eleven workers": Case(job("MPIJob", {"Launcher": 1, "Worker": 11}), {}),
        "MPIJob: without a launcher": Case(job("MPIJob", {"Worker": 1}), {}),
        "MPIJob: somebody else's files": Case(
            {**job("MPIJob", {"Launcher": 1, "Worker": 1}), "metadata": {"name": "taken-mpi"}}, {}, beside=(taken,)
        ),
    }  # fmt: skip


def _others() -> dict[str, Case]:
    tuner = {"annotations": {"tuner-server-key": "2080ti"}}
    return {
        "PaddleJob: workers only, ports of their own": Case(
            job("PaddleJob", {"Worker": replica("PaddleJob", 2, containers=[_ported("PaddleJob", 4444)])}),
            {"one exits 0": end(0, "worker-0"), "both did": end(0, "worker-1")},
        ),
        "PaddleJob: two masters, elastic": Case(
            job("PaddleJob", {"Master": 2, "Worker": 2}, elasticPolicy={"minReplicas": 1, "maxReplicas": 3}), {}
        ),
        "PaddleJob: scaled": Case(job("PaddleJob", {"Worker": 2}), {"three": Scale(3), "one": Scale(1)}),
        "XGBoostJob: a master only": Case(job("XGBoostJob", {"Master": 1}), {"exits 0": end(0, "master-0")}),
        "XGBoostJob: several containers": Case(
            job("XGBoostJob", {"Master": replica("XGBoostJob", containers=[_sidecar(), container("XGBoostJob")]),
                               "Worker": 2}), {},
        ),
        "XGBoostJob: scaled": Case(usual("XGBoostJob"), {"three": spec_of("XGBoostJob", "Worker", replicas=3)}),
        "MXJob: a worker alone": Case(job("MXJob", {"Worker": 1}), {"exits 0": end(0, "worker-0")}),
        "MXJob: two workers": Case(job("MXJob", {"Worker": 2}), {"both exit 0": end(0, "*")}),
        "MXJob: tuning": Case(
            job("MXJob", {"TunerTracker": 1, "TunerServer": replica("MXJob", metadata=tuner), "Tuner": 1},
                jobMode="MXTune"), {"all exit 0": end(0, "*")},
        ),
        "MXJob: scaled": Case(usual("MXJob"), {"three": spec_of("MXJob", "Worker", replicas=3)}),
        "MXJob: suspended": Case(usual("MXJob"), {"suspended": suspend(True), "resumed": suspend(False)}),
        "XGBoostJob: suspended": Case(usual("XGBoostJob"), {"suspended": suspend(True), "resumed": suspend(False)}),
        "PaddleJob: suspended": Case(usual("PaddleJob"), {"suspended": suspend(True), "resumed": suspend(False)}),
    }  # fmt: skip


USUAL: Mapping[str, Case] = {
    **_tutorials(), **_examples(), **_ends(), **_failures(), **_policies(), **_tensorflow(),
    **_pytorch(), **_mpi(), **_others(),
}  # fmt: skip
