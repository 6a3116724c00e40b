"""The Kubeflow training SDK: every public method but `train`, which is in another script."""

from kubeflow.training import (
    KubeflowOrgV1PyTorchJob,
    KubeflowOrgV1PyTorchJobSpec,
    KubeflowOrgV1ReplicaSpec,
    KubeflowOrgV1RunPolicy,
    TrainingClient,
)
from kubernetes import client

LINES = "for i in 1 2 3; do echo step $i; done"
NAME = "with-sdk"


def replicas(count):
    container = client.V1Container(name="pytorch", image="shell", command=["sh", "-c", LINES])
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container]))
    return KubeflowOrgV1ReplicaSpec(replicas=count, restart_policy="Never", template=template)


job = KubeflowOrgV1PyTorchJob(
    api_version="kubeflow.org/v1",
    kind="PyTorchJob",
    metadata=client.V1ObjectMeta(name=NAME, namespace="default"),
    spec=KubeflowOrgV1PyTorchJobSpec(
        run_policy=KubeflowOrgV1RunPolicy(clean_pod_policy="None"),
        pytorch_replica_specs={"Master": replicas(1), "Worker": replicas(1)},
    ),
)

training = TrainingClient()
training.create_job(job)
finished = training.wait_for_job_conditions(NAME, wait_timeout=120, polling_interval=1)
assert finished.metadata.name == NAME
assert NAME in [each.metadata.name for each in training.list_jobs()]
conditions = [each.type for each in training.get_job_conditions(NAME)]
assert conditions[0] == "Created", conditions
assert conditions[-1] == "Succeeded", conditions
assert training.is_job_created(NAME)
assert training.is_job_succeeded(NAME)
assert not training.is_job_running(NAME)
assert not training.is_job_restarting(NAME)
assert not training.is_job_failed(NAME)
assert sorted(training.get_job_pod_names(NAME)) == [f"{NAME}-master-0", f"{NAME}-worker-0"]
assert training.get_job_pod_names(NAME, is_master=True) == [f"{NAME}-master-0"]
(worker,) = training.get_job_pods(NAME, replica_type="worker", replica_index=0)
assert worker.status.phase == "Succeeded"
logs, events = training.get_job_logs(NAME, is_master=False, verbose=True)
assert logs == dict.fromkeys((f"{NAME}-master-0", f"{NAME}-worker-0"), "step 1\nstep 2\nstep 3\n"), logs
assert f"pytorchjob/{NAME}" in events, events
training.get_job_logs(NAME, follow=True)

current = training.get_job(NAME)
current.metadata.labels = {"team": "a"}
training.update_job(current, NAME)
assert training.get_job(NAME).metadata.labels == {"team": "a"}

training.delete_job(NAME)
try:
    training.get_job(NAME)
except RuntimeError as error:
    assert NAME in str(error)


def meet(parameters):
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo")
    total = torch.ones(1) * parameters["each"]
    dist.all_reduce(total)
    print(f"rank {dist.get_rank()} of {dist.get_world_size()}: {total.item():g}", flush=True)
    dist.destroy_process_group()


training.create_job(
    name="from-function", train_func=meet, parameters={"each": 21}, num_workers=2, num_procs_per_worker=1
)
training.wait_for_job_conditions("from-function", wait_timeout=400, polling_interval=1)
logs, _ = training.get_job_logs("from-function", is_master=False)
said = sorted(line for log in logs.values() for line in log.splitlines() if line.startswith("rank "))
assert said == ["rank 0 of 2: 42", "rank 1 of 2: 42"], logs

training.create_job(name="from-image", job_kind="TFJob", base_image="python:3.11", num_workers=1)
training.wait_for_job_conditions("from-image", job_kind="TFJob", wait_timeout=120, polling_interval=1)
assert training.is_job_succeeded("from-image", job_kind="TFJob")
print("fine")
