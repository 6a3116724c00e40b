"""The same job on one machine as root, as a user with namespaces of his own, and as one to whom they are refused."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest

from fullrank.api.meta import Json
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from tests.e2e.house import PATIENCE, House

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else"),
]

USER = 12345  # whom nobody knows
ROOT = Path(__file__).parents[2]

JOB = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: small}
spec:
  pytorchReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          volumes: [{name: shared, persistentVolumeClaim: {claimName: shared}}]
          containers:
          - name: pytorch
            image: alpine
            env: [{name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
            command: [sh, -ec]
            args:
            - |
              echo "$(hostname) $(id -u)"
              n=${POD##*-}
              test "$POD" = "$HOSTNAME"
              echo "from $n" > /mnt/of/the/manifest/$n
              until test -s /mnt/of/the/manifest/0 && test -s /mnt/of/the/manifest/1; do sleep 0.05; done
              cat /mnt/of/the/manifest/*
            volumeMounts: [{name: shared, mountPath: /mnt/of/the/manifest}]
"""

GLUTTON = """
apiVersion: v1
kind: Pod
metadata: {name: glutton}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: alpine
    command: [PYTHON, -c, "held = bytearray(300 << 20); print('ate it all', flush=True); import time; time.sleep(600)"]
    resources: {limits: {memory: 100Mi, cpu: "1"}}
"""


@dataclass(frozen=True)
class Tenant(House):
    """A house in which everything is done by somebody without privileges."""

    namespaces: str = ""  # "": it is root's

    def run(
        self, *words: str, check: bool = True, stdin: str | None = None, patience: float = PATIENCE / 2
    ) -> subprocess.CompletedProcess[str]:
        if self.namespaces:
            words = (sys.executable, "-m", "tests.e2e.as_user", str(USER), self.namespaces, *words)
        return super().run(*words, check=check, stdin=stdin, patience=patience)

    @property
    def environ(self) -> dict[str, str]:
        modules = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return super().environ | {
            "PYTHONPATH": modules,
            "HOME": str(self.home),
            "PYTHONDONTWRITEBYTECODE": "1",
        }


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> Iterator[Tenant]:
    """Below /tmp and not below root's own folder there, which others may not enter."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir(mode=0o700)
        owner = USER if request.param else 0
        for path in (Path(folder), home):
            os.chown(path, owner, owner)
        tenant = Tenant(home, request.param)
        yield tenant
        tenant.fullrank("down", check=False)


async def _get(home: Path, path: str) -> Json:
    async with HttpClient(load([home / "kubeconfig"])) as client:
        return dict(json.loads(await client.raw(f"/api/v1/namespaces/default/{path}")))


def seen(tenant: Tenant, path: str) -> Json:
    return anyio.run(_get, tenant.home, path)


def told(tenant: Tenant, reason: str) -> str:
    return next((one["message"] for one in seen(tenant, "events")["items"] if one["reason"] == reason), "")


def submit(tenant: Tenant, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    return tenant.fullrank("run", "-", *words, stdin=text.replace("PYTHON", sys.executable))


LEVELS = {"as root": "", "as a user": "allowed", "as a user without namespaces": "refused"}


@pytest.mark.parametrize("tenant", LEVELS.values(), ids=LEVELS.keys(), indirect=True)
def test_two_ranks_share_a_volume_at_the_manifests_path(tenant: Tenant) -> None:
    tenant.up()
    submit(tenant, JOB)
    first = tenant.fullrank("logs", "small", "--rank", "worker-0").stdout.splitlines()
    namespaces = tenant.namespaces != "refused"
    user = USER if tenant.namespaces else 0
    host = os.uname().nodename
    assert first[0] == f"worker-0 │ {'small-worker-0' if namespaces else host} {user}"
    assert first[1:] == ["worker-0 │ from 0", "worker-0 │ from 1"]
    warning = told(tenant, "NotIsolated")
    assert warning.startswith("this machine allows no namespaces: paths of volumes") != namespaces
    assert (tenant.home / "volumes/default/shared/1").read_text() == "from 1\n"
    assert not Path("/mnt/of").exists()


@pytest.mark.parametrize("tenant", LEVELS.values(), ids=LEVELS.keys(), indirect=True)
def test_a_container_that_uses_more_memory_than_its_limit_is_killed_whoever_keeps_it(
    tenant: Tenant,
) -> None:
    tenant.up()
    submit(tenant, GLUTTON, "--detach")

    def ended() -> Json:
        states = seen(tenant, "pods/glutton")["status"].get("containerStatuses") or [{}]
        return dict((states[0].get("state") or {}).get("terminated") or {})

    end = tenant.wait_for(ended)
    assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")
    warning = told(tenant, "LimitNotEnforced")
    if tenant.namespaces:
        assert "the memory limit is watched by us instead" in warning
        assert "the CPU limit is not enforced" in warning
    else:
        assert warning == ""
