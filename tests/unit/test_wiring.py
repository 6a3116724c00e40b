"""What each member is told, a row per thing a user could notice: the golden vectors of kubeflow.org/v1."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fullrank.api.meta import Json, owner_reference
from fullrank.dialects.kubeflow_status import LABEL
from fullrank.dialects.registry import JOB_KINDS
from fullrank.frameworks.contract import Gang, Member, Wiring
from fullrank.planning.desired import companions_for, pod_for
from tests.build import a_job, a_template, gang_of, kind_of, member


def told(job: Json, who: str) -> list[str]:
    """The member's injected environment, in order."""
    gang = gang_of(job)
    return [_line(entry) for entry in gang.framework.wire(gang, member(who, gang)).env]


def _line(entry: Json) -> str:
    if "valueFrom" in entry:
        return f"{entry['name']}<{entry['valueFrom']['fieldRef']['fieldPath']}"
    return f"{entry['name']}={entry['value']}"


def pod(job: Json, who: str) -> Json:
    gang = gang_of(job)
    return pod_for(kind_of(job), gang, member(who, gang), owner_reference(job))


@dataclass
class Case:
    job: Json
    want: dict[str, list[str]]  # member → environment


def meeting_at_master(rank: int, world: int = 3, per_node: str = "auto") -> list[str]:
    return [
        "PYTHONUNBUFFERED=1", "MASTER_PORT=23456", "PET_MASTER_PORT=23456", "MASTER_ADDR=demo-master-0",
        "PET_MASTER_ADDR=demo-master-0", f"WORLD_SIZE={world}", f"RANK={rank}", f"PET_NODE_RANK={rank}",
        f"PET_NPROC_PER_NODE={per_node}", "PET_NNODES=3",
    ]  # fmt: skip


ELASTIC = {"minReplicas": 1, "maxReplicas": 3, "maxRestarts": 5}
EVERYTHING = {
    "minReplicas": 1, "maxReplicas": 3, "rdzvBackend": "etcd", "rdzvPort": 1234, "rdzvHost": "etcd.example",
    "rdzvId": "me", "rdzvConf": [{"key": "a", "value": "b"}, {"key": "c", "value": "d"}], "standalone": True,
    "maxRestarts": 4,
}  # fmt: skip


def at_worker_0(*more: str, nodes: str) -> list[str]:
    return [
        "PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=el-worker-0:23456", "PET_RDZV_BACKEND=c10d",
        f"PET_NNODES={nodes}", *more,
    ]  # fmt: skip


PYTORCH = {
    "ranks meet at the master": Case(
        a_job("PyTorchJob", {"Master": 1, "Worker": 2}),
        {"master-0": meeting_at_master(0), "worker-0": meeting_at_master(1), "worker-1": meeting_at_master(2)},
    ),
    "several processes a node multiply the world": Case(
        a_job("PyTorchJob", {"Master": 1, "Worker": 2}, nprocPerNode="4"),
        {"worker-1": meeting_at_master(2, world=12, per_node="4")},
    ),
    "a word for the processes does not": Case(
        a_job("PyTorchJob", {"Master": 1, "Worker": 2}, nprocPerNode="gpu"),
        {"worker-1": meeting_at_master(2, per_node="gpu")},
    ),
    "workers alone are left to torchrun": Case(
        a_job("PyTorchJob", {"Worker": 2}),
        {"worker-1": ["PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_NNODES=2"]},
    ),
    "elastic workers meet at worker 0": Case(
        a_job("PyTorchJob", {"Worker": 2}, name="el", elasticPolicy=ELASTIC),
        {"worker-1": at_worker_0("PET_MAX_RESTARTS=5", nodes="1:3")},
    ),
    "an elastic policy without bounds takes the workers asked for": Case(
        a_job("PyTorchJob", {"Worker": 2}, name="el", elasticPolicy={}),
        {"worker-0": at_worker_0(nodes="2:2")},
    ),
    "one bound is both": Case(
        a_job("PyTorchJob", {"Worker": 2}, name="el", elasticPolicy={"maxReplicas": 4}),
        {"worker-0": at_worker_0(nodes="4:4")},
    ),
    "the old spelling of processes comes once, after the nodes": Case(
        a_job("PyTorchJob", {"Worker": 2}, name="el", elasticPolicy={"nProcPerNode": 2}),
        {
            "worker-0": [
                "PYTHONUNBUFFERED=1", "PET_RDZV_ENDPOINT=el-worker-0:23456", "PET_RDZV_BACKEND=c10d", "PET_NNODES=2:2",
                "PET_NPROC_PER_NODE=2",
            ]
        },
    ),
    "an empty rdzvConf is harmless": Case(
        a_job("PyTorchJob", {"Worker": 2}, name="el", elasticPolicy={"rdzvConf": []}),
        {"worker-0": at_worker_0(nodes="2:2")},
    ),
    "every elastic setting has its variable": Case(
        a_job("PyTorchJob", {"Worker": 2}, elasticPolicy=EVERYTHING),
        {
            "worker-0": [
                "PYTHONUNBUFFERED=1", "PET_NPROC_PER_NODE=auto", "PET_RDZV_ENDPOINT=etcd.example:1234",
                "PET_RDZV_BACKEND=etcd", "PET_NNODES=1:3", "PET_MAX_RESTARTS=4", "PET_RDZV_ID=me",
                "PET_RDZV_CONF=a=b,c=d", "PET_STANDALONE=",
            ]
        },
    ),
}  # fmt: skip

