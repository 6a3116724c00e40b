"""Tables for people and JSON for programs: the two shapes in which a command shows what it found."""

import json
from collections.abc import Sequence
from typing import Any

import click

OUTPUT = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="For people or for programs."
)


def print_json(found: Any) -> None:
    click.echo(json.dumps(found, indent=2))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """As kubectl prints: columns of words, nothing to strip for whoever pipes it on."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for row in (head, *rows):
        click.echo("   ".join(f"{word:<{width}}" for word, width in zip(row, widths, strict=True)).rstrip())
