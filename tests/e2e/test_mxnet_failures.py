"""MXNet never notices that a member is gone: what its image does about that, with real members."""

from pathlib import Path

import pytest

from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.timeout(300)]

IMAGE = "release-ci.daocloud.io/baize/kubeflow/mxnet-gpu:latest"
JOB = f"""
apiVersion: kubeflow.org/v1
kind: MXJob
metadata: {{name: unlucky}}
spec:
  jobMode: MXTrain
  mxReplicaSpecs:
    Scheduler:
      replicas: 1
      restartPolicy: Never
      template: {{spec: {{containers: [{{name: mxnet, image: "{IMAGE}"}}]}}}}
    Server:
      replicas: 1
      restartPolicy: Never
      template: {{spec: {{containers: [{{name: mxnet, image: "{IMAGE}"}}]}}}}
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: mxnet
            image: {IMAGE}
            command: [python3, -c]
            args:
            - |
              import mxnet as mx
              kv = mx.kvstore.create("dist_sync")
              kv.init("weights", mx.nd.zeros(3))
              print("rank", kv.rank, flush=True)
              if kv.rank == 1:
                  raise RuntimeError("out of luck")
              kv.push("weights", mx.nd.ones(3))
              sums = mx.nd.zeros(3)
              kv.pull("weights", out=sums)
              print("never reached", sums.asnumpy())
"""


def test_an_error_in_one_worker_ends_the_job(house: House, tmp_path: Path) -> None:
    manifest = tmp_path / "unlucky.yaml"
    manifest.write_text(JOB)
    done = house.fullrank("run", str(manifest), check=False)
    assert done.returncode == 1
    assert "RuntimeError: out of luck" in done.stdout
    assert "never reached" not in done.stdout
    assert "MXJob default/unlucky: Failed" in done.stdout
