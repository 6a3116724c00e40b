"""What a terminal shows: members' lines with their names, news in between, a table at the end."""

from collections.abc import Sequence
from datetime import timedelta

import click
from rich.console import Console
from rich.table import Table

from fullrank.api.meta import Json, moment_of, name_of
from fullrank.cli.jobs import state_of

COLOURS = ("cyan", "magenta", "green", "yellow", "blue", "bright_red")


class Output:
    """Lines of several writers, told apart by name and, on a terminal, by colour."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {}
        self._width = 0

    def line(self, who: str, what: str) -> None:
        """A member's line, to the letter: tabs and all."""
        colour = self._colours.setdefault(who, COLOURS[len(self._colours) % len(COLOURS)])
        self._width = max(self._width, len(who))
        click.echo(click.style(f"{who:<{self._width}} │ ", fg=colour) + what)

    def news(self, who: str, what: str) -> None:
        about = f"{who}: " if who else ""
        click.echo(click.style(f"· {about}{what}", dim=True))

    def trouble(self, what: str) -> None:
        click.echo(click.style(what, fg="red"), err=True)

    def summary(self, title: str, job: Json, pods: Sequence[Json]) -> None:
        table = Table(
            "MEMBER", "STATE", "EXIT", "RESTARTS", "TIME", title=f"{title}: {state_of(job) or 'gone'}"
        )
        for pod in sorted(pods, key=name_of):
            table.add_row(*_row(pod))
        self._console.print(table)


def _row(pod: Json) -> tuple[str, str, str, str, str]:
    status: Json = pod.get("status") or {}
    containers: list[Json] = status.get("containerStatuses") or []
    ends = [end for one in containers if (end := (one.get("state") or {}).get("terminated"))]
    restarts = sum(one.get("restartCount", 0) for one in containers)
    return (
        name_of(pod),
        str(status.get("phase", "Unknown")),
        ", ".join(str(end.get("exitCode", "?")) for end in ends) or "-",
        str(restarts),
        _time(ends),
    )


def _time(ends: list[Json]) -> str:
    spans = [
        moment_of(end["finishedAt"]) - moment_of(end["startedAt"])
        for end in ends
        if end.get("finishedAt") and end.get("startedAt")
    ]
    return f"{max(spans, default=timedelta()).total_seconds():.0f}s" if spans else "-"


def shown_size(count: int) -> str:
    """Bytes as people read them: two or three digits and a unit."""
    size, units = float(count), iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    for larger in units:
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{size:.1f} {unit}" if size < 10 and unit != "B" else f"{size:.0f} {unit}"


def first_failure(pods: Sequence[Json]) -> tuple[Json, int] | None:
    """The pod whose container failed first, and its exit code; those that were told to stop did not fail."""
    failures = [
        (str(end.get("finishedAt", "")), name_of(pod), pod, int(end.get("exitCode", 0)))
        for pod in pods
        if (pod.get("status") or {}).get("reason") != "Stopped"
        for one in (pod.get("status") or {}).get("containerStatuses") or ()
        for end in (
            (one.get("state") or {}).get("terminated"),
            (one.get("lastState") or {}).get("terminated"),
        )
        if end and end.get("exitCode")
    ]
    if not failures:
        return None
    _, _, pod, code = min(failures, key=lambda one: one[:2])
    return pod, code