TF_CLUSTER = (
    '"chief":["tf-chief-0.team.svc:2222"],"ps":["tf-ps-0.team.svc:2222"],'
    '"worker":["tf-worker-0.team.svc:2222","tf-worker-1.team.svc:2222"]'
)
TENSORFLOW = {
    "a role without members is named all the same": Case(
        a_job("TFJob", {"Chief": 1, "PS": 1, "Worker": 0}, name="tf"),
        {
            "chief-0": [
                'TF_CONFIG={"cluster":{"chief":["tf-chief-0.team.svc:2222"],"ps":["tf-ps-0.team.svc:2222"],"worker":[]},'
                '"task":{"type":"chief","index":0},"environment":"cloud"}'
            ]
        },
    ),
    "everybody gets the whole cluster and its place in it": Case(
        a_job("TFJob", {"Chief": 1, "PS": 1, "Worker": 2}, name="tf"),
        {
            "worker-1": [
                f'TF_CONFIG={{"cluster":{{{TF_CLUSTER}}},"task":{{"type":"worker","index":1}},"environment":"cloud"}}'
            ],
            "chief-0": [
                f'TF_CONFIG={{"cluster":{{{TF_CLUSTER}}},"task":{{"type":"chief","index":0}},"environment":"cloud"}}'
            ],
        },
    ),
    "an evaluator is part of the cluster": Case(
        a_job("TFJob", {"Worker": 1, "Evaluator": 1}, name="tf"),
        {
            "evaluator-0": [
                'TF_CONFIG={"cluster":{"evaluator":["tf-evaluator-0.team.svc:2222"],"worker":["tf-worker-0.team.svc:2222"]},'
                '"task":{"type":"evaluator","index":0},"environment":"cloud"}'
            ]
        },
    ),
    "dynamic workers know the servers and themselves": Case(
        a_job("TFJob", {"PS": 1, "Worker": 2}, name="tf", enableDynamicWorker=True),
        {
            "worker-1": [
                'TF_CONFIG={"cluster":{"worker":{"1":"tf-worker-1.team.svc:2222"},"ps":["tf-ps-0.team.svc:2222"]},'
                '"task":{"type":"worker","index":1}}'
            ],
            "ps-0": [
                'TF_CONFIG={"cluster":{"worker":{},"ps":["tf-ps-0.team.svc:2222"]},"task":{"type":"ps","index":0}}'
            ],
        },
    ),
    "dynamic workers without servers have null ones": Case(
        a_job("TFJob", {"Chief": 1, "Worker": 1}, name="tf", enableDynamicWorker=True),
        {
            "worker-0": [
                'TF_CONFIG={"cluster":{"worker":{"0":"tf-worker-0.team.svc:2222"},"ps":null},'
                '"task":{"type":"worker","index":0}}'
            ],
            "chief-0": ['TF_CONFIG={"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}'],
        },
    ),
    "a single worker is on its own": Case(a_job("TFJob", {"Worker": 1}, name="tf"), {"worker-0": []}),
    "so is a single server": Case(a_job("TFJob", {"Worker": 0, "PS": 1}, name="tf"), {"ps-0": []}),
}

