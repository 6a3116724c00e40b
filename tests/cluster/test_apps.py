"""TensorBoards and notebooks on a real control plane, where they run in Deployments."""

import json
from pathlib import Path

import pytest

from fullrank.api.meta import Json
from tests.build import a_job
from tests.cluster.conftest import until
from tests.cluster.control_plane import Cluster, our_operator
from tests.cluster.test_operator import account, end, warnings
from tests.unit.test_app_kinds import a_board, a_notebook

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]


def submit(kubernetes: Cluster, namespace: str, obj: Json) -> None:
    named = obj | {"metadata": {"name": obj["metadata"]["name"], "namespace": namespace}}
    kubernetes.kubectl("create", "-f", "-", documents=[named])


def get(kubernetes: Cluster, namespace: str, what: str) -> Json:
    found: Json = json.loads(kubernetes.kubectl("-n", namespace, "get", what, "-o", "json"))
    return found


def names(kubernetes: Cluster, namespace: str, kinds: str) -> set[str]:
    return set(kubernetes.kubectl("-n", namespace, "get", kinds, "-o", "name").split())


def phase(kubernetes: Cluster, namespace: str, what: str) -> str:
    return str((get(kubernetes, namespace, what).get("status") or {}).get("phase"))


def patch(kubernetes: Cluster, namespace: str, what: str, spec: Json) -> None:
    kubernetes.kubectl("-n", namespace, "patch", what, "--type=merge", "-p", json.dumps({"spec": spec}))


def test_a_tensorboard_and_a_notebook_are_deployed_stopped_resumed_and_collected(
    kubernetes: Cluster, namespace: str, tmp_path: Path
) -> None:
    boards, labs = "managed-tensorboard-board", "managed-notebook-http-lab"
    made = {f"deployment.apps/{boards}", f"deployment.apps/{labs}", f"service/{boards}", f"service/{labs}"}
    with our_operator(kubernetes, config=account(kubernetes, tmp_path)):
        submit(kubernetes, namespace, a_board("t9k://pvc/mnist/log"))
        submit(kubernetes, namespace, a_notebook(pod={"volumes": [{"name": "workingdir", "emptyDir": {}}]}))
        until(lambda: names(kubernetes, namespace, "deployments,services") == made)
        until(lambda: f"secret/{labs}" in names(kubernetes, namespace, "secrets"))
        until(lambda: phase(kubernetes, namespace, "notebook/lab") == "Running")
        status = get(kubernetes, namespace, "notebook/lab")["status"]
        pod = get(kubernetes, namespace, f"pod/{status['pod']['reference']['name']}")
        assert pod["metadata"]["uid"] == status["pod"]["reference"]["uid"]
        assert status["url"] == f"/notebooks/{namespace}/lab/"

        patch(kubernetes, namespace, "notebook/lab", {"runMode": "stopped"})
        until(lambda: get(kubernetes, namespace, f"deployment/{labs}")["spec"]["replicas"] == 0)
        until(lambda: phase(kubernetes, namespace, "notebook/lab") == "Paused")
        patch(kubernetes, namespace, "notebook/lab", {"runMode": "running"})
        until(lambda: phase(kubernetes, namespace, "notebook/lab") == "Running")

        other = {"trainingLogFilesets": ["t9k://pvc/mnist/other"]}
        patch(kubernetes, namespace, "tensorboard/board", other)
        until(lambda: "/fileset-pvc-mnist/other" in str(get(kubernetes, namespace, f"deployment/{boards}")))
        settled = get(kubernetes, namespace, f"deployment/{boards}")["metadata"]["generation"]
        assert settled == 2, "it was changed once"

        kubernetes.kubectl("-n", namespace, "delete", "tensorboard/board", "notebook/lab")
        until(lambda: not names(kubernetes, namespace, "deployments,services,secrets,pods"))
    assert "orbidden" not in (kubernetes.folder / "fullrank.log").read_text()


def test_a_jobs_tensorboard_outlives_its_success_and_goes_with_it(
    kubernetes: Cluster, namespace: str
) -> None:
    board = {"trainingLogFilesets": ["t9k://pvc/mnist/log"], "image": "tensorflow/tensorflow:2.14.0"}
    job, what = (
        a_job("TensorFlowJob", {"worker": 1}, name="mnist", tensorboardSpec=board),
        "tensorflowjob/mnist",
    )
    with our_operator(kubernetes, namespace):
        submit(kubernetes, namespace, job)
        until(lambda: phase(kubernetes, namespace, what) == "Running")
        replica = get(kubernetes, namespace, what)["status"]["tasks"][0]["replicas"][0]["name"]
        stem = replica.removesuffix("-worker-0")
        until(
            lambda: (
                f"deployment.apps/managed-tensorboard-{stem}" in names(kubernetes, namespace, "deployments")
            )
        )
        assert f"service/managed-tensorboard-{stem}" in names(kubernetes, namespace, "services")
        end(kubernetes, namespace, replica, 0)
        until(lambda: phase(kubernetes, namespace, what) == "Succeeded")
        said = get(kubernetes, namespace, what)["status"]["tensorboard"]
        assert said["dependent"]["name"] == stem
        kubernetes.kubectl("-n", namespace, "delete", what)
        until(lambda: not names(kubernetes, namespace, "tensorboards,deployments,services"))


def test_one_that_nobody_checked_says_what_is_wrong(kubernetes: Cluster, namespace: str) -> None:
    with our_operator(kubernetes, namespace):
        submit(kubernetes, namespace, a_board("mnist/log"))
        until(lambda: phase(kubernetes, namespace, "tensorboard/board") == "Failed")
        until(lambda: bool(warnings(kubernetes, namespace)))
    (told,) = warnings(kubernetes, namespace)
    assert told.startswith("TensorBoardFailedValidation: spec.trainingLogFilesets[0]: Invalid value")
