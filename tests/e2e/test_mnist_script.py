"""The script behind kubeflowkatib/pytorch-mnist, in its own environment: real ranks, real gloo, few pictures."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from fullrank.images.catalogue import Image, Images

pytestmark = [pytest.mark.index, pytest.mark.timeout(600)]

REFERENCE = "docker.io/kubeflowkatib/pytorch-mnist:v1beta1-45c5727"
TRAIN_LINE = re.compile(r"Train Epoch: (\d+) \[(\d+)/(\d+) \((\d+)%\)\]\tloss=(\d+\.\d{4})")


@pytest.fixture(scope="session")
def image(pytestconfig: pytest.Config) -> Image:
    """Built on the first run, kept with pytest's cache for the next."""
    assert pytestconfig.cache is not None
    images = Images(pytestconfig.cache.mkdir("fullrank-home"), environ=os.environ)

    async def show(line: str) -> None:
        sys.stderr.write(f"{line}\n")

    return anyio.run(images.prepare, REFERENCE, {}, show)


def start(image: Image, folder: Path, *options: str, **env: str) -> subprocess.Popen[str]:
    folder.mkdir()
    python = shutil.which("python3", path=image.env["PATH"])
    assert python is not None
    _, script, _ = image.files[0]
    kept = {name: value for name, value in os.environ.items() if name not in ("WORLD_SIZE", "RANK")}
    return subprocess.Popen(
        [python, str(script), *options], cwd=folder, env={**kept, **image.env, **env},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finished(ranks: list[subprocess.Popen[str]]) -> list[str]:
    """What each rank printed; none outlives the test."""
    try:
        return [_printed(rank) for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()


def _printed(rank: subprocess.Popen[str]) -> str:
    printed, complaints = rank.communicate(timeout=300)
    assert rank.returncode == 0, complaints
    return printed


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def test_two_ranks_learn_together(image: Image, tmp_path: Path) -> None:
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    ranks = [
        start(image, tmp_path / str(rank), "--epochs=2", "--lr=0.05", "--save-model",
              **meeting, RANK=str(rank), FULLRANK_MNIST_SAMPLES="5120")
        for rank in (0, 1)
    ]  # fmt: skip
    logs = finished(ranks)
    for rank, log in enumerate(logs):
        assert log.startswith(f"Using distributed PyTorch with gloo backend\nWorld Size: 2. Rank: {rank}\n")
        steps = [match.groups() for line in log.splitlines() if (match := TRAIN_LINE.fullmatch(line))]
        assert [step[:3] for step in steps[:4]] == [
            ("1", seen, "5120") for seen in ("0", "640", "1280", "1920")
        ]
        assert [step[3] for step in steps[:4]] == ["0", "25", "50", "75"]
        assert float(steps[0][4]) > 2.0
        assert float(steps[-1][4]) < 1.0
    accuracies = [re.findall(r"\naccuracy=(\d\.\d{4})\n\n", log) for log in logs]
    assert accuracies[0] == accuracies[1]
    assert float(accuracies[0][-1]) > 0.7
    assert (tmp_path / "0" / "mnist_cnn.pt").stat().st_size > 0
    assert not (tmp_path / "1" / "mnist_cnn.pt").exists()
    [events] = (tmp_path / "0" / "logs").iterdir()
    written = events.read_bytes()
    assert b"loss" in written
    assert b"accuracy" in written


def test_two_runs_alone_do_not_meet(image: Image, tmp_path: Path) -> None:
    logs = finished([start(image, tmp_path / name, FULLRANK_MNIST_SAMPLES="1280") for name in "ab"])
    for log in logs:
        assert "World Size: 1. Rank: 0\n" in log
        assert "Train Epoch: 1 [640/1280 (50%)]\tloss=" in log
        assert log.endswith("\n\n")
    assert logs[0] == logs[1]
