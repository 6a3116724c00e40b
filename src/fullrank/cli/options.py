"""Options that several commands share, and what they mean."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fullrank.settings import Settings, read_settings

F = TypeVar("F", bound=Callable[..., Any])

HOME = click.option(
    "--home",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where everything is kept.  [default: $FULLRANK_HOME, else ~/.local/state/fullrank]",
)
CLUSTER_OPTIONS = (
    click.option(
        "--kubeconfig",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A cluster instead of the home: how to reach it.",
    ),
    click.option("--context", default="", help="Which of the kubeconfig's contexts."),
)
SETTINGS = (
    HOME,
    click.option("--listen", metavar="ADDR", help="The address to listen on.  [default: 127.0.0.1]"),
    click.option("--port", metavar="N", help="The API's port; 0 is any free one.  [default: 7443]"),
    click.option("--ui-port", metavar="N", help="The Job Center's port; 0 is any free one.  [default: 7480]"),
    click.option(
        "--cpu-overcommit", metavar="X", help="How many times over cores may be asked for.  [default: 10]"
    ),
    click.option(
        "--gpus", metavar="auto|none|fake:N", help="GPUs: found, hidden or pretended.  [default: auto]"
    ),
    click.option(
        "--images", metavar="lenient|strict", help="What an unknown image means.  [default: lenient]"
    ),
    click.option(
        "--runtime",
        metavar="auto|process|podman|docker",
        help="What runs pods; auto means process.  [default: auto]",
    ),
    click.option(
        "--log-retention", metavar="30d|forever", help="How long logs outlive a deleted job.  [default: 30d]"
    ),
)


def with_cluster(command: F) -> F:
    """Adds the options that name a cluster to speak to, as kubectl's do."""
    for option in reversed(CLUSTER_OPTIONS):
        command = option(command)
    return command


def with_settings(command: F) -> F:
    """Adds the options that say how an embedded home is to be."""
    for option in reversed(SETTINGS):
        command = option(command)
    return command


def settings_from(flags: dict[str, Any]) -> Settings:
    return read_settings(flags, os.environ)
