"""Building environments from the command line: how far it is, in one line on a terminal, and why it failed."""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import anyio
import click

from fullrank.errors import FullrankError
from fullrank.images.catalogue import ImageFailed, Images, Progress

T = TypeVar("T")


def images_of(home: Path) -> Images:
    return Images(home, environ=os.environ)


def built(what: str, build: Callable[[Progress], Awaitable[T]]) -> T:
    """Runs a build to its end while telling how far it is; a failure is told in the resolver's own words."""
    progress = _Line(what) if sys.stderr.isatty() else _Lines(what)
    try:
        return anyio.run(build, progress.tell)
    except ImageFailed as failure:
        raise FullrankError(f"{what}: {failure}") from failure
    finally:
        progress.end()


class _Line:
    """One line that changes, on a terminal."""

    def __init__(self, what: str) -> None:
        from rich.console import Console

        self._what = what
        self._status = Console(stderr=True, highlight=False).status(what)
        self._status.start()

    async def tell(self, line: str) -> None:
        self._status.update(f"{self._what}: {line}")

    def end(self) -> None:
        self._status.stop()


class _Lines:
    """One line for each step, where nobody watches."""

    def __init__(self, what: str) -> None:
        self._what = what

    async def tell(self, line: str) -> None:
        click.echo(f"· {self._what}: {line}", err=True)

    def end(self) -> None:
        return
