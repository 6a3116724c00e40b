"""The real kubectl in a pod: commands, pipes, terminals, copies, and a pod that talks to the API by itself."""

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.house import House

POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - {name: main, image: "alpine:3", command: [sleep, "3000"]}
"""


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory, kubectl: str) -> Iterator[House]:
    """A home with two pods in it that do nothing."""
    home = tmp_path_factory.mktemp("exec") / "home"
    home.mkdir(mode=0o700)
    house = House(home)
    house.up()
    house.run(kubectl, "apply", "-f", "-", stdin=POD % "a" + "---" + POD % "b")
    house.run(kubectl, "wait", "--for=condition=Ready", "pod/a", "pod/b", "--timeout=60s")
    yield house
    house.fullrank("down", check=False)


def test_a_command_speaks_on_both_streams_and_its_exit_code_comes_back(pods: House, kubectl: str) -> None:
    done = pods.run(kubectl, "exec", "a", "--", "sh", "-c", "hostname; echo oh >&2; exit 7", check=False)
    assert (done.returncode, done.stdout) == (7, "a\n")
    assert done.stderr.splitlines() == ["oh", "command terminated with exit code 7"]


def test_what_is_piped_in_comes_to_its_end(pods: House, kubectl: str) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    assert pods.run(kubectl, "exec", "-i", "a", "--", "cat", stdin=text).stdout == text


REFUSALS = {
    "a program that is nowhere": (
        ("exec", "a", "--", "nosuch"),
        'error: Internal error occurred: error executing command in container: exec: "nosuch": '
        "executable file not found in $PATH",
    ),
    "a container that the pod does not have": (
        ("exec", "a", "-c", "other", "--", "true"),
        "Error from server (BadRequest): container other is not valid for pod a",
    ),
    "attaching": (("attach", "a"), "(NotFound): the server could not find the requested resource"),
    "forwarding a port": (
        ("port-forward", "a", "0:80"),
        "error upgrading connection: the server could not find the requested resource",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_cannot_be_is_said_in_words_that_are_known(case: str, pods: House, kubectl: str) -> None:
    words, said = REFUSALS[case]
    done = pods.run(kubectl, *words, check=False)
    assert done.returncode == 1
    assert said in done.stderr


def test_the_protocol_of_old_clients_is_refused_with_advice(pods: House, kubectl: str) -> None:
    done = pods.run(
        "env", "KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", kubectl, "exec", "a", "--", "true", check=False
    )
    assert "use kubectl 1.30 or newer" in done.stderr


def test_a_terminal_is_a_terminal(pods: House, kubectl: str) -> None:
    ours, theirs = pty.openpty()
    words = [kubectl, "exec", "-it", "a", "--", "sh", "-c", "tty && echo $TERM && exit 5"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=pods.environ) as running:
        os.close(theirs)
        said = b""
        while piece := _read(ours):
            said += piece
    os.close(ours)
    assert running.returncode == 5
    terminal, kind, *_ = said.decode().split()
    assert terminal.startswith("/dev/pts/")
    assert kind == "xterm"


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how a terminal ends
        return b""


def test_files_are_copied_in_and_out(pods: House, kubectl: str, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    (tmp_path / "in").write_bytes(content)
    pods.run(kubectl, "cp", str(tmp_path / "in"), "a:/tmp/there")
    assert not Path("/tmp/there").exists()
    pods.run(kubectl, "cp", "a:/tmp/there", str(tmp_path / "out"))
    assert (tmp_path / "out").read_bytes() == content


def test_a_pod_enters_another_with_nothing_but_what_it_was_given(pods: House, kubectl: str) -> None:
    """As mpirun's launcher does: no kubeconfig, only the service account's files and variables."""
    pods.run(kubectl, "cp", kubectl, "a:/tmp/kubectl")
    inside = "unset KUBECONFIG; HOME=/nowhere /tmp/kubectl exec b -- hostname"
    assert pods.run(kubectl, "exec", "a", "--", "sh", "-c", inside).stdout == "b\n"


def test_a_pod_that_wants_no_token_has_none(pods: House, kubectl: str) -> None:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shy"},
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [
                {"name": "main", "image": "alpine:3", "command": ["ls", "/var/run/secrets/kubernetes.io"]}
            ],
        },
    }
    pods.run(kubectl, "create", "-f", "-", stdin=json.dumps(manifest))
    pods.run(kubectl, "wait", "--for=jsonpath={.status.phase}=Failed", "pod/shy", "--timeout=60s")
