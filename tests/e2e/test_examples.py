"""Every example, run as its README says, to its end; and what it printed shows that it learnt."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.timeout(600)]

FOLDER = Path(__file__).parents[2] / "examples"

PATIENCE = 500.0  # seconds, where the machine has other things to do as well

Check = Callable[[str], None]


def numbers(pattern: str, log: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, log)]


def falls(pattern: str, *, by: float = 2.0) -> Check:
    """The first of these numbers is so many times the last."""

    def check(log: str) -> None:
        found = numbers(pattern, log)
        assert len(found) > 1
        assert found[0] >= by * found[-1]

    return check


def reaches(pattern: str, least: float, *, times: int = 1) -> Check:
    """The last of these numbers is high enough, and there are as many as there should be."""

    def check(log: str) -> None:
        found = numbers(pattern, log)
        assert len(found) == times
        assert found[-1] >= least

    return check


def says(*lines: str) -> Check:
    def check(log: str) -> None:
        for line in lines:
            assert re.search(rf"│ {line}$", log, re.MULTILINE), line

    return check


@dataclass(frozen=True, slots=True)
class Example:
    checks: tuple[Check, ...]
    first: str = ""  # a manifest to be run before
    smaller: tuple[str, str] = ("", "")  # what to write instead, so that it takes a minute and not ten
    slow: bool = False


EXAMPLES = {
    "pytorch-simple": Example(
        checks=(
            falls(r"master-0 │ Train Epoch.*loss=([\d.]+)"),
            reaches(r"master-0 │ accuracy=([\d.]+)", 0.7),
        ),
        slow=True,  # its tutorial is a test of its own
    ),
    "pytorch-elastic": Example(
        checks=(
            falls(r"Epoch \d+: workers=2 loss=([\d.]+)", by=10),
            reaches(r"worker-0 │ accuracy=([\d.]+)", 0.85),
        ),
    ),
    "mxnet-single": Example(
        checks=(reaches(r"│ Epoch \d+: accuracy=([\d.]+)", 0.8, times=10), says(r"Training completed\.")),
    ),
    "mxnet-distributed": Example(
        checks=(
            reaches(
                r"INFO:root:Epoch\[\d\] Batch \[\d+\] +Speed: \d+ samples/sec   accuracy=([\d.]+)",
                0.9,
                times=20,
            ),
            reaches(r"Epoch\[9\] Validation-accuracy=([\d.]+)", 0.8),
            says(r"Training completed\.", r"MXNet scheduler: all workers are done\."),
        ),
    ),
    "xgboost-iris": Example(
        checks=(falls(r"validation-mlogloss:([\d.]+)"), reaches(r"Rank \d: accuracy=([\d.]+)", 0.9, times=3)),
    ),
    "jax-simple": Example(
        checks=(
            falls(r"worker-0 │ Epoch \d: loss=([\d.]+)"),
            reaches(r"│ accuracy=([\d.]+)", 0.8, times=2),
            says("JAX process 0 of 2, 1 of 2 devices", "JAX process 1 of 2, 1 of 2 devices"),
        ),
    ),
    "paddle-single": Example(
        checks=(
            says(
                r"PaddlePaddle works well on 1 CPU\.",
                r"run check success, PaddlePaddle is installed correctly on this node :\)",
            ),
        ),
        slow=True,
    ),
    "paddle-distributed": Example(
        checks=(
            falls(r"Worker 0: Epoch \d+, Batch \d+, Loss ([\d.]+)"),
            falls(r"Worker 1: Epoch \d+, Batch \d+, Loss ([\d.]+)"),
            reaches(r"Worker \d: accuracy=([\d.]+)", 0.8, times=2),
            says(r"Training completed\."),
        ),
        slow=True,
    ),
    "tensorboard": Example(checks=(falls(r"node-0 +│ step \d+: loss=([\d.]+)", by=1000),)),
    "tensorflow-ps": Example(
        checks=(falls(r"chief-0 +│ 50/50 .* loss: ([\d.]+)"), reaches(r"chief-0 +│ accuracy=([\d.]+)", 0.7)),
        slow=True,
    ),
    "mpi-benchmarks": Example(
        checks=(
            falls(r"launcher +│ \d+\timages/sec: .*\t([\d.]+)", by=1.1),
            reaches(r"launcher +│ Total images/sec: ([\d.]+)", 1),
            says(
                r"TensorFlow:  2\.15",
                "Model:       resnet101",
                "Mode:        training",
                "Batch size:  64 per device",
                r"Hosts:       \['tensorflow-benchmarks-worker-0', 'tensorflow-benchmarks-worker-1'\]",
            ),
        ),
        slow=True,
    ),
    "tensorflow-mnist": Example(
        first="prepare.yaml",
        smaller=("python download", "FULLRANK_MNIST_SAMPLES=6400 python download"),
        checks=(
            falls(r"worker-0 │ 40/40 .* - loss: ([\d.]+)"),
            reaches(r"│ 40/40 .* - val_accuracy: ([\d.]+)", 0.9, times=40),
            reaches(r"│ 34/34 .* - accuracy: ([\d.]+)", 0.85, times=4),
        ),
        slow=True,
    ),
}

NO_JOBS = ("notebook",)  # tested where notebooks are


def test_every_example_is_tested() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.is_dir()} == {*EXAMPLES, *NO_JOBS}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if one.slow else []) for name, one in EXAMPLES.items()],
)
def test_an_example_runs_and_learns(
    house: House, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FULLRANK_GPUS", "fake:4")  # some ask for GPUs, and train without them as well
    one = EXAMPLES[name]
    for manifest in filter(None, (one.first, f"{name}.yaml")):
        text = (FOLDER / name / manifest).read_text()
        file = tmp_path / manifest
        file.write_text(text.replace(*one.smaller) if one.smaller[0] else text)
        done = house.fullrank("run", "--timeout", str(PATIENCE), str(file), patience=PATIENCE + 60)
    assert ": Succeeded" in done.stdout
    for check in one.checks:
        check(done.stdout)
