"""`fullrank logs`: what a job's members wrote, merged; in a home also what is kept of those that are gone."""

import os
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio
import click
from rich.console import Console

from fullrank.agent.kept_logs import KeptPod, KeptRun, attempts_of, pods_of_job, pods_of_last_job
from fullrank.agent.logs import PodLogReader, attempt_number
from fullrank.api.meta import Json, controller_of, name_of, uid_of
from fullrank.api.scheme import POD
from fullrank.cli.follow import Follower
from fullrank.cli.jobs import OVER, find_job, member_of, state_of
from fullrank.cli.options import HOME, settings_from, with_cluster
from fullrank.cli.output import Output
from fullrank.client.http import HttpClient, path_of
from fullrank.client.kubeconfig import load, paths_from
from fullrank.client.port import Key
from fullrank.errors import BadRequest, NotFound, Unavailable
from fullrank.home import find_running

ONLY_AT_HOME = (
    "--attempt: a cluster keeps the logs of pods that exist, of each the run that is and the one before it; "
    "use --previous for that one"
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be shown of a job."""

    namespace: str
    name: str
    rank: str = ""
    container: str = ""
    attempt: int | None = None
    previous: bool = False
    follow: bool = False
    tail: int | None = None
    timestamps: bool = False

    def member(self, pod: str) -> str:
        return member_of(self.name, pod)

    def means(self, member: str) -> bool:
        return self.rank in ("", member)


@click.command()
@click.argument("name", metavar="JOB")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job, or the attempt, has ended.")
@click.option("--rank", default="", metavar="MEMBER", help="Only this member, such as worker-1.")
@click.option("-c", "--container", default="", metavar="NAME", help="Only this container of each pod.")
@click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Members' N-th attempt, from 1.")
@click.option("-p", "--previous", is_flag=True, help="The attempt before the latest.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each.")
@click.option("--timestamps", is_flag=True, help="Begin each line with its time.")
@HOME
@with_cluster
def command(home: Path | None, kubeconfig: Path | None, context: str, **wish: object) -> None:
    """Show what the members of JOB wrote, each line with its writer.

    An attempt is one run of a member's program: a restart in place and a pod that replaces another are the next
    attempt alike; in a job that restarts as one the job's attempts are meant. A home keeps the logs of all, also
    when pods or the job are deleted, until `fullrank prune`. On a cluster (--kubeconfig, --context) there is the latest
    attempt of each pod that exists, and with --previous the one before it.
    """
    asked = Wish(**wish)  # type: ignore[arg-type]
    if asked.attempt and asked.previous:
        raise BadRequest("--attempt and --previous: one of them says which attempt is meant")
    where = settings_from({"home": home}).home
    output = Output(Console(highlight=False))
    if context or (kubeconfig and kubeconfig.resolve() != (where / "kubeconfig").resolve()):
        if asked.attempt:
            raise BadRequest(ONLY_AT_HOME)
        files = [kubeconfig] if kubeconfig else paths_from(os.environ)
        anyio.run(_from_cluster, HttpClient(load(files, context)), asked, output)
    else:
        anyio.run(_from_home, where, asked, output)


# -- on a cluster --------------------------------------------------------------------------------------------------


async def _from_cluster(client: HttpClient, wish: Wish, output: Output) -> None:
    async with client:
        key, job = await find_job(client, wish.namespace, wish.name)
        if wish.follow:
            await _follow(client, key, job, wish, output)
            return
        members = {wish.member(name_of(pod)): pod for pod in await _pods_of(client, wish.namespace, job)}
        for member in _chosen(wish, key, members):
            for container in members[member]["spec"]["containers"]:
                if wish.container in ("", container["name"]):
                    await _show_one(client, members[member], container["name"], wish, output)


async def _show_one(client: HttpClient, pod: Json, container: str, wish: Wish, output: Output) -> None:
    member = wish.member(name_of(pod))
    asked = {
        "container": container,
        "previous": "true" if wish.previous else "",
        "tailLines": "" if wish.tail is None else str(wish.tail),
        "timestamps": "true" if wish.timestamps else "",
    }
    params = {name: value for name, value in asked.items() if value}
    try:
        async with client.stream(path_of(POD, wish.namespace, name_of(pod), "log"), params) as lines:
            async for text in lines:
                output.line(member, text.decode(errors="replace").rstrip("\n"))
    except BadRequest as error:
        output.news(member, str(error))


async def _follow(client: HttpClient, key: Key, job: Json, wish: Wish, output: Output) -> None:
    def line(member: str, text: str) -> None:
        if wish.means(member):
            output.line(member, text)

    await Follower(client, key, job, line=line, news=output.news).run()


async def _pods_of(client: HttpClient, namespace: str, job: Json) -> list[Json]:
    listing = await client.select(POD, namespace)
    return [pod for pod in listing.items if (controller_of(pod) or {}).get("uid") == uid_of(job)]


# -- in a home -----------------------------------------------------------------------------------------------------


async def _from_home(home: Path, wish: Wish, output: Output) -> None:
    if find_running(home) is None:
        if wish.follow and not wish.attempt:
            raise Unavailable(f"no control plane is up in {home}")
        await _show_kept(home, wish, pods_of_last_job(home, wish.namespace, wish.name), output)
        return
    async with HttpClient(load([home / "kubeconfig"])) as client:
        try:
            key, job = await find_job(client, wish.namespace, wish.name)
        except NotFound:
            await _show_kept(home, wish, pods_of_last_job(home, wish.namespace, wish.name), output)
            return
        if wish.follow and not wish.attempt and state_of(job) not in OVER:
            await _follow(client, key, job, wish, output)
            return
        pods = await _pods_of(client, wish.namespace, job)
    kept = pods_of_job(home, wish.namespace, key.kind.kind, wish.name)
    mine = [pod for pod in kept if pod.owner_uid == uid_of(job)]
    await _show_kept(home, wish, mine, output, pods)


async def _show_kept(
    home: Path, wish: Wish, kept: list[KeptPod], output: Output, pods: Iterable[Json] = ()
) -> None:
    """`pods` are those that exist, to tell of the ones that wrote nothing yet why."""
    waiting = {name_of(pod): pod for pod in pods}
    names = {pod.name for pod in kept if pod.runs}
    if not names and not waiting:
        raise NotFound(
            f'no job "{wish.name}" in namespace "{wish.namespace}", and no logs of one are kept in {home}'
        )
    known = {wish.member(name): name for name in (*names, *waiting)}
    chosen = {member: known[member] for member in _chosen(wish, f'job "{wish.name}"', known)}
    runs = {
        member: found
        for member, name in chosen.items()
        if (found := [one for one in _runs(wish, kept, name) if wish.container in ("", one.container)])
    }
    if wish.attempt and not runs:
        had = (f"{member} had {max(attempts_of(kept, name), default=0)}" for member, name in chosen.items())
        raise NotFound(f'job "{wish.name}" has no attempt {wish.attempt}: {", ".join(had)}')
    for member, name in chosen.items():
        if member not in runs and (pod := waiting.get(name)):
            output.news(member, _why_nothing(pod, wish))
    await _print(PodLogReader(home), runs, wish, output)


def _runs(wish: Wish, kept: list[KeptPod], name: str) -> list[KeptRun]:
    attempts = attempts_of(kept, name)
    if wish.attempt:
        return attempts.get(wish.attempt, [])
    if wish.previous:
        earlier = sorted(attempts)[:-1]
        return attempts[earlier[-1]] if earlier else []
    mine = [pod for pod in kept if pod.name == name and pod.runs]
    return mine[-1].latest(wish.container) if mine else []


def _why_nothing(pod: Json, wish: Wish) -> str:
    container = wish.container or pod["spec"]["containers"][0]["name"]
    try:
        attempt_number(pod, container, previous=wish.previous)
    except BadRequest as error:
        return str(error)
    return f'container "{container}" in pod "{name_of(pod)}" has written nothing that is kept'


async def _print(reader: PodLogReader, runs: dict[str, list[KeptRun]], wish: Wish, output: Output) -> None:
    async def show(member: str, run: KeptRun) -> None:
        pieces = reader.read_attempt(
            run.file, run.attempt, follow=wish.follow, tail_lines=wish.tail, timestamps=wish.timestamps
        )
        await _lines(pieces, lambda text: output.line(member, text))

    async with anyio.create_task_group() as tasks:
        for member, mine in runs.items():
            for run in mine:
                if wish.follow:
                    tasks.start_soon(show, member, run)
                else:
                    await show(member, run)


async def _lines(pieces: AsyncIterator[bytes], say: Callable[[str], None]) -> None:
    rest = b""
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            say(line.decode(errors="replace"))
    if rest:
        say(rest.decode(errors="replace"))


def _chosen(wish: Wish, what: object, members: Iterable[str]) -> list[str]:
    known = sorted(members)
    if wish.rank and wish.rank not in known:
        raise NotFound(f'{what} has no member "{wish.rank}"; there are: {", ".join(known) or "none yet"}')
    return [member for member in known if wish.means(member)]
