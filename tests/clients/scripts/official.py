"""The official Python client."""

from kubernetes import client, config, watch

JOBS = ("kubeflow.org", "v1", "default", "pytorchjobs")
SHELL = {
    "name": "pytorch",
    "image": "shell",
    "command": ["sh", "-c", "for i in 1 2 3; do echo step $i; done"],
}
ROLES = {"Master": {"replicas": 1, "template": {"spec": {"containers": [SHELL]}}}}
JOB = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "official"},
    "spec": {"runPolicy": {}, "pytorchReplicaSpecs": ROLES},
}

config.load_kube_config()
core, custom = client.CoreV1Api(), client.CustomObjectsApi()

assert client.VersionApi().get_code().major == "1"
assert [node.status.node_info.kubelet_version for node in core.list_node().items]
assert "default" in [space.metadata.name for space in core.list_namespace().items]
assert "kubeflow.org" in [group.name for group in client.ApisApi().get_api_versions().groups]

custom.create_namespaced_custom_object(*JOBS, JOB)
states = []
stream = watch.Watch().stream(
    custom.list_namespaced_custom_object, *JOBS, field_selector="metadata.name=official", timeout_seconds=60
)
for event in stream:
    conditions = event["object"].get("status", {}).get("conditions", [])
    states += [each["type"] for each in conditions[-1:]]
    if "Succeeded" in states:
        break
assert states[-1] == "Succeeded", states

pods = core.list_namespaced_pod("default", label_selector="training.kubeflow.org/job-name=official").items
assert [pod.metadata.name for pod in pods] == ["official-master-0"]
assert pods[0].status.container_statuses[0].state.terminated.exit_code == 0
assert core.read_namespaced_pod_log("official-master-0", "default") == "step 1\nstep 2\nstep 3\n"
assert core.read_namespaced_pod_log("official-master-0", "default", tail_lines=1) == "step 3\n"
followed = watch.Watch().stream(core.read_namespaced_pod_log, "official-master-0", "default")
assert list(followed) == ["step 1", "step 2", "step 3"]
assert [event.reason for event in core.list_namespaced_event("default").items]

labelled = custom.patch_namespaced_custom_object(*JOBS, "official", {"metadata": {"labels": {"a": "b"}}})
assert labelled["metadata"]["labels"]["a"] == "b"

space = core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="official")))
kept = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="c"), data={"a": "1"})
core.create_namespaced_config_map("official", kept)
changed = core.patch_namespaced_config_map("c", "official", {"data": {"b": "2"}})
assert changed.data == {"a": "1", "b": "2"}
changed.data = {"only": "this"}
assert core.replace_namespaced_config_map("c", "official", changed).data == {"only": "this"}
try:
    core.replace_namespaced_config_map("c", "official", changed)
except client.ApiException as error:
    assert (error.status, error.reason) == (409, "Conflict")
page = core.list_namespaced_config_map("official", limit=1)
assert page.metadata._continue
assert len(core.list_namespaced_config_map("official", limit=1, _continue=page.metadata._continue).items) == 1
core.delete_namespace("official")
custom.delete_namespaced_custom_object(*JOBS, "official")
try:
    custom.get_namespaced_custom_object(*JOBS, "official")
except client.ApiException as error:
    assert error.status == 404
print("fine")
