"""`fullrank prune`: frees the disk of environments, files and logs that nobody needs any more."""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import anyio
import click

from fullrank.agent.in_use import folders_in_use
from fullrank.agent.kept_logs import KeptPod
from fullrank.agent.retention import forsaken, last_written, remove_logs
from fullrank.api.scheme import CORE_KINDS, Scheme
from fullrank.cli.building import images_of
from fullrank.cli.options import HOME, settings_from
from fullrank.cli.output import shown_size
from fullrank.cli.shape import OUTPUT, print_json, print_table
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from fullrank.client.port import Reader
from fullrank.clock import SystemClock
from fullrank.dialects.registry import SUBMITTED_KINDS
from fullrank.errors import BadRequest
from fullrank.home import find_running, locked
from fullrank.images.catalogue import Images
from fullrank.images.inventory import environments, is_idle, layouts, size_of
from fullrank.settings import duration

KINDS = tuple(one.kind for one in SUBMITTED_KINDS)


@dataclass(frozen=True, slots=True)
class Item:
    """Something that may go, and how."""

    kind: str  # environment, files, logs
    name: str
    what: str
    size: int
    remove: Callable[[], Awaitable[bool]]


@click.command()
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@click.option("-a", "--all", "everything", is_flag=True, help="Also what is built again when it is needed.")
@click.option("--older-than", metavar="7d", help="Only logs to which nothing was added for so long.")
@HOME
@OUTPUT
def command(
    dry_run: bool, yes: bool, everything: bool, older_than: str | None, home: Path | None, output: str
) -> None:
    """Free the disk of what nobody needs any more.

    Environments that no name (`fullrank env list`) and no entry of the catalogue (`fullrank images list`) leads to;
    with --all also those of entries, which are built again when a job needs them. Files of images that no entry has
    any more. Logs of jobs that are deleted. Nothing that a running pod uses is taken, whether a server is up or not.
    """
    where = settings_from({"home": home}).home
    try:
        age = duration(older_than) if older_than else timedelta()
    except ValueError as error:
        raise BadRequest(f"--older-than: {error}") from error
    if not (dry_run or yes or sys.stdin.isatty()):
        raise BadRequest("this is no terminal to ask on: --dry-run shows what would go, -y takes it")
    found = anyio.run(_found, where, everything, age) if where.exists() else []
    _show(found, output)
    gone = 0
    if found and not dry_run and (yes or click.confirm("Go on?", err=True)):
        gone = anyio.run(_remove, found)
    if output == "text" and found and not dry_run:
        click.echo(f"freed {shown_size(gone)}")


def _show(found: list[Item], output: str) -> None:
    if output == "json":
        print_json([
            {"kind": one.kind, "name": one.name, "what": one.what, "bytes": one.size} for one in found
        ])  # fmt: skip
    elif found:
        print_table(
            ("KIND", "NAME", "WHAT", "SIZE"),
            [(one.kind, one.name, one.what, shown_size(one.size)) for one in found],
        )
        click.echo(f"in all {shown_size(sum(one.size for one in found))}")
    else:
        click.echo("nothing to prune")


async def _remove(found: list[Item]) -> int:
    return sum([one.size for one in found if await one.remove()])


async def _found(home: Path, everything: bool, age: timedelta) -> list[Item]:
    images = images_of(home)
    async with _reader(home) as reader:
        logs = await forsaken(home, reader, KINDS)
    old = SystemClock().now() - age
    return [
        *_environments(home, images, everything),
        *_files(home, images, everything),
        *(_logs(pod) for pod in logs if last_written(pod) <= old),
    ]


@asynccontextmanager
async def _reader(home: Path) -> AsyncIterator[Reader]:
    """The control plane that is up; else its state as it lies there, with nobody coming up meanwhile."""
    if find_running(home) is not None:
        async with HttpClient(load([home / "kubeconfig"])) as client:
            yield client
        return
    from fullrank.controlplane.local import LocalClient
    from fullrank.controlplane.registry import Registry
    from fullrank.controlplane.store import Store

    with locked(home), closing(Store(home / "state.db", inline=True)) as store:
        yield LocalClient(Registry(store, Scheme((*CORE_KINDS, *KINDS)), SystemClock(), lambda: ""))


def _environments(home: Path, images: Images, everything: bool) -> list[Item]:
    images.environments.sweep()
    return [
        Item("environment", one.key, one.title, size_of(one.path), _discarding(home, images, one.key))
        for one in environments(images)
        if not one.names
        and (everything or not one.entries)
        and is_idle(one.path, folders_in_use(home), SystemClock().now())
    ]


def _discarding(home: Path, images: Images, key: str) -> Callable[[], Awaitable[bool]]:
    def may_go(folder: Path) -> bool:
        """Asked once more when nobody can be building it: meanwhile a pod may have begun, or a name been given."""
        named = any(one.path == folder and one.names for one in environments(images))
        return not named and is_idle(folder, folders_in_use(home), SystemClock().now())

    async def discard() -> bool:
        return await images.environments.discard(key, may_go)

    return discard


def _files(home: Path, images: Images, everything: bool) -> list[Item]:
    entries = () if everything else images.entries()
    described = {images.layout_name(entry) for entry in entries if entry.files}

    def item(folder: Path) -> Item:
        async def remove() -> bool:
            if not is_idle(folder, folders_in_use(home), SystemClock().now()):
                return False
            await anyio.to_thread.run_sync(rmtree, folder)
            return True

        what = ", ".join(sorted(str(Path("/", path.relative_to(folder))) for path in folder.rglob("*.*"))[:2])
        return Item("files", folder.name, what, size_of(folder), remove)

    used, now = folders_in_use(home), SystemClock().now()
    return [
        item(folder)
        for folder in layouts(images)
        if folder.name not in described and is_idle(folder, used, now)
    ]


def _logs(pod: KeptPod) -> Item:
    async def remove() -> bool:
        await anyio.to_thread.run_sync(remove_logs, pod)
        return True

    owner = f"{pod.owner_kind} {pod.owner_name}, deleted" if pod.owner_name else "deleted"
    return Item("logs", f"{pod.namespace}/{pod.name}", owner, size_of(pod.folder), remove)
