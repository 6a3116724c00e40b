"""`fullrank run`: submit, stream every rank, end with a table and the job's own exit code."""

import signal
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import click
from rich.console import Console

from fullrank.api.annotations import ENVIRONMENT
from fullrank.api.meta import Json, name_of, uid_of
from fullrank.cli.building import images_of
from fullrank.cli.follow import Follower
from fullrank.cli.jobs import OVER, STOPPED, member_of, state_of, stop
from fullrank.cli.manifests import Manifest, read_manifests
from fullrank.cli.options import settings_from, with_settings
from fullrank.cli.output import Output, first_failure
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from fullrank.client.port import Key
from fullrank.daemon import embedded_home
from fullrank.errors import AlreadyExists, BadRequest, Conflict, NotFound
from fullrank.home import find_running
from fullrank.images.catalogue import ImageFailed
from fullrank.settings import Settings

LAST_LINES = 10
INTERRUPTED = 130  # as shells say it


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("-n", "--namespace", default="default", help="For objects that name none.  [default: default]")
@click.option("--detach", is_flag=True, help="Submit and return; needs a control plane that is up.")
@click.option("--runtime-env", metavar="NAME", help="Run the jobs in this environment (`fullrank env`).")
@click.option("--timeout", type=float, metavar="SECONDS", help="Give up waiting after this long.")
@with_settings
@click.pass_context
def command(
    context: click.Context,
    /,
    files: tuple[str, ...],
    namespace: str,
    detach: bool,
    runtime_env: str | None,
    timeout: float | None,
    **flags: Any,
) -> None:
    """Submit the jobs in FILE… and watch them to their end.

    Uses the control plane that is up, or brings one up for as long as it is needed. A finished job of the same name
    is replaced. Ctrl-C suspends the jobs; a second one leaves at once. The exit code is 0 if every job succeeded.
    """
    manifests = read_manifests(files, namespace)
    settings = settings_from(flags)
    if runtime_env:
        _choose_environment(manifests, runtime_env, settings)
    console = Console(highlight=False)
    context.exit(anyio.run(_run, settings, manifests, console, detach, timeout))


def _choose_environment(manifests: list[Manifest], name: str, settings: Settings) -> None:
    try:
        images_of(settings.home).named(name)
    except ImageFailed as failure:
        raise BadRequest(f"--runtime-env: {failure}") from failure
    for one in manifests:
        if one.is_job:
            metadata: Json = one.obj["metadata"]
            metadata["annotations"] = {**(metadata.get("annotations") or {}), ENVIRONMENT: name}


async def _run(
    settings: Settings, manifests: list[Manifest], console: Console, detach: bool, timeout: float | None
) -> int:
    output = Output(console)
    async with _home(settings, detach) as client:
        jobs = [(one, await _submit(client, one, output)) for one in manifests]
        if detach:
            return 0
        with anyio.move_on_after(timeout):
            return await _watch(client, [(one, job) for one, job in jobs if one.is_job], output)
    output.trouble(f"error: not finished after {timeout} s")
    return 1


@asynccontextmanager
async def _home(settings: Settings, detach: bool) -> AsyncIterator[HttpClient]:
    """A way in to the control plane that is up, or to one that is up as long as this block lasts."""
    async with AsyncExitStack() as stack:
        if find_running(settings.home) is None:
            if detach:
                hint = "start one with `fullrank up --detach`"
                raise Conflict(f"--detach needs a control plane that stays up: {hint}")
            await stack.enter_async_context(embedded_home(settings))
        yield await stack.enter_async_context(HttpClient(load([settings.home / "kubeconfig"])))


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
    if state not in (*OVER, *STOPPED):
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
    watches = [
        _Watched(client, Key.of(one.kind, job), job, output, several=len(jobs) > 1) for one, job in jobs
    ]
    async with anyio.create_task_group() as interrupts:
        interrupts.start_soon(_obey, client, watches, output, interrupts.cancel_scope)
        async with anyio.create_task_group() as tasks:
            for watched in watches:
                tasks.start_soon(watched.follower.run)
        for watched in watches:
            watched.sum_up()
        interrupts.cancel_scope.cancel()
    stopped = any(watched.follower.ends_when_suspended for watched in watches)
    return INTERRUPTED if stopped else max((watched.code for watched in watches), default=0)


async def _obey(
    client: HttpClient, watches: list["_Watched"], output: Output, everything: anyio.CancelScope
) -> None:
    """Ctrl-C once asks the jobs to stop and waits for them; twice leaves at once."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        await anext(signals)
        output.news("", "stopping; once more to leave at once")
        for watched in watches:
            watched.follower.ends_when_suspended = True
            await stop(client, watched.key)
        await anext(signals)
        everything.cancel()


class _Watched:
    """One job, what was last heard of its members, and how it ended."""

    def __init__(self, client: HttpClient, key: Key, job: Json, output: Output, *, several: bool) -> None:
        self.key = key
        self._output = output
        self._title = f"{name_of(job)}/" if several else ""
        self._tails: dict[str, deque[str]] = {}
        self.follower = Follower(client, key, job, line=self._line, news=self._news)

    def _line(self, who: str, what: str) -> None:
        self._tails.setdefault(who, deque(maxlen=LAST_LINES)).append(what)
        self._output.line(f"{self._title}{who}", what)

    def _news(self, who: str, what: str) -> None:
        self._output.news(f"{self._title}{who}", what)

    @property
    def code(self) -> int:
        return 0 if state_of(self.follower.job() or {}) == "Succeeded" else 1

    def sum_up(self) -> None:
        self._output.summary(str(self.key), self.follower.job() or {}, self.follower.pods())
        if self.code and not self.follower.ends_when_suspended:
            self._tell_failure()

    def _tell_failure(self) -> None:
        conditions: list[Json] = ((self.follower.job() or {}).get("status") or {}).get("conditions") or []
        why = conditions[-1].get("message", "") if conditions else "it was deleted"
        self._output.trouble(f"error: {self.key} did not succeed: {why}")
        if found := first_failure(self.follower.pods()):
            pod, code = found
            who = member_of(self.key.name, name_of(pod))
            self._output.trouble(f"  {who} failed first, with exit code {code}; its last lines:")
            for text in self._tails.get(who, ()):
                self._output.trouble(f"    {text}")