MX_CLUSTER = (
    '{"cluster":{"scheduler":[{"url":"mx-scheduler-0","port":9091}],"server":[{"url":"mx-server-0","port":9091}],'
    '"worker":[{"url":"mx-worker-0","port":9091},{"url":"mx-worker-1","port":9091}]},'
    '"labels":{"scheduler":"","server":"","worker":""},'
)
TUNING = {
    "TunerTracker": 1,
    "TunerServer": {
        "replicas": 1,
        "template": a_template("mxnet", metadata={"annotations": {"tuner-server-key": "2080ti"}}),
    },
    "Tuner": 1,
}
MXNET = {
    "a role without members is named all the same": Case(
        a_job("MXJob", {"Scheduler": 1, "Worker": 0}, name="mx", jobMode="MXTrain"),
        {
            "scheduler-0": [
                'MX_CONFIG={"cluster":{"scheduler":[{"url":"mx-scheduler-0","port":9091}],"worker":[]},'
                '"labels":{"scheduler":"","worker":""},"task":{"type":"scheduler","index":0}}',
                "DMLC_PS_ROOT_PORT=9091", "DMLC_PS_ROOT_URI=mx-scheduler-0", "DMLC_NUM_SERVER=0", "DMLC_NUM_WORKER=0",
                "DMLC_ROLE=scheduler", "DMLC_USE_KUBERNETES=1",
            ]
        },
    ),
    "members find each other through the scheduler": Case(
        a_job("MXJob", {"Scheduler": 1, "Server": 1, "Worker": 2}, name="mx", jobMode="MXTrain"),
        {
            "worker-1": [
                f'MX_CONFIG={MX_CLUSTER}"task":{{"type":"worker","index":1}}}}', "DMLC_PS_ROOT_PORT=9091",
                "DMLC_PS_ROOT_URI=mx-scheduler-0", "DMLC_NUM_SERVER=1", "DMLC_NUM_WORKER=2", "DMLC_ROLE=worker",
                "DMLC_USE_KUBERNETES=1", "DMLC_WORKER_ID=1",
            ],
            "server-0": [
                f'MX_CONFIG={MX_CLUSTER}"task":{{"type":"server","index":0}}}}', "DMLC_PS_ROOT_PORT=9091",
                "DMLC_PS_ROOT_URI=mx-scheduler-0", "DMLC_NUM_SERVER=1", "DMLC_NUM_WORKER=2", "DMLC_ROLE=server",
                "DMLC_USE_KUBERNETES=1",
            ],
        },
    ),
    "a tuning job has its labels and no scheduler": Case(
        a_job("MXJob", TUNING, name="mx", jobMode="MXTune"),
        {
            "tuner-0": [
                'MX_CONFIG={"cluster":{"tuner":[{"url":"mx-tuner-0","port":9091}],'
                '"tunerserver":[{"url":"mx-tunerserver-0","port":9091}],"tunertracker":[{"url":"mx-tunertracker-0","port":9091}]},'
                '"labels":{"tuner":"","tunerserver":"2080ti","tunertracker":""},"task":{"type":"tuner","index":0}}',
                "DMLC_PS_ROOT_PORT=0", "DMLC_PS_ROOT_URI=", "DMLC_NUM_SERVER=0", "DMLC_NUM_WORKER=0", "DMLC_ROLE=tuner",
                "DMLC_USE_KUBERNETES=1",
            ]
        },
    ),
}  # fmt: skip


def paddle(*more: str) -> list[str]:
    return ["PYTHONUNBUFFERED=1", "PADDLE_JOB_ID=pd", "PADDLE_NNODES=2", *more]


