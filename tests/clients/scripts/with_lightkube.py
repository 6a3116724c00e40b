"""lightkube."""

from lightkube import ApiError, Client
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import PatchType

TrainingJob = create_namespaced_resource("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
SHELL = {
    "name": "pytorch",
    "image": "shell",
    "command": ["sh", "-c", "for i in 1 2 3; do echo step $i; done"],
}
ROLES = {"Master": {"replicas": 1, "template": {"spec": {"containers": [SHELL]}}}}

client = Client(field_manager="lightkube", namespace="default")
assert [node.metadata.name for node in client.list(Node)]
named = ObjectMeta(name="with-lightkube", namespace="default")
client.create(TrainingJob(metadata=named, spec={"runPolicy": {}, "pytorchReplicaSpecs": ROLES}))
for _, job in client.watch(TrainingJob, fields={"metadata.name": "with-lightkube"}, server_timeout=60):
    if "Succeeded" in [each["type"] for each in (job.status or {}).get("conditions", [])]:
        break
(pod,) = client.list(Pod, labels={"training.kubeflow.org/job-name": "with-lightkube"})
assert [line.strip() for line in client.log(pod.metadata.name)] == ["step 1", "step 2", "step 3"]
assert [line.strip() for line in client.log(pod.metadata.name, follow=True)] == ["step 1", "step 2", "step 3"]
patched = client.patch(
    TrainingJob, "with-lightkube", {"metadata": {"labels": {"a": "b"}}}, patch_type=PatchType.MERGE
)
assert patched.metadata.labels["a"] == "b"

kept = client.apply(ConfigMap(metadata=named, data={"a": "1", "b": "2"}))
assert kept.metadata.managedFields[0].manager == "lightkube"
assert client.apply(ConfigMap(metadata=named, data={"a": "1"})).data == {"a": "1"}
try:
    client.apply(ConfigMap(metadata=named, data={"a": "2"}), field_manager="other")
except ApiError as error:
    assert error.status.code == 409
client.delete(ConfigMap, "with-lightkube")
client.delete(TrainingJob, "with-lightkube")
try:
    client.get(TrainingJob, "with-lightkube")
except ApiError as error:
    assert error.status.code == 404
print("fine")
