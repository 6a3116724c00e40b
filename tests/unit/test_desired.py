"""The user's template with what a framework adds: nothing is lost, and what is ours is where clients look for it."""

from typing import Any

import pytest

from fullrank.api.meta import Json, owner_reference
from fullrank.dialects.kubeflow_status import LABEL
from fullrank.planning.desired import overwrites_restart_policy, pod_for, says_otherwise, service_for
from tests.build import a_job, a_template, gang_of, kind_of, member


def pod(job: Json, who: str) -> Json:
    gang = gang_of(job)
    return pod_for(kind_of(job), gang, member(who, gang), owner_reference(job))


def service(job: Json, who: str) -> Json:
    gang = gang_of(job)
    return service_for(kind_of(job), gang, member(who, gang), owner_reference(job))


def a_worker(template: Json, **fields: Any) -> Json:
    return {"replicas": 1, "template": template} | fields


def test_a_pod_belongs_to_its_job_and_says_whose_it_is() -> None:
    metadata = pod(a_job("PyTorchJob", {"Master": 1, "Worker": 2}), "worker-1")["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("demo-worker-1", "team")
    assert metadata["labels"] == {
        LABEL + "operator-name": "pytorchjob-controller",
        LABEL + "job-name": "demo",
        LABEL + "replica-type": "worker",
        LABEL + "replica-index": "1",
    }
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "name": "demo",
            "uid": "uid-of-demo",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def test_labels_annotations_and_finalizers_come_from_the_template_and_ours_win() -> None:
    metadata = {
        "name": "ignored",
        "labels": {"app": "mine", LABEL + "job-name": "theirs"},
        "annotations": {"note": "kept"},
        "finalizers": ["example.com/wait"],
    }
    job = a_job("PyTorchJob", {"Worker": a_worker(a_template("pytorch", metadata=metadata))})
    job["metadata"]["labels"] = {"job-label": "stays on the job"}
    found = pod(job, "worker-0")["metadata"]
    assert found["name"] == "demo-worker-0"
    assert (found["labels"]["app"], found["labels"][LABEL + "job-name"]) == ("mine", "demo")
    assert "job-label" not in found["labels"]
    assert (found["annotations"], found["finalizers"]) == ({"note": "kept"}, ["example.com/wait"])


def test_fields_we_never_heard_of_survive() -> None:
    template = a_template("pytorch", surprise={"deep": [1, 2]})
    template["spec"] |= {"tolerations": [{"key": "gpu"}], "schedulerName": "mine"}
    spec = pod(a_job("PyTorchJob", {"Worker": a_worker(template)}), "worker-0")["spec"]
    assert spec["tolerations"] == [{"key": "gpu"}]
    assert spec["schedulerName"] == "mine"
    assert spec["containers"][0]["surprise"] == {"deep": [1, 2]}


def test_the_template_itself_is_left_as_it_is() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 1})
    before = str(job)
    first = pod(job, "worker-0")
    first["spec"]["containers"][0]["env"][0]["value"] = "changed"
    assert str(job) == before
    assert pod(job, "worker-0")["spec"]["containers"][0]["env"][0]["value"] == "1"


def test_variables_come_after_the_users_own() -> None:
    template = a_template("pytorch", env=[{"name": "RANK", "value": "mine"}])
    job = a_job("PyTorchJob", {"Master": 1, "Worker": a_worker(template)})
    variables = [(one["name"], one["value"]) for one in pod(job, "worker-0")["spec"]["containers"][0]["env"]]
    assert variables[0] == ("RANK", "mine")
    assert variables.index(("RANK", "1")) > 0


def with_sidecars(main: str) -> Json:
    template = a_template("before")
    template["spec"]["containers"] += [{"name": main, "image": "i"}, {"name": "after", "image": "i"}]
    return template


ENV_GOES_TO = {
    "PyTorchJob: every container": (
        a_job("PyTorchJob", {"Worker": a_worker(with_sidecars("pytorch"))}),
        "worker-0",
        ["before", "pytorch", "after"],
    ),
    "TFJob: the container named tensorflow": (
        a_job("TFJob", {"PS": 1, "Worker": a_worker(with_sidecars("tensorflow"))}),
        "worker-0",
        ["tensorflow"],
    ),
    "MPIJob: the launcher's first container": (
        a_job("MPIJob", {"Launcher": a_worker(with_sidecars("mpi"))}),
        "launcher",
        ["before"],
    ),
}


@pytest.mark.parametrize(("job", "who", "want"), ENV_GOES_TO.values(), ids=ENV_GOES_TO.keys())
def test_which_containers_are_told(job: Json, who: str, want: list[str]) -> None:
    containers = pod(job, who)["spec"]["containers"]
    assert [one["name"] for one in containers if one.get("env")] == want


def test_init_containers_are_told_nothing() -> None:
    template = a_template("pytorch")
    template["spec"]["initContainers"] = [{"name": "fetch", "image": "i"}]
    job = a_job("PyTorchJob", {"Master": 1, "Worker": a_worker(template)})
    first, second = pod(job, "worker-0")["spec"]["initContainers"]
    assert first == {"name": "fetch", "image": "i"}
    assert second["name"] == "init-pytorch"


