"""`fullrank down`: stop the embedded control plane and its pods."""

import os
import signal
from pathlib import Path
from time import monotonic, sleep

import click

from fullrank.cli.options import HOME, settings_from
from fullrank.errors import Unavailable
from fullrank.home import find_running, holder_of

PATIENCE = 60.0


@click.command()
@HOME
def command(home: Path | None) -> None:
    """Stop the embedded control plane and the pods it runs.

    Objects and logs stay; jobs that had not ended go on with the next `fullrank up` as their restart policy says.
    """
    where = settings_from({"home": home}).home
    running = find_running(where)
    if running is None:
        click.echo(f"nothing is up in {where}")
        return
    os.kill(running.pid, signal.SIGINT)
    deadline = monotonic() + PATIENCE
    while holder_of(where) == running.pid:
        if monotonic() > deadline:
            raise Unavailable(
                f"the control plane (pid {running.pid}) is still stopping its pods; look again later"
            )
        sleep(0.02)
    click.echo("down")