PADDLE = {
    "worker 0 opens the meeting point at its own address": Case(
        a_job("PaddleJob", {"Worker": 2}, name="pd"),
        {
            "worker-0": paddle("POD_IP_DUMMY<status.podIP", "PADDLE_MASTER=$(POD_IP_DUMMY):36543"),
            "worker-1": paddle("PADDLE_MASTER=pd-worker-0:36543"),
        },
    ),
    "with a master there are servers and trainers": Case(
        a_job("PaddleJob", {"Master": 1, "Worker": 1}, name="pd"),
        {
            "master-0": paddle(
                "POD_IP_DUMMY<status.podIP", "PADDLE_MASTER=$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM=1"
            ),
            "worker-0": paddle("PADDLE_MASTER=pd-master-0:36543", "PADDLE_TRAINER_NUM=1"),
        },
    ),
}

XGBOOST = {
    "everybody knows the tracker and all workers": Case(
        a_job("XGBoostJob", {"Master": 1, "Worker": 2}, name="xg"),
        {
            "worker-1": [
                "MASTER_PORT=9999", "MASTER_ADDR=xg-master-0", "WORLD_SIZE=3", "RANK=2", "PYTHONUNBUFFERED=1",
                "WORKER_PORT=9999", "WORKER_ADDRS=xg-worker-0,xg-worker-1",
            ]
        },
    ),
    "a master alone has no workers to know": Case(
        a_job("XGBoostJob", {"Master": 1}, name="xg"),
        {
            "master-0": [
                "MASTER_PORT=9999", "MASTER_ADDR=xg-master-0", "WORLD_SIZE=1", "RANK=0", "PYTHONUNBUFFERED=1",
            ]
        },
    ),
}  # fmt: skip

JAX = {
    "worker 0 coordinates": Case(
        a_job("JAXJob", {"Worker": 2}, name="jx"),
        {
            "worker-1": [
                "PYTHONUNBUFFERED=1", "COORDINATOR_PORT=6666", "COORDINATOR_ADDRESS=jx-worker-0", "NUM_PROCESSES=2",
                "PROCESS_ID=1",
            ]
        },
    ),
}  # fmt: skip

MPIRUN = ["OMPI_MCA_plm_rsh_agent=/etc/mpi/kubexec.sh", "OMPI_MCA_orte_default_hostfile=/etc/mpi/hostfile"]
NO_GPUS = ["NVIDIA_VISIBLE_DEVICES=", "NVIDIA_DRIVER_CAPABILITIES="]
INTEL = ["I_MPI_HYDRA_BOOTSTRAP=rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC=/etc/mpi/kubexec.sh"]


def a_launcher(**fields: Any) -> Json:
    return {"replicas": 1, "template": a_template("mpi", **fields)}


def limited_to(resource: str) -> Json:
    return a_job(
        "MPIJob", {"Launcher": a_launcher(resources={"limits": {resource: 1}}), "Worker": 2}, name="m"
    )


MPI = {
    "the launcher reaches workers through a script and sees no GPU": Case(
        a_job("MPIJob", {"Launcher": 1, "Worker": 2}, name="m"),
        {"launcher": [*MPIRUN, *NO_GPUS, *INTEL], "worker-0": []},
    ),
    "a launcher with a GPU keeps it": Case(limited_to("nvidia.com/gpu"), {"launcher": [*MPIRUN, *INTEL]}),
    "so it does with a part of one": Case(limited_to("nvidia.com/gpumem"), {"launcher": [*MPIRUN, *INTEL]}),
    "other devices are no GPUs": Case(
        limited_to("example.com/fpga"), {"launcher": [*MPIRUN, *NO_GPUS, *INTEL]}
    ),
    "what the user says about Intel's starter stays": Case(
        a_job("MPIJob", {"Launcher": a_launcher(env=[{"name": "I_MPI_HYDRA_BOOTSTRAP", "value": "ssh"}])}),
        {"launcher": [*MPIRUN, *NO_GPUS, INTEL[1]]},
    ),
}

WIRING = {
    f"{kind}: {sentence}": case
    for kind, rows in {
        "PyTorchJob": PYTORCH, "TFJob": TENSORFLOW, "MXJob": MXNET, "PaddleJob": PADDLE, "XGBoostJob": XGBOOST,
        "JAXJob": JAX, "MPIJob": MPI,
    }.items()
    for sentence, case in rows.items()
}  # fmt: skip


@pytest.mark.parametrize("case", WIRING.values(), ids=WIRING.keys())
def test_a_member_is_told(case: Case) -> None:
    assert {who: told(case.job, who) for who in case.want} == case.want


