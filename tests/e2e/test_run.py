"""`fullrank run` and its user: Ctrl-C, failure, several jobs."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.house import House

pytestmark = pytest.mark.timeout(120)


def a_manifest(folder: Path, script: str, *, policy: str = "Never") -> str:
    file = folder / "job.yaml"
    container = f'{{name: pytorch, image: "python:3.11", command: [sh, -c, {script!r}]}}'
    file.write_text(
        f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: small}}
spec:
  pytorchReplicaSpecs:
    Worker: {{replicas: 2, restartPolicy: {policy}, template: {{spec: {{containers: [{container}]}}}}}}
"""
    )
    return str(file)


def test_ctrl_c_stops_the_job_and_the_next_run_starts_anew(house: House, tmp_path: Path) -> None:
    file = a_manifest(tmp_path, "echo here; exec sleep 600")
    words = [sys.executable, "-m", "fullrank", "run", file]
    with subprocess.Popen(words, env=house.environ, text=True, stdout=subprocess.PIPE) as running:
        assert running.stdout
        heard = 0
        while heard < 2:
            heard += "│ here" in running.stdout.readline()
        running.send_signal(signal.SIGINT)
        rest = running.stdout.read()
    assert running.returncode == 130
    assert "PyTorchJob default/small: Suspended" in rest
    a_manifest(tmp_path, "echo again")
    assert "which ended before (Suspended)" in house.fullrank("run", file).stdout


def test_a_failed_job_names_the_first_rank_its_exit_code_and_its_last_lines(
    house: House, tmp_path: Path
) -> None:
    script = 'case $HOSTNAME in *-1) echo "out of luck"; exit 3;; esac; exec sleep 600'
    done = house.fullrank("run", a_manifest(tmp_path, script), check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: PyTorchJob default/small did not succeed: "
        "PyTorchJob small is failed because 1 Worker replica(s) failed.",
        "  worker-1 failed first, with exit code 3; its last lines:",
        "    out of luck",
    ]


def test_a_job_that_takes_too_long_is_given_up_on(house: House, tmp_path: Path) -> None:
    done = house.fullrank("run", "--timeout", "2", a_manifest(tmp_path, "exec sleep 600"), check=False)
    assert (done.returncode, done.stderr) == (1, "error: not finished after 2.0 s\n")
