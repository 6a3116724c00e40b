"""A tutorial's job loses a worker in the middle of its work: the policy in its manifest brings it through."""

import re
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"


def kill(pod: str, number: signal.Signals = signal.SIGKILL) -> None:
    """What runs in a pod ends as if the kernel had done it; from inside, a container's first process is immune."""
    found = [one for one in psutil.process_iter(["environ"]) if _is_in(pod, one)]
    assert found, f"nothing runs in {pod}"
    for process in found:
        process.send_signal(number)


def _is_in(pod: str, process: psutil.Process) -> bool:
    return (process.info["environ"] or {}).get("HOSTNAME") == pod


def log_of(house: House, kubectl: str, pod: str, namespace: str) -> Callable[[], str]:
    return lambda: house.run(kubectl, "logs", pod, "-n", namespace, check=False).stdout


def succeeded(house: House, kubectl: str, job: str, namespace: str) -> None:
    condition = "--for=condition=Succeeded"
    house.run(kubectl, "wait", job, "-n", namespace, condition, "--timeout=400s", patience=420)


def restarts(house: House, kubectl: str, pod: str, namespace: str) -> int:
    count = "jsonpath={.status.containerStatuses[0].restartCount}"
    return int(house.run(kubectl, "get", "pod", pod, "-n", namespace, "-o", count).stdout)


def test_the_pytorch_tutorials_worker_is_restarted_in_place(house: House, kubectl: str) -> None:
    house.up()
    house.run(kubectl, "create", "-f", str(EXAMPLES / "pytorch-simple/pytorch-simple.yaml"))
    log = log_of(house, kubectl, "pytorch-simple-worker-0", "kubeflow")
    house.wait_for(lambda: "[1280/60000" in log())
    kill("pytorch-simple-worker-0")
    succeeded(house, kubectl, "pytorchjob/pytorch-simple", "kubeflow")
    assert restarts(house, kubectl, "pytorch-simple-worker-0", "kubeflow") > 0
    rows = house.run(kubectl, "get", "pods", "-n", "kubeflow").stdout.splitlines()[1:]
    assert all(int(row.split()[3]) > 0 for row in rows if "worker" in row)
    said = log_of(house, kubectl, "pytorch-simple-master-0", "kubeflow")()
    accuracy = re.search(r"\naccuracy=(\d\.\d+)", said)
    assert accuracy
    assert float(accuracy[1]) > 0.7


@pytest.mark.slow
def test_the_paddle_tutorials_worker_is_restarted_in_place(house: House, kubectl: str) -> None:
    house.up()
    house.run(kubectl, "create", "-f", str(EXAMPLES / "paddle-distributed/paddle-distributed.yaml"))
    log = log_of(house, kubectl, "paddle-distributed-job-worker-1", "kubeflow")
    house.wait_for(lambda: "Epoch 2" in log())
    kill("paddle-distributed-job-worker-1")
    succeeded(house, kubectl, "paddlejob/paddle-distributed-job", "kubeflow")
    assert restarts(house, kubectl, "paddle-distributed-job-worker-1", "kubeflow") > 0
    assert "Training completed." in log()


@pytest.mark.slow
def test_the_tensorflow_tutorials_worker_is_replaced_before_the_cluster_has_formed(
    house: House, kubectl: str, tmp_path: Path
) -> None:
    """Once they train together TensorFlow's other workers end with 1, which `ExitCode` does not retry."""
    prepare = tmp_path / "prepare.yaml"
    text = (EXAMPLES / "tensorflow-mnist/prepare.yaml").read_text()
    prepare.write_text(text.replace("python download", "FULLRANK_MNIST_SAMPLES=6400 python download"))
    house.up()
    house.fullrank("run", str(prepare), patience=400)
    house.run(kubectl, "create", "-f", str(EXAMPLES / "tensorflow-mnist/tensorflow-mnist.yaml"))
    role = "replica-type=worker,replica-index=3"

    def pod(field: str) -> str:
        wanted = ("get", "pods", "-l", role, "-o", f"jsonpath={{.items[0]{field}}}")
        return house.run(kubectl, *wanted, check=False).stdout

    house.wait_for(lambda: pod(".status.phase") == "Running")
    name, first = pod(".metadata.name"), pod(".metadata.uid")
    kill(name)
    house.wait_for(lambda: pod(".metadata.uid") not in ("", first))
    phase = "--for=jsonpath={.status.phase}=Succeeded"
    house.run(kubectl, "wait", "tensorflowjob/mnist", phase, "--timeout=400s", patience=420)
    assert pod(".metadata.name") == name


ENDS = {"130": "Succeeded", "137": "Succeeded", "138": "Succeeded", "143": "Succeeded", "1": "Failed"}


def test_exit_codes_decide_whether_a_tensorstack_worker_is_replaced(
    house: House, kubectl: str, tmp_path: Path
) -> None:
    """Each job's only worker ends with its code the first time, and well the second."""
    claim = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Mi}}}
"""
    one = """
apiVersion: batch.tensorstack.dev/v1beta1
kind: TensorFlowTrainingJob
metadata: {{name: ends-with-{code}}}
spec:
  replicaSpecs:
  - type: worker
    replicas: 1
    restartPolicy: ExitCode
    template:
      spec:
        containers:
        - name: tensorflow
          image: python:3.11
          command: [sh, -c, "mkdir /mnt/was-here-{code} || exit 0; exit {code}"]
          volumeMounts: [{{name: data, mountPath: /mnt}}]
        volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]
"""
    manifest = tmp_path / "ends.yaml"
    manifest.write_text("---".join((claim, *(one.format(code=code) for code in ENDS))))
    house.up()
    house.run(kubectl, "create", "-f", str(manifest))
    phases = 'jsonpath={range .items[*]}{.metadata.name}={.status.phase}{"\\n"}{end}'
    wanted = {f"ends-with-{code}={phase}" for code, phase in ENDS.items()}
    house.wait_for(
        lambda: (
            set(house.run(kubectl, "get", "tensorflowtrainingjobs", "-o", phases).stdout.splitlines())
            == wanted
        )
    )
    counts = "jsonpath={range .items[*]}{.metadata.name}={.status.backoffCount} {end}"
    told = house.run(kubectl, "get", "tensorflowtrainingjobs", "-o", counts).stdout.split()
    assert set(told) == {f"ends-with-{code}={int(end == 'Succeeded')}" for code, end in ENDS.items()}
