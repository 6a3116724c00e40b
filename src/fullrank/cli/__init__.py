"""The command line. A command is a file, read only when it is called, so that `--help` answers at once."""

import sys
from importlib import import_module

import click

from fullrank import __version__
from fullrank.errors import FullrankError

COMMANDS = {
    "run": "Submit jobs and watch them to their end.",
    "logs": "Show what a job's members wrote.",
    "top": "Show what jobs use: CPU, memory, GPUs.",
    "validate": "Check manifests without a server.",
    "env": "Make and look after Python environments for jobs.",
    "images": "Show what image names mean here, and build ahead.",
    "prune": "Free the disk of what nobody needs any more.",
    "up": "Bring the embedded control plane up.",
    "down": "Stop it, and the pods it runs.",
    "status": "Tell whether it runs, and where.",
    "kubeconfig": "Print the path of its kubeconfig.",
    "open": "Open the Job Center in a browser, logged in.",
    "operator": "Look after jobs on a Kubernetes cluster.",
    "install": "Print what a Kubernetes cluster needs to run jobs.",
}


class Commands(click.Group):
    def list_commands(self, _context: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"fullrank.cli.{name}").command
        return command

    def format_commands(self, _context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="fullrank")
def fullrank() -> None:
    """Run distributed training jobs from the YAML people already have.

    Every rank starts, or none does.
    """


def main() -> None:
    """The entry point. Exit codes: 0 fine, 1 failed or missing, 2 wrong input, 3 the server cannot be reached."""
    try:
        sys.exit(fullrank(standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except click.Abort:
        sys.exit(130)
    except (FullrankError, ExceptionGroup) as error:
        from fullrank.cli.hints import exit_code, expected, explain

        told = expected(error)
        click.echo(explain(told), err=True)
        sys.exit(exit_code(told))
