"""The command line from outside: what it prints, and its exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from fullrank.cli.hints import exit_code, expected, explain
from fullrank.cli.jobs import member_of
from fullrank.errors import (
    BadRequest,
    Cause,
    Conflict,
    Forbidden,
    FullrankError,
    Invalid,
    NotFound,
    Unavailable,
)

ROOT = Path(__file__).parents[2]


def fullrank(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": "/usr/bin:/bin", "FULLRANK_HOME": str(home), "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        [sys.executable, "-m", "fullrank", *words], text=True, capture_output=True, check=False, env=environ
    )


BAD = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: bad}
spec:
  runPolcy: {}
  pytorchReplicaSpecs:
    Wroker: {replicas: -1, template: {spec: {containers: [{name: pytorch, imag: x}]}}}
---
apiVersion: kubeflow.org/v1
kind: PytorchJob
metadata: {name: worse}
"""


def test_validate_shows_every_mistake_with_its_path_and_a_hint(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(BAD)
    done = fullrank("validate", str(tmp_path / "bad.yaml"), home=tmp_path)
    role = "spec.pytorchReplicaSpecs[Wroker]"
    assert done.stdout.splitlines() == [
        f"{tmp_path}/bad.yaml: PyTorchJob default/bad: not accepted",
        "  spec.pytorchReplicaSpecs.Wroker.template.spec.containers[0].imag: unknown field",
        '    hint: did you mean "image"?',
        "  spec.runPolcy: unknown field",
        '    hint: did you mean "runPolicy"?',
        f'  {role}: Unsupported value: "Wroker": supported values: "Master", "Worker"',
        '    hint: did you mean "Worker"?',
        f"  {role}.template.spec.containers[0].image: Required value: must be required",
        f"  {role}.replicas: Invalid value: -1: should be a non-negative integer",
    ]
    assert 'no kind "PytorchJob" in version "kubeflow.org/v1" (did you mean "PyTorchJob"?)' in done.stderr
    assert done.returncode == 2


QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: team-a}
spec: {clusterQueue: everybody}
"""


def test_what_a_home_takes_in_validate_knows(tmp_path: Path) -> None:
    (tmp_path / "queue.yaml").write_text(QUEUE)
    done = fullrank("validate", str(tmp_path / "queue.yaml"), home=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{tmp_path}/queue.yaml: LocalQueue default/team-a: fine\n")


def test_every_example_is_valid(tmp_path: Path) -> None:
    files = [str(file) for file in sorted((ROOT / "examples").glob("*/*.yaml"))]
    done = fullrank("validate", *files, home=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_status_of_a_home_that_is_not_up(tmp_path: Path) -> None:
    done = fullrank("status", home=tmp_path)
    assert (done.returncode, done.stdout) == (
        1,
        f"not running (home {tmp_path}); start it with `fullrank up`\n",
    )


WRONG: dict[str, tuple[tuple[str, ...], int, str]] = {
    "a file that is not there": (
        ("run", "/no/such.yaml"),
        2,
        "error: /no/such.yaml: No such file or directory",
    ),
    "logs that nobody kept": (
        ("logs", "mnist"),
        1,
        'no job "mnist" in namespace "default", and no logs of one',
    ),
    "attempts on a cluster": (
        ("logs", "mnist", "--context", "prod", "--attempt", "2"),
        2,
        "use --previous for that one",
    ),
    "two attempts at once": (("logs", "mnist", "--attempt", "2", "-p"), 2, "--attempt and --previous"),
    "no server": (
        ("logs", "-f", "mnist"),
        3,
        "hint: is it running? `fullrank status` tells, `fullrank up` starts it",
    ),
    "an unknown command": (("rnu",), 2, "No such command 'rnu'"),
    "a bad setting": (("up", "--port", "many"), 2, "--port: Invalid value"),
    "no kubeconfig yet": (("kubeconfig",), 1, "`fullrank up` makes it"),
    "nothing to stay up for a detached job": (
        ("run", "--detach", str(ROOT / "examples/pytorch-simple/pytorch-simple.yaml")),
        1,
        "start one with `fullrank up --detach`",
    ),
}


@pytest.mark.parametrize(("words", "code", "says"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_told_with_what_to_do_next(
    words: tuple[str, ...], code: int, says: str, tmp_path: Path
) -> None:
    done = fullrank(*words, home=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr


CODES: dict[FullrankError, int] = {
    Invalid("x", [Cause("a", "b")]): 2,
    BadRequest("x"): 2,
    Unavailable("x"): 3,
    NotFound("x"): 1,
    Forbidden("x"): 1,
    Conflict("x"): 1,
}


@pytest.mark.parametrize(("error", "code"), CODES.items(), ids=lambda value: type(value).__name__)
def test_an_error_decides_the_exit_code_even_in_a_group(error: FullrankError, code: int) -> None:
    assert exit_code(expected(ExceptionGroup("outer", [ExceptionGroup("inner", [error])]))) == code


def test_our_own_mistakes_are_not_dressed_up() -> None:
    with pytest.raises(ExceptionGroup):
        expected(ExceptionGroup("outer", [RuntimeError("ours")]))


def test_each_complaint_has_a_line_and_each_hint_follows() -> None:
    error = Invalid(
        'PyTorchJob.kubeflow.org "x"',
        [Cause("spec.a", "Required value", hint="write it"), Cause("spec.b", "no")],
    )
    assert explain(error).splitlines() == [
        'error: PyTorchJob.kubeflow.org "x" was not accepted',
        "  spec.a: Required value",
        "  spec.b: no",
        "hint: spec.a: write it",
    ]


MEMBERS = {
    "a Kubeflow job's": ("demo", "demo-worker-0", "worker-0"),
    "one without a number": ("demo", "demo-launcher", "launcher"),
    "a TensorStack job's, with its mark": ("mnist", "mnist-9145d-worker-3", "worker-3"),
    "a role that looks like a mark": ("demo", "demo-faded-0", "faded-0"),
}


@pytest.mark.parametrize(("job", "pod", "member"), MEMBERS.values(), ids=MEMBERS.keys())
def test_a_member_is_called_by_its_role_and_number(job: str, pod: str, member: str) -> None:
    assert member_of(job, pod) == member