def test_a_cluster_domain_is_written_out_in_tf_config() -> None:
    job = a_job("TFJob", {"Worker": 2}, name="tf")
    kind = replace(kind_of(job), domain="cluster.local")
    gang = kind.gang(kind.read(job))
    entry = gang.framework.wire(gang, Member("Worker", 0)).env[0]
    assert '"tf-worker-1.team.svc.cluster.local:2222"' in entry["value"]


def test_a_member_that_was_given_another_port_is_reached_there() -> None:
    tf = a_job("TFJob", {"Worker": 2}, name="tf")
    tf["metadata"]["annotations"] = {"fullrank.dev/ports": '{"tf-worker-1": 20007}'}
    assert '["tf-worker-0.team.svc:2222","tf-worker-1.team.svc:20007"]' in told(tf, "worker-0")[0]
    torch = a_job("PyTorchJob", {"Master": 1, "Worker": 1})
    torch["metadata"]["annotations"] = {"fullrank.dev/ports": '{"demo-master-0": 20008}'}
    assert "MASTER_PORT=20008" in told(torch, "worker-0")


LISTENERS = {
    "the master, whose port all meet at": (
        a_job("PyTorchJob", {"Master": 1, "Worker": 2}),
        ["demo-master-0"],
    ),
    "without a master, worker 0": (a_job("PyTorchJob", {"Worker": 2}), ["demo-worker-0"]),
    "in an elastic job with a master, both": (
        a_job("PyTorchJob", {"Master": 1, "Worker": 2}, elasticPolicy={}),
        ["demo-master-0", "demo-worker-0"],
    ),
    "of an elastic job without one, worker 0 once": (
        a_job("PyTorchJob", {"Worker": 2}, elasticPolicy={}),
        ["demo-worker-0"],
    ),
    "every member of a TFJob": (a_job("TFJob", {"Chief": 1, "PS": 1}), ["demo-chief-0", "demo-ps-0"]),
    "MXNet's scheduler alone": (
        a_job("MXJob", {"Worker": 2, "Server": 1, "Scheduler": 1}, jobMode="MXTrain"),
        ["demo-scheduler-0"],
    ),
    "Paddle's meeting point": (a_job("PaddleJob", {"Worker": 2}), ["demo-worker-0"]),
    "XGBoost's tracker": (a_job("XGBoostJob", {"Master": 1, "Worker": 2}), ["demo-master-0"]),
    "JAX's coordinator": (a_job("JAXJob", {"Worker": 2}), ["demo-worker-0"]),
    "nobody in an MPIJob": (a_job("MPIJob", {"Launcher": 1, "Worker": 2}), []),
}


@pytest.mark.parametrize(("job", "want"), LISTENERS.values(), ids=LISTENERS.keys())
def test_who_opens_a_port(job: Json, want: list[str]) -> None:
    gang = gang_of(job)
    assert [gang.name(one) for one in gang.framework.listeners(gang)] == want


MASTERS = {
    "the master": (a_job("PyTorchJob", {"Master": 1, "Worker": 2}), ["demo-master-0"]),
    "worker 0 where there is none": (a_job("PyTorchJob", {"Worker": 2}), ["demo-worker-0"]),
    "all chiefs": (a_job("TFJob", {"Chief": 2, "Worker": 1}), ["demo-chief-0", "demo-chief-1"]),
    "TensorFlow's worker 0 where there is no chief": (
        a_job("TFJob", {"Worker": 2, "PS": 1}),
        ["demo-worker-0"],
    ),
    "nobody among servers alone": (a_job("TFJob", {"PS": 2}), []),
    "the launcher": (a_job("MPIJob", {"Launcher": 1, "Worker": 2}), ["demo-launcher"]),
    "every MXNet server": (
        a_job("MXJob", {"Scheduler": 1, "Server": 2, "Worker": 1}, jobMode="MXTrain"),
        ["demo-server-0", "demo-server-1"],
    ),
    "Paddle's masters": (a_job("PaddleJob", {"Master": 2, "Worker": 1}), ["demo-master-0", "demo-master-1"]),
    "nobody among Paddle's workers": (a_job("PaddleJob", {"Worker": 2}), []),
    "XGBoost's master": (a_job("XGBoostJob", {"Master": 1, "Worker": 2}), ["demo-master-0"]),
    "JAX's worker 0": (a_job("JAXJob", {"Worker": 2}), ["demo-worker-0"]),
}


