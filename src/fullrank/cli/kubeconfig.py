"""`fullrank kubeconfig`: what to put into $KUBECONFIG."""

from pathlib import Path

import click

from fullrank.cli.options import HOME, settings_from
from fullrank.errors import NotFound


@click.command()
@HOME
def command(home: Path | None) -> None:
    """Print the path of the kubeconfig.

    export KUBECONFIG=$(fullrank kubeconfig)
    """
    file = settings_from({"home": home}).home / "kubeconfig"
    if not file.exists():
        raise NotFound(f"{file} does not exist yet: `fullrank up` makes it")
    click.echo(file)
