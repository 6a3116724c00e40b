"""The kubectl of ours that launchers get where the machine has none: it runs programs in pods, as its pod's account."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from fullrank.images.catalogue import BUILTIN
from tests.e2e.house import House

POD = """
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec:
  containers:
  - {name: main, image: alpine, command: [sleep, infinity]}
  - {name: other, image: alpine, command: [sleep, infinity], env: [{name: WHO, value: the other}]}
"""


@pytest.fixture
def pod(house: House, kubectl: str) -> str:
    house.up()
    house.run(kubectl, "create", "-f", "-", stdin=POD)
    house.run(kubectl, "wait", "pod/worker", "--for=condition=Ready", "--timeout=60s")
    return "worker"


@pytest.fixture
def account(house: House, tmp_path: Path, pod: str) -> dict[str, str]:
    """What a pod is given to speak to the API, in a folder of the test's own."""
    told = yaml.safe_load((house.home / "kubeconfig").read_text())
    cluster, user = told["clusters"][0]["cluster"], told["users"][0]["user"]
    folder = tmp_path / "account"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(base64.b64decode(cluster["certificate-authority-data"]))
    (folder / "token").write_text(user["token"])
    (folder / "namespace").write_text("default")
    where = urlsplit(cluster["server"])
    return {
        "KUBECTL_ACCOUNT": str(folder),
        "KUBERNETES_SERVICE_HOST": str(where.hostname),
        "KUBERNETES_SERVICE_PORT": str(where.port),
    }


def small_kubectl(account: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    script = str(BUILTIN / "kubectl-delivery" / "kubectl")
    return subprocess.run(
        [sys.executable, script, *words],
        env={**os.environ, **account},
        text=True,
        capture_output=True,
        check=False,
        timeout=60,
    )


def test_it_tells_the_phase_of_a_pod(account: dict[str, str], pod: str) -> None:
    assert small_kubectl(account, "get", "pod", pod, "-o", "jsonpath={.status.phase}").stdout == "Running"
    missing = small_kubectl(account, "get", "pod", "nobody")
    assert missing.returncode == 1
    assert missing.stderr == 'Error from server: pods "nobody" not found\n'


EXECUTIONS = {
    "what a program prints arrives": (("--", "/bin/sh", "-c", "echo out"), 0, "out\n", ""),
    "its code is kubectl's": (
        ("--", "/bin/sh", "-c", "echo err >&2; exit 3"),
        3,
        "",
        "err\ncommand terminated with exit code 3\n",
    ),
    "a container can be chosen": (("-c", "other", "--", "/bin/sh", "-c", "echo $WHO"), 0, "the other\n", ""),
    "much arrives whole": (
        ("--", "/bin/sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' x"),
        0,
        "x" * 1_000_000,
        "",
    ),
}


@pytest.mark.parametrize(("words", "code", "out", "err"), EXECUTIONS.values(), ids=EXECUTIONS.keys())
def test_it_runs_a_program_in_a_pod(
    account: dict[str, str], pod: str, words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    done = small_kubectl(account, "exec", pod, *words)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)
