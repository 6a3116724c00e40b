"""kr8s."""

import kr8s
from kr8s.objects import ConfigMap, Pod, new_class

TrainingJob = new_class("PyTorchJob", version="kubeflow.org/v1", namespaced=True)
SHELL = {
    "name": "pytorch",
    "image": "shell",
    "command": ["sh", "-c", "for i in 1 2 3; do echo step $i; done"],
}
ROLES = {"Master": {"replicas": 1, "template": {"spec": {"containers": [SHELL]}}}}

assert kr8s.version()["major"] == "1"
job = TrainingJob(
    {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "with-kr8s", "namespace": "default"},
        "spec": {"runPolicy": {}, "pytorchReplicaSpecs": ROLES},
    }
)
job.create()
job.wait("condition=Succeeded", timeout=60)
selector = {"training.kubeflow.org/job-name": "with-kr8s"}
(pod,) = kr8s.get("pods", namespace="default", label_selector=selector)
assert isinstance(pod, Pod)
assert list(pod.logs()) == ["step 1", "step 2", "step 3"]
assert list(pod.logs(follow=True)) == ["step 1", "step 2", "step 3"]
job.label({"team": "a"})
job.annotate({"note": "b"})
job.refresh()
assert (job.labels["team"], job.annotations["note"]) == ("a", "b")

kept = ConfigMap({"metadata": {"name": "with-kr8s", "namespace": "default"}, "data": {"a": "1"}})
kept.create()
for event, found in kr8s.watch("configmaps", namespace="default", field_selector="metadata.name=with-kr8s"):
    assert (event, found.raw["data"]) == ("ADDED", {"a": "1"})
    break
kept.patch({"data": {"b": "2"}})
assert kept.raw["data"] == {"a": "1", "b": "2"}
kept.delete()
job.delete()
job.wait("delete", timeout=30)
assert not job.exists()
print("fine")
