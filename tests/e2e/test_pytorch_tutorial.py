"""The PyTorch tutorial, command by command, with the real kubectl and real ranks."""

import json
import re
import subprocess
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
import yaml

from fullrank.api.meta import Json
from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.timeout(600)]

MANIFEST = Path(__file__).parents[2] / "examples/pytorch-simple/pytorch-simple.yaml"
LABEL = "training.kubeflow.org/"
TRAIN_LINE = re.compile(r"Train Epoch: 1 \[\d+/60000 \(\d+%\)\]\tloss=(\d+\.\d+)")


def job_of(house: House, kubectl: str, name: str = "pytorch-simple") -> Json:
    answer: Json = yaml.safe_load(
        house.run(kubectl, "get", "-o", "yaml", "pytorchjobs", name, "-n", "kubeflow").stdout
    )
    return answer


def test_every_command_of_the_tutorial(house: House, kubectl: str) -> None:
    house.up()
    created = house.run(kubectl, "create", "-f", str(MANIFEST))
    assert created.stdout == "pytorchjob.kubeflow.org/pytorch-simple created\n"

    mine = f"{LABEL}job-name=pytorch-simple,{LABEL}replica-type=master,{LABEL}replica-index=0"
    pod = house.wait_for(
        lambda: house.run(kubectl, "get", "pods", "-l", mine, "-o", "name", "-n", "kubeflow").stdout
    )
    assert pod == "pod/pytorch-simple-master-0\n"
    house.run(kubectl, "wait", "pod", "-l", mine, "-n", "kubeflow", "--for=condition=Ready", "--timeout=120s")

    log = house.run(kubectl, "logs", "-f", pod.strip(), "-n", "kubeflow").stdout
    assert log.startswith("Using distributed PyTorch with gloo backend\nWorld Size: 2. Rank: 0\n")
    losses = [float(loss) for loss in TRAIN_LINE.findall(log)]
    assert losses[-1] < losses[0] / 2
    accuracy = re.search(r"\naccuracy=(\d\.\d{4})\n", log)
    assert accuracy
    assert float(accuracy[1]) > 0.7

    house.run(
        kubectl,
        "wait",
        "pytorchjob/pytorch-simple",
        "-n",
        "kubeflow",
        "--for=condition=Succeeded",
        "--timeout=60s",
    )
    jobs = house.run(kubectl, "get", "pytorchjobs", "-n", "kubeflow").stdout.splitlines()
    assert jobs[0].split() == ["NAME", "STATE", "AGE"]
    assert jobs[1].split()[:2] == ["pytorch-simple", "Succeeded"]

    def rows() -> list[list[str]]:
        label = f"{LABEL}job-name=pytorch-simple"
        shown = house.run(kubectl, "get", "pods", "-l", label, "-n", "kubeflow").stdout
        return [line.split() for line in shown.splitlines()]

    assert rows()[0] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    ended = [
        ["pytorch-simple-master-0", "0/1", "Completed", "0"],
        ["pytorch-simple-worker-0", "0/1", "Completed", "0"],
    ]
    house.wait_for(lambda: [row[:4] for row in rows()[1:]] == ended)

    exported = house.wait_for(
        lambda: (
            (found := job_of(house, kubectl))["status"]["replicaStatuses"]["Worker"].get("succeeded") == 1
            and found
        )
    )
    assert exported["spec"] == yaml.safe_load(MANIFEST.read_text())["spec"]
    assert set(exported["metadata"]) == {
        "creationTimestamp", "generation", "name", "namespace", "resourceVersion", "uid",
    }  # fmt: skip
    assert exported["metadata"]["generation"] == 1
    status = exported["status"]
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in status["conditions"]] == [
        ("Created", "True", "PyTorchJobCreated", "PyTorchJob pytorch-simple is created."),
        ("Running", "False", "PyTorchJobRunning", "PyTorchJob pytorch-simple is running."),
        ("Succeeded", "True", "PyTorchJobSucceeded", "PyTorchJob pytorch-simple is successfully completed."),
    ]
    assert status["completionTime"] == status["conditions"][-1]["lastTransitionTime"]
    selector = (
        f"{LABEL}job-name=pytorch-simple,{LABEL}operator-name=pytorchjob-controller,{LABEL}replica-type="
    )
    assert status["replicaStatuses"] == {
        role: {"selector": selector + role.lower(), "succeeded": 1} for role in ("Master", "Worker")
    }
    by_selector = ("get", "pods", "-n", "kubeflow", "-o", "name", "-l", f"{selector}worker")
    assert house.run(kubectl, *by_selector).stdout == "pod/pytorch-simple-worker-0\n"


def test_the_tutorials_manifest_may_come_from_an_address(house: House, kubectl: str) -> None:
    served = partial(SimpleHTTPRequestHandler, directory=str(MANIFEST.parent))
    house.up()
    with ThreadingHTTPServer(("127.0.0.1", 0), served) as server:
        Thread(target=server.serve_forever).start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/{MANIFEST.name}"
            created = house.run(kubectl, "create", "--dry-run=server", "-f", address)
        finally:
            server.shutdown()
    assert created.stdout == "pytorchjob.kubeflow.org/pytorch-simple created (server dry run)\n"


