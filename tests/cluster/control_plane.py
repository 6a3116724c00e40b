"""A whole Kubernetes with pretended nodes, and the operators to be tried on it, each for as long as a test needs it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml

from fullrank.api.meta import Json
from fullrank.client import kubeconfig
from fullrank.client.kubeconfig import Connection
from fullrank.clock import SystemClock
from fullrank.controlplane.pki import credentials
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS
from fullrank.install import manifests
from tests.contract.kubernetes import free_ports, kubernetes, started

STAGES = Path(__file__).with_name("pretended.yaml")
PATIENCE = 60.0
ROOM = {
    "cpu": "1000", "memory": "4Ti", "pods": "5000", "ephemeral-storage": "4Ti", "nvidia.com/gpu": "64",
    "nvidia.com/vgpu": "640", "nvidia.com/gpumem": "1000000", "nvidia.com/gpucores": "6400",
}  # fmt: skip


@dataclass(frozen=True)
class Cluster:
    """How to reach it, as a client and with kubectl."""

    connection: Connection
    config: Path
    binaries: Path
    folder: Path

    def kubectl(self, *words: str, documents: list[Json] | None = None) -> str:
        text = None if documents is None else yaml.safe_dump_all(documents)
        argv = [str(self.binaries / "kubectl"), "--kubeconfig", str(self.config), *words]
        answer = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
        assert answer.returncode == 0, f"kubectl {' '.join(words)}: {answer.stderr[:1000]}"
        return answer.stdout

    def namespace(self, name: str) -> str:
        self.kubectl("create", "namespace", name)
        return name


@contextmanager
def cluster(binaries: Path, folder: Path, *, nodes: int = 4) -> Iterator[Cluster]:
    """A control plane whose pods are scheduled, pretended to run, and collected with their owners."""
    with ExitStack() as stack:
        connection = stack.enter_context(kubernetes(binaries, folder))
        config = folder / "admin.kubeconfig"
        kubeconfig.write(config, connection, "admin")
        one = Cluster(connection, config, binaries, folder)
        busy = (f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0")
        fast = ("--kube-api-qps=1000", "--kube-api-burst=2000")
        for name in ("kube-controller-manager", "kube-scheduler"):
            stack.enter_context(started(folder / f"{name}.log", binaries / name, *busy, *fast))
        stack.enter_context(
            started(
                folder / "kwok.log",
                binaries / "kwok",
                f"--kubeconfig={config}",
                f"--config={STAGES}",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=pretended",
                f"--server-address=127.0.0.1:{free_ports(1)[0]}",
            )
        )
        _add_nodes(one, nodes)
        yield one


def _add_nodes(one: Cluster, count: int) -> None:
    made = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"pretended-{index}", "annotations": {"kwok.x-k8s.io/node": "pretended"}},
            "status": {"allocatable": ROOM, "capacity": ROOM},
        }
        for index in range(count)
    ]
    one.kubectl("apply", "-f", "-", documents=made)
    one.kubectl(
        "apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-", documents=made
    )
    one.kubectl("wait", "--for=condition=Ready", "node", "--all", f"--timeout={PATIENCE:.0f}s")


def install(one: Cluster) -> None:
    """Everything that `fullrank install` prints, as it is applied by those who read its help."""
    documents = [*manifests(JOB_KINDS, APP_KINDS, image="fullrank:test", namespace="fullrank")]
    one.kubectl("apply", "--server-side", "-f", "-", documents=documents)
    names = {each.kind.group_resource for each in JOB_KINDS}
    names |= {each.kind.group_resource for each in APP_KINDS}
    deadline = time.monotonic() + PATIENCE
    while not names <= set(one.kubectl("api-resources", "-o", "name").split()):
        assert time.monotonic() < deadline, "the definitions were not taken in"
        time.sleep(0.2)


@contextmanager
def our_operator(
    one: Cluster, namespace: str = "", config: Path | None = None, probes: tuple[int, int] | None = None
) -> Iterator[int]:
    """Ours, as a process of its own; its pid. `probes` are the ports of its metrics and its health."""
    nowhere = ("--metrics-bind-address=0", "--health-probe-bind-address=0")
    where = (f"--kubeconfig={config or one.config}", f"--namespace={namespace}")
    words = ("-m", "fullrank", "operator", *where, *(nowhere if probes is None else _at(probes)))
    log = one.folder / "fullrank.log"
    with started(log, sys.executable, *words) as process:
        _until(lambda: "looking after jobs" in log.read_text(), process, log)
        yield process.pid


def _at(probes: tuple[int, int]) -> tuple[str, str]:
    metrics, health = probes
    return (
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
    )


@contextmanager
def training_operator(one: Cluster, namespace: str) -> Iterator[int]:
    """Kubeflow's, for one namespace; its pid. Its webhooks are not registered, but it wants their papers."""
    log, scratch = one.folder / "training-operator.log", one.folder / "training-operator"
    certificates = scratch / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    keys = credentials(one.folder / "pki", SystemClock().now())
    shutil.copy(keys.server_certificate, certificates / "tls.crt")
    shutil.copy(keys.server_key, certificates / "tls.key")
    one.kubectl("-n", namespace, "create", "secret", "generic", "training-operator-webhook-cert")
    validator = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "validator.training-operator.kubeflow.org"},
        "webhooks": [],
    }
    one.kubectl("apply", "-f", "-", documents=[validator])
    metrics, health, webhooks = free_ports(3)
    settings = {"KUBECONFIG": str(one.config), "MY_POD_NAMESPACE": namespace, "TMPDIR": str(scratch)}
    with started(
        log,
        one.binaries / "training-operator.v1",
        f"--namespace={namespace}",
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--webhook-server-port={webhooks}",
        env={**os.environ, **settings},
    ) as process:
        _until(lambda: log.read_text().count("Starting workers") >= 6, process, log)
        yield process.pid


def _until(true: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        alive = process.poll() is None and time.monotonic() < deadline
        assert alive, f"it did not come up: {log.read_text()[-3000:]}"
        time.sleep(0.1)
