"""The Kubeflow training SDK: every public method but `train`, which wants transformers and peft."""

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
print("fine")
