"""A real kube-apiserver with its etcd, for as long as a test session needs one."""

import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fullrank.client.http import tls
from fullrank.client.kubeconfig import Connection
from fullrank.client.kubeconfig import Credentials as Proof
from fullrank.clock import SystemClock
from fullrank.controlplane.pki import credentials

NEEDED = "KUBEBUILDER_ASSETS is not set: needs a real kube-apiserver"
PATIENCE = 60.0


def assets() -> Path | None:
    """The folder with etcd and kube-apiserver, if somebody named one."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    return Path(named) if named else None


@contextmanager
def kubernetes(binaries: Path, folder: Path, *flags: str) -> Iterator[Connection]:
    keys = credentials(folder / "pki", SystemClock().now())
    etcd, peer, port = free_ports(3)
    connection = Connection(
        f"https://127.0.0.1:{port}",
        ca=keys.ca.read_text(),
        credentials=Proof(certificate=keys.client_certificate.read_text(), key=keys.client_key.read_text()),
    )
    with ExitStack() as stack:
        stack.enter_context(
            started(
                folder / "etcd.log",
                binaries / "etcd",
                f"--data-dir={folder / 'etcd'}",
                f"--listen-client-urls=http://127.0.0.1:{etcd}",
                f"--advertise-client-urls=http://127.0.0.1:{etcd}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                "--unsafe-no-fsync",
            )
        )
        server = stack.enter_context(
            started(
                folder / "kube-apiserver.log",
                binaries / "kube-apiserver",
                f"--etcd-servers=http://127.0.0.1:{etcd}",
                f"--secure-port={port}",
                "--bind-address=127.0.0.1",
                f"--cert-dir={folder / 'apiserver'}",
                f"--tls-cert-file={keys.server_certificate}",
                f"--tls-private-key-file={keys.server_key}",
                f"--client-ca-file={keys.ca}",
                f"--service-account-key-file={keys.server_certificate}",
                f"--service-account-signing-key-file={keys.server_key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                "--service-cluster-ip-range=10.0.0.0/16",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",  # nobody makes accounts: no controller manager runs
                *flags,
            )
        )
        _await_ready(connection, server, folder / "kube-apiserver.log")
        yield connection


@contextmanager
def started(
    log: Path, *argv: Path | str, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        words = [str(each) for each in argv]
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, env=env)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _await_ready(connection: Connection, server: subprocess.Popen[bytes], log: Path) -> None:
    context = tls(connection, connection.credentials)
    assert not isinstance(context, bool)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(f"{connection.server}/readyz", context=context, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"kube-apiserver did not become ready: {log.read_text()[-2000:]}")


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]
