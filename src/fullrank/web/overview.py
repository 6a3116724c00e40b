"""What there is, for a page that lists it: jobs of all kinds, and the programs with pages of their own."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fullrank.api.ages import age_of
from fullrank.api.meta import Json, name_of, namespace_of
from fullrank.api.scheme import Kind
from fullrank.client.port import Reader
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS
from fullrank.errors import NotFound

MOST_JOBS = 500  # on one page, the newest
PAGE = 500  # objects that are asked for at once


@dataclass(frozen=True, slots=True)
class Row:
    """One object in a list."""

    kind: str
    namespace: str
    name: str
    state: str
    age: str
    created: str
    url: str = ""  # of a page of its own, where it has one


@dataclass(frozen=True, slots=True)
class Overview:
    jobs: list[Row]
    programs: list[Row]
    older: int = 0  # jobs that are not on the page


async def overview(client: Reader, now: datetime) -> Overview:
    jobs = [(kind, job) for kind in JOB_KINDS for job in await _all(client, kind.kind)]
    programs = [(kind, one) for kind in APP_KINDS for one in await _all(client, kind.kind)]
    newest = sorted(jobs, key=lambda one: _created(one[1]), reverse=True)[:MOST_JOBS]
    return Overview(
        jobs=_newest_first(_row(kind.kind, job, kind.state(job), now) for kind, job in newest),
        # By their path behind our own door, whatever somebody may have written into their status.
        programs=_newest_first(
            _row(kind.kind, one, _phase(one), now, kind.url(one)) for kind, one in programs
        ),
        older=len(jobs) - len(newest),
    )


async def _all(client: Reader, kind: Kind) -> list[Json]:
    """Page by page, so that others get a word in however many there are."""
    found: list[Json] = []
    proceed = ""
    while True:
        try:
            page = await client.select(kind, limit=PAGE, proceed=proceed)
        except NotFound:  # a server that does not know the kind
            return found
        found += page.items
        if not (proceed := page.proceed):
            return found


def _row(kind: Kind, obj: Json, state: str, now: datetime, url: str = "") -> Row:
    created = _created(obj)
    return Row(kind.kind, namespace_of(obj), name_of(obj), state, age_of(created, now), created, url)


def _created(obj: Json) -> str:
    return str(obj["metadata"].get("creationTimestamp") or "")


def _phase(program: Json) -> str:
    return str((program.get("status") or {}).get("phase") or "")


def _newest_first(rows: Iterable[Row]) -> list[Row]:
    by_name = sorted(rows, key=lambda row: (row.namespace, row.name))
    return sorted(by_name, key=lambda row: row.created, reverse=True)
