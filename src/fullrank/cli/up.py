"""`fullrank up`: the embedded control plane, here or in the background."""

import logging
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import anyio
import click

from fullrank.cli.job_center import job_center
from fullrank.cli.options import settings_from, with_settings
from fullrank.errors import Conflict, Unavailable
from fullrank.home import Running, find_running
from fullrank.settings import Settings

PATIENCE = 30.0  # seconds a control plane in the background has to come up


@click.command()
@click.option("--detach", is_flag=True, help="Return once it answers; it goes on in the background.")
@click.option("-v", "--verbose", is_flag=True, help="Log every step.")
@with_settings
def command(detach: bool, verbose: bool, **flags: Any) -> None:
    """Bring the embedded control plane up.

    Ctrl-C (or `fullrank down`) stops it and its pods. Killed in any other way it leaves them running, and the next
    `fullrank up` goes on with them.
    """
    settings = settings_from(flags)
    if detach:
        _greet(settings, _started_in_background(settings))
        return
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    anyio.run(_serve, settings)


async def _serve(settings: Settings) -> None:
    from fullrank.daemon import embedded_home  # half a second that `up --detach` need not spend twice

    async with embedded_home(settings) as home:
        _greet(settings, home.running)
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            async for number in signals:
                home.stop_pods = number == signal.SIGINT
                return


def _greet(settings: Settings, running: Running) -> None:
    click.echo(f"fullrank is up at {running.api} (home {settings.home})")
    click.echo(f"  export KUBECONFIG={settings.home / 'kubeconfig'}")
    click.echo("  kubectl get nodes")
    click.echo(f"Job Center: {job_center(settings.home, running)}")


def _started_in_background(settings: Settings) -> Running:
    if (found := find_running(settings.home)) is not None:
        raise Conflict(f"the home {settings.home} is in use by the control plane with pid {found.pid}")
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = settings.home / "server.log"
    words = [sys.executable, "-m", "fullrank", "up", *_flags(settings)]
    with log.open("ab") as sink:
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
        )
    deadline = monotonic() + PATIENCE
    while monotonic() < deadline:
        if (found := find_running(settings.home)) is not None:
            return found
        if process.poll() is not None:
            break
        sleep(0.02)
    raise Unavailable(f"the control plane did not come up; the end of {log}:\n{_end_of(log)}")


def _flags(settings: Settings) -> list[str]:
    return [
        f"--home={settings.home}",
        f"--listen={settings.listen}",
        f"--port={settings.port}",
        f"--ui-port={settings.ui_port}",
        f"--cpu-overcommit={settings.cpu_overcommit}",
        f"--gpus={settings.gpus}",
        f"--images={settings.images}",
        f"--runtime={settings.runtime}",
        f"--log-retention={settings.log_retention}",
    ]


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:])