WAITING = {
    "a worker waits for the master": ({"Master": 1, "Worker": 1}, "worker-0", True),
    "the master does not": ({"Master": 1, "Worker": 1}, "master-0", False),
    "workers without a master do not": ({"Worker": 1}, "worker-0", False),
}


@pytest.mark.parametrize(("roles", "who", "waits"), WAITING.values(), ids=WAITING.keys())
def test_who_waits_for_the_master(roles: dict[str, int], who: str, waits: bool) -> None:
    assert ("initContainers" in pod(a_job("PyTorchJob", roles), who)["spec"]) == waits


RESTARTS = {
    "Always": "Always",
    "OnFailure": "OnFailure",
    "Never": "Never",
    "ExitCode": "Never",
    "": "OnFailure",
}


@pytest.mark.parametrize(("policy", "want"), RESTARTS.items())
def test_the_roles_restart_policy_is_the_pods(policy: str, want: str) -> None:
    job = a_job("PyTorchJob", {"Worker": 1}, policy=policy)
    assert pod(job, "worker-0")["spec"]["restartPolicy"] == want


def test_a_restart_policy_in_the_template_is_overwritten_and_that_can_be_told() -> None:
    template = a_template("pytorch")
    template["spec"]["restartPolicy"] = "Always"
    job = a_job("PyTorchJob", {"Master": 1, "Worker": a_worker(template, restartPolicy="Never")})
    gang = gang_of(job)
    assert pod(job, "worker-0")["spec"]["restartPolicy"] == "Never"
    assert overwrites_restart_policy(gang, member("worker-0", gang))
    assert not overwrites_restart_policy(gang, member("master-0", gang))


def test_the_frameworks_port_is_declared_where_the_template_does_not() -> None:
    declared = pod(a_job("PyTorchJob", {"Worker": 1}), "worker-0")["spec"]["containers"][0]["ports"]
    assert declared == [{"name": "pytorchjob-port", "containerPort": 23456}]


def test_a_port_of_the_templates_own_stays_in_its_place() -> None:
    ports = [
        {"name": "pytorchjob-port", "containerPort": 8080, "protocol": "TCP"},
        {"name": "web", "containerPort": 80},
    ]
    job = a_job("PyTorchJob", {"Worker": a_worker(a_template("pytorch", ports=ports))})
    assert pod(job, "worker-0")["spec"]["containers"][0]["ports"] == ports


def test_a_service_is_headless_and_finds_one_pod() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 2})
    found = service(job, "master-0")
    labels = pod(job, "master-0")["metadata"]["labels"]
    assert found["metadata"]["name"] == "demo-master-0"
    assert found["spec"]["clusterIP"] == "None"
    assert found["spec"]["selector"] == {
        name: one for name, one in labels.items() if not name.endswith("job-role")
    }
    assert found["metadata"]["labels"] == found["spec"]["selector"]
    assert found["spec"]["ports"] == [{"name": "pytorchjob-port", "port": 23456}]


def test_a_port_without_a_name_gets_one_in_the_service() -> None:
    template = a_template("pytorch", ports=[{"containerPort": 8080}, {"name": "web", "containerPort": 80}])
    ports = service(a_job("PyTorchJob", {"Worker": a_worker(template)}), "worker-0")["spec"]["ports"]
    assert {one["name"]: one["port"] for one in ports} == {
        "port-8080": 8080,
        "web": 80,
        "pytorchjob-port": 23456,
    }


OTHERWISE: dict[str, tuple[Any, Any, bool]] = {
    "what a server filled in does not count": ({"spec": {"a": 1, "filled": 2}}, {"spec": {"a": 1}}, False),
    "another value does": ({"data": {"hostfile": "old"}}, {"data": {"hostfile": "new"}}, True),
    "so does one that is missing": ({"data": {}}, {"data": {"hostfile": "new"}}, True),
    "and a longer list": ({"rules": [1, 2]}, {"rules": [1]}, True),
    "lists are looked into": (
        {"rules": [{"verbs": ["get"], "x": 1}]},
        {"rules": [{"verbs": ["get"]}]},
        False,
    ),
    "labels and owners are nobody's quarrel": (
        {"metadata": {"labels": {}}},
        {"metadata": {"labels": {"a": "b"}}},
        False,
    ),
}


@pytest.mark.parametrize(("found", "wanted", "differs"), OTHERWISE.values(), ids=OTHERWISE.keys())
def test_when_a_companion_is_to_be_written_again(found: Json, wanted: Json, differs: bool) -> None:
    assert says_otherwise(found, wanted) == differs


def test_the_environment_that_a_job_asks_for_is_its_pods_unless_a_template_asks_for_another() -> None:
    asking = {"annotations": {"fullrank.dev/environment": "own", "note": "kept"}}
    template = a_template("pytorch", metadata=asking)
    job = a_job("PyTorchJob", {"Master": 1, "Worker": a_worker(template)})
    job["metadata"]["annotations"] = {"fullrank.dev/environment": "vision", "other": "stays on the job"}
    assert pod(job, "master-0")["metadata"]["annotations"] == {"fullrank.dev/environment": "vision"}
    assert pod(job, "worker-0")["metadata"]["annotations"] == asking["annotations"]