@pytest.mark.parametrize(("job", "want"), MASTERS.values(), ids=MASTERS.keys())
def test_who_carries_the_master_label(job: Json, want: list[str]) -> None:
    """Clients read a job's log from the pod that carries it."""
    gang = gang_of(job)
    labels = {gang.name(one): kind_of(job).dialect.labels(gang, one) for one in gang.members}
    assert [name for name, found in labels.items() if found.get(LABEL + "job-role") == "master"] == want


# -- MPI's companions ----------------------------------------------------------------------------------------------


def companion(job: Json, kind: str, running: tuple[int, ...] = (0, 1)) -> Json:
    members = [Member("Worker", index) for index in running]
    found = [one for _, one in companions_for(gang_of(job), members, owner_reference(job))]
    return next(one for one in found if one["kind"] == kind)


TWO_SLOTS = a_job("MPIJob", {"Launcher": 1, "Worker": 2}, name="m", slotsPerWorker=2)
GPU_LAUNCHER = limited_to("nvidia.com/gpu")
GPU_LAUNCHER["spec"]["slotsPerWorker"] = 2


def test_the_launcher_finds_its_hosts_in_files() -> None:
    files = companion(TWO_SLOTS, "ConfigMap")["data"]
    assert files["hostfile"] == "m-worker-0 slots=2\nm-worker-1 slots=2\n"
    assert files["discover_hosts.sh"] == "#!/bin/sh\necho m-worker-0:2\necho m-worker-1:2"
    assert files["kubexec.sh"].endswith('/opt/kube/kubectl exec ${POD_NAME} -- /bin/sh -c "$*"')


def test_a_launcher_with_a_gpu_is_a_host_too() -> None:
    files = companion(GPU_LAUNCHER, "ConfigMap")["data"]
    assert files["hostfile"] == "m-launcher slots=2\nm-worker-0 slots=2\nm-worker-1 slots=2\n"
    assert (
        files["discover_hosts.sh"] == "#!/bin/sh\necho m-launcher:2\n\necho m-worker-0:2\necho m-worker-1:2"
    )


def test_only_running_workers_are_discovered_in_the_order_of_their_names() -> None:
    job = a_job("MPIJob", {"Launcher": 1, "Worker": 11}, name="m")
    files = companion(job, "ConfigMap", running=(2, 10))["data"]
    assert files["discover_hosts.sh"] == "#!/bin/sh\necho m-worker-10:1\necho m-worker-2:1"
    assert len(files["hostfile"].splitlines()) == 11


def test_ranks_run_in_the_container_that_the_job_names() -> None:
    job = a_job("MPIJob", {"Launcher": 1, "Worker": 1}, mainContainer="train")
    assert "${POD_NAME} --container train --" in companion(job, "ConfigMap")["data"]["kubexec.sh"]


def test_the_launcher_may_exec_into_its_workers_and_nothing_else() -> None:
    read, execute = companion(TWO_SLOTS, "Role")["rules"]
    assert (read["resources"], read["verbs"]) == (["pods"], ["get", "list", "watch"])
    assert (execute["resources"], execute["verbs"]) == (["pods/exec"], ["create"])
    assert execute["resourceNames"] == ["m-worker-0", "m-worker-1"]
    binding = companion(TWO_SLOTS, "RoleBinding")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "m-launcher", "namespace": "team"}]
    assert companion(TWO_SLOTS, "ServiceAccount")["metadata"]["labels"] == {"app": "m"}


def test_a_launcher_without_workers_may_exec_into_nobody() -> None:
    [rule] = companion(a_job("MPIJob", {"Launcher": 1, "Worker": 0}), "Role")["rules"]
    assert rule["resources"] == ["pods"]


def test_an_account_the_template_names_is_used() -> None:
    launcher = a_launcher()
    launcher["template"]["spec"]["serviceAccountName"] = "mine"
    job = a_job("MPIJob", {"Launcher": launcher, "Worker": 1})
    assert pod(job, "launcher")["spec"]["serviceAccountName"] == "mine"
    assert companion(job, "ServiceAccount")["metadata"]["name"] == "mine"
    assert companion(job, "RoleBinding")["subjects"][0]["name"] == "mine"


