"""`fullrank run`: submit, stream every rank, end with a table and the job's own exit code."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import click
from rich.console import Console

from fullrank.api.meta import Json, name_of, uid_of
from fullrank.cli.follow import Follower
from fullrank.cli.jobs import state_of
from fullrank.cli.manifests import Manifest, read_manifests
from fullrank.cli.options import settings_from, with_settings
from fullrank.cli.output import Output, first_failure
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from fullrank.client.port import Key
from fullrank.daemon import embedded_home
from fullrank.errors import AlreadyExists, Conflict, NotFound
from fullrank.home import find_running
from fullrank.settings import Settings

LAST_LINES = 10


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("-n", "--namespace", default="default", help="For objects that name none.  [default: default]")
@click.option("--detach", is_flag=True, help="Submit and return; needs a control plane that is up.")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up waiting after this long.")
@with_settings
@click.pass_context
def command(
    context: click.Context,
    /,
    files: tuple[str, ...],
    namespace: str,
    detach: bool,
    timeout: float | None,
    **flags: Any,
) -> None:
    """Submit the jobs in FILE… and watch them to their end.

    Uses the control plane that is up, or brings one up for as long as it is needed. A finished job of the same name
    is replaced. The exit code is 0 if every job succeeded.
    """
    manifests = read_manifests(files, namespace)
    settings = settings_from(flags)
    console = Console(highlight=False)
    context.exit(anyio.run(_run, settings, manifests, console, detach, timeout))


async def _run(
    settings: Settings, manifests: list[Manifest], console: Console, detach: bool, timeout: float | None
) -> int:
    async with _home(settings, detach) as client:
        output = Output(console)
        jobs = [(one, await _submit(client, one, output)) for one in manifests]
        if detach:
            return 0
        with anyio.move_on_after(timeout) as waited:
            return await _watch(client, [(one, job) for one, job in jobs if one.is_job], output)
    if waited.cancelled_caught:
        output.trouble(f"error: not finished after {timeout:g} s")
    return 1


@asynccontextmanager
async def _home(settings: Settings, detach: bool) -> AsyncIterator[HttpClient]:
    if find_running(settings.home) is None:
        if detach:
            raise Conflict(
                "--detach needs a control plane that stays up: start one with `fullrank up --detach`"
            )
        async with (
            embedded_home(settings),
            HttpClient(load([settings.home / "kubeconfig"])) as client,
        ):
            yield client
    else:
        async with HttpClient(load([settings.home / "kubeconfig"])) as client:
            yield client


async def _submit(client: HttpClient, manifest: Manifest, output: Output) -> Json:
    key = Key.of(manifest.kind, manifest.obj)
    try:
        created = await client.create(manifest.kind, manifest.obj)
    except AlreadyExists:
        if not manifest.is_job:
            return await client.get(key)
        await _make_way(client, key, output)
        created = await client.create(manifest.kind, manifest.obj)
    output.news("", f"{Key.of(manifest.kind, created)} created")
    return created


async def _make_way(client: HttpClient, key: Key, output: Output) -> None:
    """A job that has ended makes room for its successor; one that has not is left alone."""
    old = await client.get(key)
    state = state_of(old)
    if state not in ("Succeeded", "Failed"):
        raise Conflict(f"{key} exists and is {state or 'new'}: watch it with `fullrank logs -f {key.name}`")
    output.news("", f"replacing {key}, which ended before ({state})")
    await client.delete(key, uid=uid_of(old), propagation="Foreground")
    while True:
        try:
            await client.get(key)
        except NotFound:
            return
        await anyio.sleep(0.01)


async def _watch(client: HttpClient, jobs: list[tuple[Manifest, Json]], output: Output) -> int:
    codes: list[int] = []
    async with anyio.create_task_group() as tasks:
        for manifest, job in jobs:
            tasks.start_soon(_watch_one, client, manifest, job, output, codes, len(jobs) > 1)
    return max(codes, default=0)


async def _watch_one(
    client: HttpClient,
    manifest: Manifest,
    job: Json,
    output: Output,
    codes: list[int],
    several: bool,
) -> None:
    title = f"{name_of(job)}/" if several else ""
    tails: dict[str, deque[str]] = {}

    def line(who: str, what: str) -> None:
        tails.setdefault(who, deque(maxlen=LAST_LINES)).append(what)
        output.line(f"{title}{who}", what)

    def news(who: str, what: str) -> None:
        output.news(f"{title}{who}", what)

    key = Key.of(manifest.kind, job)
    follower = Follower(client, key, job, line=line, news=news)
    await follower.run()
    ended = follower.job() or {}
    output.summary(str(key), ended, follower.pods())
    succeeded = state_of(ended) == "Succeeded"
    if not succeeded:
        _tell_failure(output, key, ended, follower.pods(), tails)
    codes.append(0 if succeeded else 1)


def _tell_failure(
    output: Output, key: Key, job: Json, pods: list[Json], tails: dict[str, deque[str]]
) -> None:
    conditions: list[Json] = (job.get("status") or {}).get("conditions") or []
    why = conditions[-1].get("message", "") if conditions else "it was deleted"
    output.trouble(f"error: {key} did not succeed: {why}")
    if found := first_failure(pods):
        pod, code = found
        who = name_of(pod).removeprefix(f"{key.name}-")
        output.trouble(f"  {who} failed first, with exit code {code}; its last lines:")
        for text in tails.get(who, ()):
            output.trouble(f"    {text}")
