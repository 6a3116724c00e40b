"""The operator on a real control plane: what install prints is taken, and then jobs of all kinds are looked after."""

from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml

from fullrank.api.meta import Json
from fullrank.client import kubeconfig
from fullrank.client.kubeconfig import Connection, Credentials
from tests.cluster.conftest import until
from tests.cluster.control_plane import Cluster, install, our_operator
from tests.contract.kubernetes import free_ports
from tests.oracle.cases import FRAMEWORKS, job, usual

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(150)]

QUEUED = {"queue": "a"}


def submit(kubernetes: Cluster, namespace: str, manifest: Json, name: str = "demo") -> str:
    """Creates the job; what kubectl calls it."""
    whole = manifest | {"metadata": {"name": name, "namespace": namespace}}
    kubernetes.kubectl("create", "-f", "-", documents=[whole])
    return f"{FRAMEWORKS[manifest['kind']].plural}/{name}"


def state(kubernetes: Cluster, namespace: str, what: str) -> str:
    return kubernetes.kubectl("-n", namespace, "get", what, "-o", "jsonpath={.status.conditions[-1:].type}")


def end(kubernetes: Cluster, namespace: str, pod: str, code: int) -> None:
    kubernetes.kubectl("-n", namespace, "annotate", "pod", pod, f"pretend/exit-code={code}")


def warnings(kubernetes: Cluster, namespace: str) -> list[str]:
    found = yaml.safe_load(kubernetes.kubectl("-n", namespace, "get", "events", "-o", "yaml"))["items"]
    return [f"{one['reason']}: {one['message']}" for one in found if one["type"] == "Warning"]


def account(kubernetes: Cluster, folder: Path) -> Path:
    """A kubeconfig for the account that the operator has in a cluster."""
    token = kubernetes.kubectl("-n", "fullrank", "create", "token", "fullrank-operator").strip()
    known = kubernetes.connection
    mine = Connection(known.server, ca=known.ca, credentials=Credentials(token=token), namespace="fullrank")
    kubeconfig.write(folder / "operator.kubeconfig", mine, "operator")
    return folder / "operator.kubeconfig"


def test_what_install_prints_can_be_applied_again(kubernetes: Cluster) -> None:
    install(kubernetes)


def test_a_cluster_explains_our_kinds(kubernetes: Cluster) -> None:
    text = kubernetes.kubectl("explain", "pytorchjob.spec.runPolicy.cleanPodPolicy")
    assert "Which pods go when the job has ended" in text


def test_a_queue_stays_what_it_is(kubernetes: Cluster, namespace: str) -> None:
    what = submit(kubernetes, namespace, usual("PyTorchJob", schedulingPolicy=QUEUED))
    other = '{"spec": {"runPolicy": {"schedulingPolicy": {"queue": "b"}}}}'
    with pytest.raises(AssertionError, match=r"spec\.runPolicy\.schedulingPolicy\.queue is immutable"):
        kubernetes.kubectl("-n", namespace, "patch", what, "--type=merge", "-p", other)


def test_its_account_may_do_all_that_it_needs(kubernetes: Cluster, namespace: str, tmp_path: Path) -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
    elastic = {"minReplicas": 1, "maxReplicas": 3, "metrics": [metric]}
    with our_operator(kubernetes, config=account(kubernetes, tmp_path)):
        mpi = submit(
            kubernetes, namespace, usual("MPIJob", cleanPodPolicy="All", ttlSecondsAfterFinished=0), "mpi"
        )
        torch = submit(
            kubernetes, namespace, job("PyTorchJob", {"Worker": 1}, elasticPolicy=elastic), "torch"
        )
        until(lambda: state(kubernetes, namespace, mpi) == state(kubernetes, namespace, torch) == "Running")
        kubernetes.kubectl("-n", namespace, "scale", torch, "--replicas=2")
        until(lambda: "torch-worker-1" in kubernetes.kubectl("-n", namespace, "get", "pods"))
        kubernetes.kubectl(
            "-n",
            namespace,
            "patch",
            torch,
            "--type=merge",
            "-p",
            '{"spec": {"runPolicy": {"suspend": true}}}',
        )
        until(
            lambda: (
                "torch" not in kubernetes.kubectl("-n", namespace, "get", "pods,services,hpa", "-o", "name")
            )
        )
        end(kubernetes, namespace, "mpi-launcher", 0)
        until(lambda: "mpi" not in kubernetes.kubectl("-n", namespace, "get", "mpijobs", "-o", "name"))
    assert "orbidden" not in (kubernetes.folder / "fullrank.log").read_text()


def test_an_invalid_job_is_told_so_and_the_others_go_on(kubernetes: Cluster, namespace: str) -> None:
    with our_operator(kubernetes, namespace):
        submit(kubernetes, namespace, job("XGBoostJob", {"Worker": 1}), "wrong")
        what = submit(kubernetes, namespace, job("XGBoostJob", {"Master": 1}), "right")
        until(lambda: state(kubernetes, namespace, what) == "Running")
        until(lambda: bool(warnings(kubernetes, namespace)))
    place = (
        "XGBoostJob failed validation because spec.xgbReplicaSpecs[Master]: Required value: must be present"
    )
    assert warnings(kubernetes, namespace) == [f"XGBoostJobFailedValidation: {place}"]


def test_it_says_that_it_is_ready_and_what_it_has_counted(kubernetes: Cluster, namespace: str) -> None:
    metrics, health = free_ports(2)

    def asked(port: int, path: str) -> str:
        with urlopen(f"http://127.0.0.1:{port}/{path}") as answer:
            text: str = answer.read().decode()
            return text

    with our_operator(kubernetes, namespace, probes=(metrics, health)):
        assert (asked(health, "healthz"), asked(health, "readyz")) == ("ok", "ok")
        submit(kubernetes, namespace, job("XGBoostJob", {"Master": 1}))
        line = f'training_operator_jobs_created_total{{framework="xgboost",job_namespace="{namespace}"}} 1\n'
        until(lambda: line in asked(metrics, "metrics"))


def test_a_kind_that_a_cluster_does_not_know_stops_no_other(kubernetes: Cluster, namespace: str) -> None:
    kubernetes.kubectl("delete", "crd", "jaxjobs.kubeflow.org")
    with our_operator(kubernetes, namespace):
        what = submit(kubernetes, namespace, usual("PaddleJob"))
        until(lambda: state(kubernetes, namespace, what) == "Running")
        install(kubernetes)
        later = submit(kubernetes, namespace, job("JAXJob", {"Worker": 1}), "late")
        until(lambda: state(kubernetes, namespace, later) == "Running")


def test_another_takes_over_when_the_first_one_stops(
    kubernetes: Cluster, namespace: str, tmp_path: Path
) -> None:
    with our_operator(kubernetes, namespace):
        what = submit(kubernetes, namespace, usual("TFJob"))
        until(lambda: state(kubernetes, namespace, what) == "Running")
    with our_operator(kubernetes, namespace):
        end(kubernetes, namespace, "demo-chief-0", 0)
        until(lambda: state(kubernetes, namespace, what) == "Succeeded")
