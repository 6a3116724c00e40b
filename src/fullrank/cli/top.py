"""`fullrank top`: what jobs use at this moment, member by member."""

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
import click
import msgspec

from fullrank.api.meta import Json, controller_of, name_of, namespace_of
from fullrank.api.quantity import amount
from fullrank.api.scheme import POD
from fullrank.cli.jobs import find_job
from fullrank.cli.options import HOME, settings_from, with_cluster
from fullrank.cli.output import shown_size
from fullrank.cli.shape import OUTPUT, print_json, print_table
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load, paths_from
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import NotFound, Unavailable
from fullrank.home import find_running

METRICS = "/apis/metrics.k8s.io/v1beta1"
EVERY = 2.0  # seconds between two looks with -w
KINDS = frozenset(one.kind.kind for one in JOB_KINDS)
ABOVE = "\x1b[H\x1b[J"  # to the upper left corner, and everything below it is gone


@dataclass(frozen=True, slots=True)
class Row:
    namespace: str
    job: str
    pod: str
    cores: float
    bytes: int
    gpus: float | None  # cards' worth of work; None where the pod has none, or nobody measures it
    gpu_bytes: int | None


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB…]")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")
@click.option("-w", "--watch", is_flag=True, help="Again and again, until Ctrl-C.")
@HOME
@with_cluster
@OUTPUT
def command(
    jobs: tuple[str, ...],
    namespace: str,
    all_namespaces: bool,
    watch: bool,
    home: Path | None,
    kubeconfig: Path | None,
    context: str,
    output: str,
) -> None:
    """Show what pods use at this moment: CPU, memory, GPUs; those of the named jobs, or all.

    GPU is how many cards' worth of work ran in the last moments, on the cards that the pod was given. On a cluster the
    figures come from its metrics server, which knows nothing of GPUs.
    """
    where = settings_from({"home": home}).home
    files = [kubeconfig] if kubeconfig else paths_from(os.environ)
    if not (kubeconfig or context):
        if find_running(where) is None:
            raise Unavailable(f"no control plane is up in {where}")
        files = [where / "kubeconfig"]
    client = HttpClient(load(files, context))
    anyio.run(_top, client, "" if all_namespaces else namespace, jobs, watch, output)


async def _top(client: HttpClient, namespace: str, jobs: tuple[str, ...], watch: bool, output: str) -> None:
    async with client:
        for name in jobs if namespace else ():
            await find_job(client, namespace, name)
        while True:
            rows = [row for row in await _rows(client, namespace) if not jobs or row.job in jobs]
            if watch and sys.stdout.isatty():
                click.echo(ABOVE, nl=False)
            _show(rows, output, with_namespace=not namespace)
            if not watch:
                return
            await anyio.sleep(EVERY)


async def _rows(client: HttpClient, namespace: str) -> list[Row]:
    place = f"{METRICS}/namespaces/{namespace}/pods" if namespace else f"{METRICS}/pods"
    try:
        measured = msgspec.json.decode(await client.raw(place), type=Json)["items"]
    except NotFound as error:
        raise NotFound(
            f"nobody measures here: {METRICS} is not served (a cluster needs metrics-server)"
        ) from error
    owners = {
        (namespace_of(pod), name_of(pod)): _job_of(pod) for pod in (await client.select(POD, namespace)).items
    }
    return [
        _row(one, owners[key]) for one in measured if (key := (namespace_of(one), name_of(one))) in owners
    ]


def _job_of(pod: Json) -> str:
    owner = controller_of(pod) or {}
    return str(owner["name"]) if owner.get("kind") in KINDS else ""


def _row(measured: Json, job: str) -> Row:
    usages: list[Json] = [one.get("usage") or {} for one in measured["containers"]]

    def total(resource: str) -> float | None:
        found = [float(amount(one[resource])) for one in usages if resource in one]
        return sum(found) if found else None

    gpu_memory = total("nvidia.com/gpumem")
    return Row(
        namespace_of(measured),
        job,
        name_of(measured),
        total("cpu") or 0.0,
        int(total("memory") or 0),
        total("nvidia.com/gpu"),
        None if gpu_memory is None else int(gpu_memory) << 20,
    )


def _show(rows: list[Row], output: str, *, with_namespace: bool) -> None:
    rows = sorted(rows, key=lambda row: (row.namespace, row.job, row.pod))
    if output == "json":
        print_json([asdict(row) for row in rows])
        return
    if not rows:
        click.echo("no pod runs")
        return
    first = 0 if with_namespace else 1
    head = ("NAMESPACE", "JOB", "POD", "CPU", "MEMORY", "GPU", "GPU MEMORY")[first:]
    print_table(head, [_words(row)[first:] for row in rows])


def _words(row: Row) -> tuple[str, ...]:
    return (
        row.namespace,
        row.job or "-",
        row.pod,
        f"{row.cores:.2f}",
        shown_size(row.bytes),
        "-" if row.gpus is None else f"{row.gpus:.2f}",
        "-" if row.gpu_bytes is None else shown_size(row.gpu_bytes),
    )
