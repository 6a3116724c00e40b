"""`fullrank logs`: what a job's members wrote, merged."""

from pathlib import Path

import anyio
import click
from rich.console import Console

from fullrank.api.meta import controller_of, name_of, uid_of
from fullrank.api.scheme import POD
from fullrank.cli.follow import Follower
from fullrank.cli.jobs import find_job
from fullrank.cli.options import HOME, settings_from
from fullrank.cli.output import Output
from fullrank.client.http import HttpClient, path_of
from fullrank.client.kubeconfig import load
from fullrank.errors import BadRequest, NotFound, Unavailable
from fullrank.home import find_running


@click.command()
@click.argument("name", metavar="JOB")
@click.option("-n", "--namespace", default="default", show_default=True)
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--rank", metavar="MEMBER", help="Only this member, such as worker-1.")
@HOME
def command(name: str, namespace: str, follow: bool, rank: str | None, home: Path | None) -> None:
    """Show what the members of JOB wrote, each line with its writer."""
    where = settings_from({"home": home}).home
    if find_running(where) is None:
        raise Unavailable(f"no control plane is up in {where}")
    anyio.run(_logs, where, namespace, name, follow, rank)


async def _logs(home: Path, namespace: str, name: str, follow: bool, rank: str | None) -> None:
    output = Output(Console(highlight=False))

    def line(who: str, what: str) -> None:
        if rank in (None, who):
            output.line(who, what)

    async with HttpClient(load([home / "kubeconfig"])) as client:
        key, job = await find_job(client, namespace, name)
        if follow:
            await Follower(client, key, job, line=line, news=output.news).run()
            return
        listing = await client.select(POD, namespace)
        mine = [pod for pod in listing.items if (controller_of(pod) or {}).get("uid") == uid_of(job)]
        members = {name_of(pod).removeprefix(f"{name}-"): pod for pod in mine}
        if rank and rank not in members:
            raise NotFound(
                f'{key} has no member "{rank}"; there are: {", ".join(sorted(members)) or "none yet"}'
            )
        for who, pod in sorted(members.items()):
            for container in pod["spec"]["containers"]:
                path = path_of(POD, namespace, name_of(pod), "log")
                try:
                    async with client.stream(path, {"container": container["name"]}) as lines:
                        async for text in lines:
                            line(who, text.decode(errors="replace").rstrip("\n"))
                except BadRequest as error:
                    output.news(who, str(error))
