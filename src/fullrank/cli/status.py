"""`fullrank status`: whether the embedded home runs, and where."""

import json
from pathlib import Path

import click

from fullrank.cli.job_center import job_center
from fullrank.cli.options import HOME, settings_from
from fullrank.home import Running, find_running


@click.command()
@HOME
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
@click.pass_context
def command(context: click.Context, home: Path | None, output: str) -> None:
    """Tell whether the embedded control plane runs, and where.

    Exit code 0 if it does, 1 if not.
    """
    where = settings_from({"home": home}).home
    running = find_running(where)
    if output == "json":
        click.echo(json.dumps(_fields(where, running), indent=2))
    elif running is None:
        click.echo(f"not running (home {where}); start it with `fullrank up`")
    else:
        click.echo(f"running: {running.api} (pid {running.pid}, version {running.version}, home {where})")
        click.echo(f"Job Center: {job_center(where, running)}")
    context.exit(0 if running else 1)


def _fields(home: Path, running: Running | None) -> dict[str, object]:
    return {
        "pid": running.pid if running else None,
        "version": running.version if running else None,
        "home": str(home),
        "api": running.api if running else None,
        "ui": running.ui if running else None,
        "ready": running is not None,
    }
