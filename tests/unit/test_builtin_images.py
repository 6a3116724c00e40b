"""What the images of the tutorials contain, as far as it can be tried without their environments."""

import re
import runpy
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from fullrank.images.catalogue import BUILTIN
from fullrank.images.entries import Entry, read_entry

EXAMPLES = Path(__file__).parents[2] / "examples"


def entries() -> list[Entry]:
    return [entry for path in sorted(BUILTIN.glob("*.yaml")) if isinstance(entry := read_entry(path), Entry)]


def images_named_in(text: str) -> set[str]:
    return set(re.findall(r"\bimage: *(\S+)", text))


@pytest.mark.parametrize("manifest", sorted(EXAMPLES.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_every_image_of_an_example_has_exactly_one_entry(manifest: Path) -> None:
    for image in images_named_in(manifest.read_text()):
        assert len([entry for entry in entries() if entry.matches(image)]) == 1, image


def test_every_image_is_documented() -> None:
    told = (EXAMPLES.parent / "docs" / "images.md").read_text()
    names = {pattern.partition(":")[0] for entry in entries() for pattern in entry.patterns}
    assert [name for name in sorted(names) if f"`{name}:" not in told] == []


def test_every_requirement_is_pinned() -> None:
    wanted = [line for entry in entries() if entry.recipe for line in entry.recipe.requirements]
    assert wanted
    assert [line for line in wanted if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def test_every_file_beside_the_entries_belongs_to_one() -> None:
    used = {file.source.resolve() for entry in entries() for file in entry.files}
    there = {
        path.resolve()
        for path in BUILTIN.rglob("*")
        if path.is_file() and path.suffix != ".yaml" and "__pycache__" not in path.parts
    }
    assert there == used


@pytest.mark.parametrize(
    "script",
    sorted(path for path in BUILTIN.rglob("*.py")),
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_every_script_is_python_of_this_version(script: Path) -> None:
    compile(script.read_text(encoding="utf-8"), script, "exec")


def functions_of(script: str) -> dict[str, Any]:
    return runpy.run_path(str(BUILTIN / script), run_name="not main")


TUTORIAL = (
    "--allow-run-as-root -np 2 -bind-to none -map-by slot -x NCCL_DEBUG=INFO -x LD_LIBRARY_PATH -x PATH "
    "-mca pml ob1 -mca btl ^openib python a.py --model=resnet101 -x"
)
WORDS: Mapping[str, tuple[str, str]] = {
    "the tutorial's": (
        TUTORIAL,
        "--allow-run-as-root --np 2 --bind-to none --map-by slot -x NCCL_DEBUG=INFO -x PATH "
        "--mca pml ob1 --mca btl ^openib python a.py --model=resnet101 -x",
    ),
    "those of version 5 stay": ("--bind-to none -n 2 a.out", "--bind-to none -n 2 a.out"),
    "an option that holds its argument": ("-hostfile=h -np 2 a.out -y", "--hostfile=h --np 2 a.out -y"),
    "an option alone": ("-tag-output a.out -quiet", "--tag-output a.out -quiet"),
    "nothing to run": ("-version", "--version"),
}


@pytest.mark.parametrize(("given", "expected"), WORDS.values(), ids=WORDS.keys())
def test_mpirun_takes_the_words_of_an_older_version(given: str, expected: str) -> None:
    translated = functions_of("tensorflow-benchmarks/mpirun")["translated"]
    assert " ".join(translated(given.split(), {"PATH": "/bin"})) == expected


CHECKS = {
    "one node": (["-m", "paddle.distributed.launch", "run_check"], {"PADDLE_NNODES": "1"}, True),
    "nobody says how many": (["-m", "paddle.distributed.launch", "run_check"], {}, True),
    "two nodes": (["-m", "paddle.distributed.launch", "run_check"], {"PADDLE_NNODES": "2"}, False),
    "two nodes by an option": (["-m", "paddle.distributed.launch", "--nnodes=2", "run_check"], {}, False),
    "a script of the user's": (["-m", "paddle.distributed.launch", "train.py"], {}, False),
    "another program": (["train.py", "run_check"], {}, False),
    "no program": ([], {}, False),
}


@pytest.mark.parametrize(("words", "environ", "expected"), CHECKS.values(), ids=CHECKS.keys())
def test_paddles_check_stays_on_its_node_when_it_is_alone(
    words: list[str], environ: dict[str, str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PADDLE_NNODES", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert functions_of("paddle/sitecustomize.py")["_checks_one_node"](words) is expected


@pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
def test_a_kubectl_is_delivered_and_the_workers_are_waited_for(tmp_path: Path) -> None:
    """The kubectl that is found tells at the second time that a worker runs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "kube").mkdir()
    (tmp_path / "hostfile").write_text("job-worker-0 slots=1\njob-worker-1 slots=1\n")
    kubectl = tmp_path / "bin" / "kubectl"
    kubectl.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n'
        f'[ "$(grep -c "$3" {tmp_path}/asked)" -ge 2 ] && printf Running || printf Pending\n'
    )
    kubectl.chmod(0o755)
    done = subprocess.run(
        ["sh", str(BUILTIN / "kubectl-delivery/deliver")],
        env={
            "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
            "TARGET_DIR": f"{tmp_path}/kube",
            "HOSTFILE": f"{tmp_path}/hostfile",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert (tmp_path / "kube" / "kubectl").read_text() == kubectl.read_text()
    assert done.stdout.splitlines() == [
        f"delivered {tmp_path}/kube/kubectl", "job-worker-0 runs", "job-worker-1 runs",
    ]  # fmt: skip
    assert (tmp_path / "asked").read_text().splitlines() == [
        f"get pod job-worker-{number} -o jsonpath={{.status.phase}}" for number in (0, 0, 1, 1)
    ]


def test_the_readme_of_an_example_gives_the_command() -> None:
    for folder in sorted(path for path in EXAMPLES.iterdir() if path.is_dir()):
        readme = (folder / "README.md").read_text()
        for manifest in folder.glob("*.yaml"):
            assert manifest.name in readme, folder
            assert list(yaml.safe_load_all(manifest.read_text()))
        assert "fullrank run" in readme, folder