def test_the_launcher_has_no_index_and_nobody_a_service() -> None:
    launcher = pod(TWO_SLOTS, "launcher")
    assert launcher["metadata"]["name"] == "m-launcher"
    assert LABEL + "replica-index" not in launcher["metadata"]["labels"]
    assert kind_of(TWO_SLOTS).dialect.member(kind_of(TWO_SLOTS).framework, launcher) == Member("Launcher", 0)
    assert gang_of(TWO_SLOTS).served == ()
    assert "ports" not in launcher["spec"]["containers"][0]


def test_workers_wait_whatever_arguments_they_were_given() -> None:
    worker = {"replicas": 1, "template": a_template("mpi", args=["--verbose"])}
    container = pod(a_job("MPIJob", {"Launcher": 1, "Worker": worker}), "worker-0")["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["sleep"], ["365d"])


def test_a_workers_own_command_stays() -> None:
    worker = {"replicas": 1, "template": a_template("mpi", command=["sshd"], args=["-D"])}
    container = pod(a_job("MPIJob", {"Launcher": 1, "Worker": worker}), "worker-0")["spec"]["containers"][0]
    assert (container["command"], container["args"]) == (["sshd"], ["-D"])


# -- PyTorch's autoscaler ------------------------------------------------------------------------------------------

METRICS = [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]
SCALED = {"minReplicas": 1, "maxReplicas": 3, "metrics": METRICS}


def test_an_elastic_job_with_metrics_has_an_autoscaler() -> None:
    scaler = companion(a_job("PyTorchJob", {"Worker": 2}, elasticPolicy=SCALED), "HorizontalPodAutoscaler")
    assert scaler["apiVersion"] == "autoscaling/v2"
    assert "labels" not in scaler["metadata"]
    assert scaler["spec"] == {
        "scaleTargetRef": {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "demo"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": METRICS,
    }


ENDED = {"conditions": [{"type": "Succeeded", "status": "True"}]}
UNSCALED = {
    "without metrics": a_job("PyTorchJob", {"Worker": 2}, elasticPolicy={"minReplicas": 1}),
    "while suspended": a_job("PyTorchJob", {"Worker": 2}, elasticPolicy=SCALED, run_policy={"suspend": True}),
    "after its end": a_job("PyTorchJob", {"Worker": 2}, elasticPolicy=SCALED, status=ENDED),
}


@pytest.mark.parametrize("job", UNSCALED.values(), ids=UNSCALED.keys())
def test_a_job_has_no_autoscaler(job: Json) -> None:
    assert companions_for(gang_of(job), (), owner_reference(job)) == ()


# -- a large gang --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountingGang(Gang):
    """Counts how often it is asked for a name: the work that grows with the members."""

    asked: list[Member] = field(default_factory=list)

    def name(self, member: Member) -> str:
        self.asked.append(member)
        return super().name(member)


def roles_for(kind: str, size: int) -> dict[str, int]:
    few = {
        "PyTorchJob": {"Master": 1},
        "TFJob": {"Chief": 1, "PS": 1},
        "MPIJob": {"Launcher": 1},
        "MXJob": {"Scheduler": 1, "Server": 1},
        "XGBoostJob": {"Master": 1},
        "TensorFlowTrainingJob": {"chief": 1, "ps": 1},
        "XGBoostTrainingJob": {"master": 1},
    }.get(kind, {})
    return few | {"Worker": size - sum(few.values())}


@pytest.mark.parametrize("kind", [one.kind.kind for one in JOB_KINDS])
def test_wiring_a_thousand_members_is_linear(kind: str) -> None:
    def work(size: int) -> int:
        job = a_job(kind, roles_for(kind, size), jobMode="MXTrain")
        gang = CountingGang(kind_of(job).read(job), kind_of(job).framework)
        for one in gang.members:
            assert isinstance(gang.framework.wire(gang, one), Wiring)
        assert gang.size == size
        return len(gang.asked)

    assert work(1024) <= 8 * 1024
    assert work(1024) <= work(64) * 17