def test_run_streams_both_ranks_and_can_be_run_again_and_twice_at_once(house: House, tmp_path: Path) -> None:
    first = house.fullrank("run", str(MANIFEST))
    for member in ("master-0", "worker-0"):
        assert re.search(rf"^{member} │ Train Epoch: 1 \[0/60000 \(0%\)\]\tloss=", first.stdout, re.MULTILINE)
    assert "PyTorchJob kubeflow/pytorch-simple: Succeeded" in first.stdout

    text = MANIFEST.read_text()
    both = tmp_path / "both.yaml"
    both.write_text(text + "\n---\n" + text.replace("name: pytorch-simple", "name: pytorch-other"))
    second = house.fullrank("run", str(both))
    assert "replacing PyTorchJob kubeflow/pytorch-simple, which ended before (Succeeded)" in second.stdout
    assert "PyTorchJob kubeflow/pytorch-other: Succeeded" in second.stdout
    assert house.fullrank("status", check=False).returncode == 1


def test_a_killed_server_loses_no_training_and_no_line(house: House, kubectl: str) -> None:
    pid = house.up()
    house.run(kubectl, "create", "-f", str(MANIFEST))
    master = ("pod/pytorch-simple-master-0", "-n", "kubeflow")

    def log() -> str:
        return house.run(kubectl, "logs", *master, check=False).stdout

    house.wait_for(lambda: "[1280/60000" in log())
    house.kill(pid)
    house.up()
    house.run(
        kubectl,
        "wait",
        "pytorchjob/pytorch-simple",
        "-n",
        "kubeflow",
        "--for=condition=Succeeded",
        "--timeout=120s",
    )
    text = log()
    assert text.count("World Size: 2. Rank: 0") == 1
    assert len(TRAIN_LINE.findall(text)) == 47
    assert "accuracy=" in text
    assert (
        house.run(
            kubectl, "get", *master, "-o", "jsonpath={.status.containerStatuses[0].restartCount}"
        ).stdout
        == "0"
    )


MISTAKES = {
    "an unknown replica type": (
        ("    Worker:", "    Wroker:"),
        'spec.pytorchReplicaSpecs[Wroker]: Unsupported value: "Wroker": supported values: "Master", "Worker"',
        'did you mean "Worker"?',
    ),
    "no containers": (
        (
            "          containers:\n            - name: pytorch",
            "          containers: []\n          x:\n            - name: pytorch",
        ),
        "spec.pytorchReplicaSpecs[Master].template.spec.containers: Required value",
        "",
    ),
    "negative replicas": (
        ("    Worker:\n      replicas: 1", "    Worker:\n      replicas: -1"),
        "Invalid value: -1: should be a non-negative integer",
        "",
    ),
    "broken YAML": (("spec:\n  pytorch", "spec:\n   - pytorch"), "", ""),
}


@pytest.mark.parametrize(("change", "complaint", "hint"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_wrong_manifest_is_refused_and_nothing_is_stored(
    house: House, kubectl: str, tmp_path: Path, change: tuple[str, str], complaint: str, hint: str
) -> None:
    house.up()
    wrong = tmp_path / "wrong.yaml"
    assert change[0] in MANIFEST.read_text()
    wrong.write_text(MANIFEST.read_text().replace(*change))
    by_kubectl = house.run(kubectl, "create", "--validate=ignore", "-f", str(wrong), check=False)
    by_fullrank = house.fullrank("run", str(wrong), check=False)
    assert by_kubectl.returncode == 1
    assert by_fullrank.returncode == 2
    for said in (by_kubectl.stderr, by_fullrank.stderr):
        assert complaint in said
        assert hint in said
    assert house.run(kubectl, "get", "pytorchjobs,pods", "-A", "-o", "name").stdout == ""


GROWING = """
images: ["example.com/growing:*"]
environment:
  requirements: [six==1.17.0]
command: [python3, -c, "import six; print(six.__version__)"]
"""
GROWN = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: growing}
spec:
  pytorchReplicaSpecs:
    Master: {template: {spec: {containers: [{name: pytorch, image: "example.com/growing:1"}]}}}
"""


def test_the_environment_is_shown_growing(house: House, kubectl: str, tmp_path: Path) -> None:
    (house.home / "images").mkdir()
    (house.home / "images/growing.yaml").write_text(GROWING)
    (house.home / "environments").unlink()  # those that are kept may have it already
    manifest = tmp_path / "growing.yaml"
    manifest.write_text(GROWN)
    house.up()
    waiting = "{.status.containerStatuses[0].state.waiting}"
    watches = [
        subprocess.Popen(
            [kubectl, "get", *what, "-w", "-o", f'jsonpath={form}{{"\\n"}}'],
            env=house.environ, stdout=subprocess.PIPE, text=True,
        )
        for what, form in ((["pods"], waiting), (["pytorchjobs"], "{.status.conditions[-1:].type}"))
    ]  # fmt: skip
    house.run(kubectl, "create", "-f", str(manifest))
    house.run(kubectl, "wait", "pytorchjob/growing", "--for=condition=Succeeded", "--timeout=100s")
    for watch in watches:
        watch.terminate()
    of_pod, of_job = (watch.communicate()[0].split("\n") for watch in watches)
    seen = [json.loads(line) for line in of_pod if line]
    assert {one["reason"] for one in seen} == {"ContainerCreating"}
    assert [one["message"] for one in seen if "message" in one]
    assert list(dict.fromkeys(line for line in of_job if line)) == ["Created", "Running", "Succeeded"]
