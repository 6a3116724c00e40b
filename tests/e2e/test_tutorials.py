"""The tutorials for MXNet, MPI and Paddle, followed with kubectl: manifests unchanged, real frameworks."""

import json
import re
from pathlib import Path

import pytest

from fullrank.api.meta import Json
from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"


class Follower:
    """Somebody who follows a tutorial with kubectl, in a home that pretends GPUs."""

    def __init__(self, house: House, kubectl: str, namespace: str = "default") -> None:
        self._house, self._kubectl, self._namespace = house, kubectl, namespace

    def __call__(self, *words: str) -> str:
        return self._house.run(
            self._kubectl, *words, "-n", self._namespace, patience=560, check=words[0] != "logs"
        ).stdout

    def create(self, example: str) -> str:
        """What kubectl warned of."""
        manifest = str(EXAMPLES / example / f"{example}.yaml")
        return self._house.run(self._kubectl, "create", "-f", manifest).stderr

    def end(self, job: str) -> None:
        self("wait", job, "--for=condition=Succeeded", "--timeout=540s")

    def header(self, plural: str) -> list[str]:
        return self("get", plural).splitlines()[0].split()

    def state(self, plural: str, name: str) -> str:
        (row,) = self("get", plural, name, "--no-headers").splitlines()
        return next(word for word in row.split()[1:] if word.isalpha())

    def pods(self) -> dict[str, Json]:
        found = json.loads(self("get", "pods", "-o", "json"))["items"]
        return {one["metadata"]["name"]: one for one in found}

    def settle(self, phases: dict[str, str]) -> None:
        """Waits until exactly these pods are left, each in its phase."""
        self._house.wait_for(
            lambda: {name: pod["status"]["phase"] for name, pod in self.pods().items()} == phases
        )


@pytest.fixture
def follow(house: House, kubectl: str, monkeypatch: pytest.MonkeyPatch) -> Follower:
    monkeypatch.setenv("FULLRANK_GPUS", "fake:4")
    house.up()
    return Follower(house, kubectl)


@pytest.fixture
def follow_in_kubeflow(house: House, kubectl: str) -> Follower:
    house.up()
    return Follower(house, kubectl, "kubeflow")


def environment(pod: Json) -> dict[str, str]:
    return {one["name"]: one.get("value", "") for one in pod["spec"]["containers"][0]["env"]}


def test_mxnet_on_one_node(follow: Follower) -> None:
    warned = follow.create("mxnet-single")
    assert "Warning: MXJob is deprecated" in warned
    follow.end("mxjob/mxnet-single-job")
    lines = follow("logs", "mxnet-single-job-worker-0").splitlines()
    epochs = [line for line in lines if re.fullmatch(r"Epoch \d+: accuracy=0\.\d\d", line)]
    assert [line.split(":")[0] for line in epochs] == [f"Epoch {number}" for number in range(1, 11)]
    assert lines[-1] == "Training completed."
    follow.settle({"mxnet-single-job-worker-0": "Succeeded"})


def test_mxnet_on_three(follow: Follower) -> None:
    follow.create("mxnet-distributed")
    follow.end("mxjob/mxnet-job")
    assert follow.header("mxjobs") == ["NAME", "STATE", "AGE"]
    assert follow.state("mxjobs", "mxnet-job") == "Succeeded"
    members = [f"mxnet-job-{role}-0" for role in ("scheduler", "server", "worker")]
    follow.settle(dict.fromkeys(members, "Succeeded"))
    pods = follow.pods()
    assert [environment(pods[name])["DMLC_ROLE"] for name in members] == ["scheduler", "server", "worker"]
    told = environment(pods["mxnet-job-scheduler-0"])
    assert {"DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", "DMLC_USE_KUBERNETES", "MX_CONFIG"} <= set(told)
    assert (told["DMLC_NUM_SERVER"], told["DMLC_NUM_WORKER"]) == ("1", "1")
    assert "command" not in pods["mxnet-job-server-0"]["spec"]["containers"][0]
    logs = {name: follow("logs", name) for name in members}
    assert len(set(logs.values())) == 3
    shape = r"INFO:root:Epoch\[9\] Batch \[100\]    Speed: \d+ samples/sec   accuracy=0\.\d\d"
    assert re.search(shape, logs["mxnet-job-worker-0"])
    assert logs["mxnet-job-worker-0"].endswith("Training completed.\n")


@pytest.mark.slow
def test_mpi_with_a_launcher_and_two_workers(follow: Follower) -> None:
    follow.create("mpi-benchmarks")
    follow.end("mpijob/tensorflow-benchmarks")
    assert follow.header("mpijobs") == ["NAME", "AGE", "STATE"]
    assert follow.state("mpijobs", "tensorflow-benchmarks") == "Succeeded"
    follow.settle({"tensorflow-benchmarks-launcher": "Succeeded"})
    (launcher,) = follow.pods().values()
    assert len(launcher["spec"]["containers"][0]["command"]) == 25
    assert launcher["spec"]["restartPolicy"] == "Never"
    log = follow("logs", "tensorflow-benchmarks-launcher")
    for shape in (
        r"TensorFlow:  \d", r"Model:       resnet101", r"Mode:        training", r"Batch size:  64",
        r"Total images/sec: \d+\.\d\d$",
    ):  # fmt: skip
        assert re.search(rf"^{shape}", log, re.MULTILINE), shape


@pytest.mark.slow
def test_paddle_on_one_node(follow_in_kubeflow: Follower) -> None:
    follow = follow_in_kubeflow
    follow.create("paddle-single")
    follow.end("paddlejob/paddle-simple-cpu")
    log = follow("logs", "paddle-simple-cpu-worker-0")
    assert "run check success, PaddlePaddle is installed correctly on this node :)" in log
    follow.settle({"paddle-simple-cpu-worker-0": "Succeeded"})


@pytest.mark.slow
def test_paddle_on_two(follow_in_kubeflow: Follower) -> None:
    follow = follow_in_kubeflow
    follow.create("paddle-distributed")
    follow.end("paddlejob/paddle-distributed-job")
    assert follow.header("paddlejobs") == ["NAME", "STATE", "AGE"]
    assert follow.state("paddlejobs", "paddle-distributed-job") == "Succeeded"
    names = [f"paddle-distributed-job-worker-{index}" for index in (0, 1)]
    follow.settle(dict.fromkeys(names, "Succeeded"))
    for name, pod in follow.pods().items():
        wanted = {"PADDLE_JOB_ID", "PADDLE_NNODES", "PADDLE_MASTER", "PYTHONUNBUFFERED"}
        assert wanted <= set(environment(pod))
        log = follow("logs", name)
        assert re.search(rf"^Worker {name[-1]}: Epoch 1, Batch 100, Loss \d\.\d+", log, re.MULTILINE)
        assert "Training completed." in log
