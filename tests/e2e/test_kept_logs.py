"""Logs by the name of the job: of every attempt, and of pods that are gone."""

from pathlib import Path

import pytest

from tests.e2e.house import House

pytestmark = pytest.mark.timeout(120)

JOB = """
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: small, annotations: {annotations}}}
spec:
  runPolicy: {{cleanPodPolicy: All}}
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: {policy}
      template:
        spec:
          volumes: [{{name: counts, hostPath: {{path: {folder}}}}}]
          containers:
          - name: pytorch
            image: python:3.11
            command:
            - sh
            - -c
            - |
              n=$(cat /counts/$HOSTNAME 2>/dev/null || echo 0)
              n=$((n + 1))
              echo $n > /counts/$HOSTNAME
              echo "attempt $n"
              test $n -eq 2 || exit 137
            volumeMounts: [{{name: counts, mountPath: /counts}}]
"""

RESTARTS = {
    "in place": ("OnFailure", "{}"),
    "by another pod": ("ExitCode", "{}"),
    "all as one": ("ExitCode", "{fullrank.dev/restart-scope: gang}"),
}


@pytest.mark.parametrize("restart", RESTARTS)
def test_every_attempt_is_shown_when_the_pods_and_then_the_server_are_gone(
    house: House, tmp_path: Path, restart: str
) -> None:
    policy, annotations = RESTARTS[restart]
    (tmp_path / "counts").mkdir()
    (tmp_path / "job.yaml").write_text(
        JOB.format(policy=policy, annotations=annotations, folder=tmp_path / "counts")
    )
    house.up()
    house.fullrank("run", str(tmp_path / "job.yaml"), check=restart != "all as one")

    def said(*words: str) -> list[str]:
        return house.fullrank("logs", "small", *words).stdout.splitlines()

    latest = said()
    for gone in ("pods", "server"):
        assert said("--attempt", "1", "--rank", "worker-1") == ["worker-1 │ attempt 1"], gone
        assert said("--attempt", "1") == ["worker-0 │ attempt 1", "worker-1 │ attempt 1"]
        assert said() == latest
        assert said("--attempt", "2", "-f") != []
        if gone == "pods":
            house.fullrank("down")
    assert latest[0] == "worker-0 │ attempt 2"
    done = house.fullrank("logs", "small", "--attempt", "7", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith('error: job "small" has no attempt 7: worker-0 had ')
