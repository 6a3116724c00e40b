"""`fullrank operator`: the controllers on a Kubernetes cluster."""

import logging
import os
import signal
import socket
from pathlib import Path
from uuid import uuid4

import anyio
import click

from fullrank.client import kubeconfig
from fullrank.client.kubeconfig import Connection
from fullrank.operator import Operator


@click.command()
@click.option(
    "--kubeconfig", "file", type=click.Path(path_type=Path, dir_okay=False), help="How to reach the cluster."
)
@click.option("--context", default="", help="Which of the kubeconfig's contexts.  [default: the current one]")
@click.option("-n", "--namespace", default="", help="Look after one namespace.  [default: all]")
@click.option(
    "--cluster-domain", default="", help="Write names of TensorFlow's members out with this domain."
)
@click.option(
    "--metrics-bind-address",
    "metrics",
    default=":8080",
    show_default=True,
    metavar="ADDRESS",
    help="Where /metrics is served; 0 for nowhere.",
)
@click.option(
    "--health-probe-bind-address",
    "health",
    default=":8081",
    show_default=True,
    metavar="ADDRESS",
    help="Where /healthz and /readyz are served; 0 for nowhere.",
)
@click.option("-v", "--verbose", is_flag=True, help="Log every step.")
def command(
    file: Path | None,
    context: str,
    namespace: str,
    cluster_domain: str,
    metrics: str,
    health: str,
    verbose: bool,
) -> None:
    """Look after jobs on a Kubernetes cluster.

    Inside a cluster it uses its pod's account; elsewhere, or with --kubeconfig or $KUBECONFIG, a kubeconfig. Of several
    operators one leads; the others wait to take over.
    """
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    identity = f"{socket.gethostname()}_{uuid4()}"
    anyio.run(
        _serve, Operator(_connection(file, context), identity, namespace, cluster_domain, metrics, health)
    )


def _connection(file: Path | None, context: str) -> Connection:
    named = file is not None or context or os.environ.get("KUBECONFIG")
    if not named and (connection := kubeconfig.in_cluster(os.environ)):
        return connection
    return kubeconfig.load([file] if file else kubeconfig.paths_from(os.environ), context)


async def _serve(operator: Operator) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with anyio.create_task_group() as tasks:

            async def serve() -> None:
                async with operator.running():
                    await anyio.sleep_forever()

            tasks.start_soon(serve)
            async for _ in signals:
                tasks.cancel_scope.cancel()
                break
