"""Objects and their history in one SQLite file: what was answered is on disk, what is read comes from memory.

History is the truth: one row per change, its number is the revision, and an object is what its last row says. Writes
are *staged* on the event loop (so that the next writer sees them), then a flusher commits all that is staged in one
transaction; only after that are they *visible* to readers and watchers, and only then does the writer get its answer.
A commit that fails fails everything staged, and memory is as it was before.

A watch is a place in that history, not a queue: it holds a number, reads on from there and never keeps anybody waiting.
Nothing can be missed or seen twice, and a watcher so slow that its place was compacted away is told that it is Gone.
"""

import sqlite3
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import anyio
import anyio.to_thread
import msgspec

from fullrank.api.meta import Json
from fullrank.errors import Conflict, Gone, NotFound, Unavailable

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

CLOSING = "the store is closing"
HISTORY_LASTS = 300.0  # seconds, as with a cluster: who comes back later lists anew
AGES = 5  # steps in which it grows old
ROWS_AT_ONCE = 500
_DELETE = "DELETE FROM changes WHERE revision IN (SELECT value FROM json_each(?))"
_INSERT, _VALUES = "INSERT INTO changes VALUES ", "(?,?,?,?,?,?)"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS changes (
    revision INTEGER PRIMARY KEY, kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    type TEXT NOT NULL, body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS compaction (revision INTEGER NOT NULL);
INSERT INTO compaction SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM compaction);
"""


class Place(NamedTuple):
    """Where an object is kept: its kind as `Kind.group_resource`, its namespace (or none), its name."""

    kind: str
    namespace: str
    name: str


class Record:
    """One version of one object, as JSON text and (decoded when first asked for) as an object nobody may change."""

    __slots__ = ("_obj", "raw", "revision")

    def __init__(self, revision: int, raw: bytes, obj: Json | None = None) -> None:
        self.revision = revision
        self.raw = raw
        self._obj = obj

    @property
    def obj(self) -> Json:
        if self._obj is None:
            self._obj = self.copy()
        return self._obj

    def fold(self) -> None:
        """Keeps the text alone, a fraction of the size: history is long and seldom read."""
        self._obj = None

    def copy(self) -> Json:
        """The object afresh, for somebody who may want to change it."""
        return msgspec.json.decode(self.raw, type=Json)


@dataclass(frozen=True, slots=True)
class Change:
    """One step of history: what an object was before, and what it is (or, when deleted, was at the end)."""

    place: Place
    type: ChangeType
    record: Record
    previous: Record | None

    @property
    def revision(self) -> int:
        return self.record.revision


@dataclass(frozen=True, slots=True)
class _Compaction:
    """History up to `revision` goes, and with it the rows that only history needed."""

    revision: int
    changes: int
    rows: list[int]


@dataclass(slots=True)
class _Batch:
    """Changes that are committed, or fail, together."""

    changes: list[Change] = field(default_factory=list)
    done: anyio.Event = field(default_factory=anyio.Event)
    failure: str = ""


class Staged:
    """A write that the next writer sees already; awaited, it is on disk (or Unavailable)."""

    __slots__ = ("_batch", "change")

    def __init__(self, change: Change, batch: _Batch) -> None:
        self.change = change
        self._batch = batch

    def __await__(self) -> Generator[Any, Any, Record]:
        return self._committed().__await__()

    async def _committed(self) -> Record:
        if not self._batch.done.is_set():
            await self._batch.done.wait()
        if self._batch.failure:
            place = self.change.place
            raise Unavailable(f'{place.kind} "{place.name}" was not written: {self._batch.failure}')
        return self.change.record


class Watch:
    """An interest and a place in history; iterating yields each change after it, as it becomes visible."""

    def __init__(self, store: "Store", interest: Place, since: int) -> None:
        self._store = store
        self._interest = interest
        self._since = since
        self._idle = False
        self._news = anyio.Event()

    @property
    def revision(self) -> int:
        """Everything up to here has been yielded: what a bookmark may say."""
        return self._store.revision if self._idle else self._since

    def __enter__(self) -> Self:
        self._store.enlist(self._interest, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._store.dismiss(self._interest, self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        """The next change, however long that takes; may be cancelled and asked again without loss."""
        while (change := self.ready()) is None:
            await self._news.wait()
        return change

    def ready(self) -> Change | None:
        """The next change if it is there already; Gone if history no longer reaches back that far."""
        if self._idle:
            return None
        for change in self._store.changes(self._interest, self._since):
            self._since = change.revision
            return change
        self._idle, self._news = True, anyio.Event()
        return None

    def wake(self, before: int) -> None:
        """Something of interest came after revision `before`."""
        if self._idle:
            self._idle, self._since = False, before
            self._news.set()


class Store:
    """get, select, changes, watch read what is committed; latest, put, remove write; `run` commits."""

    def __init__(self, path: Path | str, *, keep: int = 10_000, inline: bool = False) -> None:
        """`keep`: how many changes stay watchable. `inline`: each write commits at once, with no thread, no `run`."""
        self._keep = keep
        self._inline = inline
        self._visible: dict[str, dict[str, dict[str, Record]]] = {}
        self._history: deque[Change] = deque()
        self._by_kind: defaultdict[str, deque[Change]] = defaultdict(deque)
        self._watches: defaultdict[Place, set[Watch]] = defaultdict(set)
        self._staged: dict[Place, Staged] = {}
        self._batch = _Batch()
        self._work = anyio.Event()
        self._closing = False
        self._outdated = 0  # history up to here is old enough to go
        self.compacted = 0
        self.revision = 0
        try:
            self._database = _opened(path)
            self._load()
        except sqlite3.Error as error:
            raise Unavailable(f"the state file {path} cannot be opened: {error}") from error
        self._assigned = self.revision

    def close(self) -> None:
        self._database.close()

    # --- reading: what is committed ---

    def get(self, place: Place) -> Record | None:
        return self._visible.get(place.kind, {}).get(place.namespace, {}).get(place.name)

    def select(self, kind: str, namespace: str = "", *, at: int | None = None) -> list[tuple[Place, Record]]:
        """A kind's objects by namespace and name, now or as they were `at` a revision (Gone if too old)."""
        spaces = self._visible.get(kind, {})
        if at is not None and at != self.revision:
            spaces = self._rewound(kind, at)
        return [
            (Place(kind, space, name), record)
            for space in ((namespace,) if namespace else sorted(spaces))
            for name, record in sorted(spaces.get(space, {}).items())
        ]

    def changes(self, interest: Place, since: int) -> Iterator[Change]:
        """What happened after a revision to a kind (and a namespace, and a name, where those are not empty)."""
        self.check_reach(since)
        history = self._by_kind.get(interest.kind, ())
        # Revisions have no gaps, so no more than this many of the last changes can be news.
        news = min(self.revision - since, len(history))
        start = bisect_right(history, since, lo=len(history) - news, key=_revision_of)
        for position in range(start, len(history)):
            change = history[position]
            if interest.namespace in ("", change.place.namespace) and interest.name in (
                "",
                change.place.name,
            ):
                yield change

    def watch(self, interest: Place, since: int) -> Watch:
        """To be entered with `with`; Gone at once if history does not reach back to `since`."""
        self.check_reach(since)
        return Watch(self, interest, since)

    def check_reach(self, since: int) -> None:
        if since < self.compacted:
            raise Gone(f"too old resource version: {since} ({self.compacted})")
        if since > self.revision:
            raise Gone(f"Too large resource version: {since}, current: {self.revision}")

    def enlist(self, interest: Place, watch: Watch) -> None:
        self._watches[interest].add(watch)

    def dismiss(self, interest: Place, watch: Watch) -> None:
        self._watches[interest].discard(watch)
        if not self._watches[interest]:
            del self._watches[interest]

    # --- writing: what will be committed ---

    def latest(self, place: Place) -> Record | None:
        """What the next writer builds on: the staged object, else the visible one."""
        staged = self._staged.get(place)
        if staged is None:
            return self.get(place)
        return None if staged.change.type == "DELETED" else staged.change.record

    async def settled(self, place: Place) -> None:
        """Returns when what `latest` tells is on disk."""
        if place in self._staged:
            await self._staged[place]

    def put(self, place: Place, obj: Json, *, expected: int | None = None) -> Staged:
        """Writes an object; `expected` is the revision it must have now (0: must not exist), else Conflict."""
        previous = self.latest(place)
        _check_expected(place, previous, expected)
        return self._stage(place, "MODIFIED" if previous else "ADDED", obj, previous)

    def remove(self, place: Place, obj: Json, *, expected: int | None = None) -> Staged:
        """Deletes it; `obj` is the last state of it, which watchers will be shown."""
        previous = self.latest(place)
        _check_expected(place, previous, expected)
        if previous is None:
            raise NotFound(f'{place.kind} "{place.name}" not found')
        return self._stage(place, "DELETED", obj, previous)

    def _stage(self, place: Place, change: ChangeType, obj: Json, previous: Record | None) -> Staged:
        if self._closing:
            raise Unavailable(f'{place.kind} "{place.name}" was not written: {CLOSING}')
        revision = self._assigned + 1
        written = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
        record = Record(revision, msgspec.json.encode(written), written)
        staged = Staged(Change(place, change, record, previous), self._batch)
        self._assigned = revision
        self._staged[place] = staged
        self._batch.changes.append(staged.change)
        if self._inline:
            self._flush_inline()
        else:
            self._work.set()
        return staged

    # --- committing ---

    async def run(self) -> None:
        """Commits whatever is staged, all of it in one transaction, for as long as it is let."""
        one_at_a_time = anyio.CapacityLimiter(1)
        try:
            while True:
                await self._work.wait()
                batch, compaction = self._take_batch(), self._compaction()
                with anyio.CancelScope(shield=True):  # a commit that began is seen to its end
                    failure = await anyio.to_thread.run_sync(
                        self._commit, batch.changes, compaction, limiter=one_at_a_time
                    )
                self._conclude(batch, compaction, failure)
        finally:
            self._closing = True
            self._fail(self._take_batch(), CLOSING)

    async def grow_old(self) -> None:
        """Lets go of history once it is old, for as long as it is let: lists in pages and watches begin anew then."""
        seen: deque[int] = deque(maxlen=AGES + 1)
        while True:
            seen.append(self.revision)
            await anyio.sleep(HISTORY_LASTS / AGES)
            if len(seen) > AGES and seen[0] > self.compacted:
                self._outdated = seen[0]
                self._work.set()

    def _flush_inline(self) -> None:
        batch, compaction = self._take_batch(), self._compaction()
        self._conclude(batch, compaction, self._commit(batch.changes, compaction))

    def _take_batch(self) -> _Batch:
        batch, self._batch, self._work = self._batch, _Batch(), anyio.Event()
        return batch

    def _compaction(self) -> _Compaction | None:
        excess = len(self._history) - self._keep
        if excess <= self._keep // 10:  # rarely and much, rather than always and little
            excess = 0
        if self._outdated > self.compacted:
            excess = max(excess, bisect_right(self._history, self._outdated, key=_revision_of))
        if not excess:
            return None
        leaving = list(islice(self._history, excess))
        superseded = [change.previous.revision for change in leaving if change.previous]
        deleted = [change.revision for change in leaving if change.type == "DELETED"]
        return _Compaction(leaving[-1].revision, excess, superseded + deleted)

    def _commit(self, changes: list[Change], compaction: _Compaction | None) -> str:
        """Touches the file and nothing else; tells why it failed, or nothing."""
        try:
            with self._database:
                self._database.execute("BEGIN IMMEDIATE")
                for several in _several(changes, ROWS_AT_ONCE):
                    # One statement, not one for each row: between statements this thread may have to wait its turn.
                    values = [part for each in several for part in _row(each)]
                    self._database.execute(_INSERT + ",".join([_VALUES] * len(several)), values)
                if compaction:
                    self._database.execute(_DELETE, (msgspec.json.encode(compaction.rows).decode(),))
                    self._database.execute("UPDATE compaction SET revision = ?", (compaction.revision,))
        except sqlite3.Error as error:
            return f"the state file cannot be written: {error}"
        return ""

    def _conclude(self, batch: _Batch, compaction: _Compaction | None, failure: str) -> None:
        if failure:
            # What was staged meanwhile builds on what has just failed, so it fails with it.
            self._fail(batch, failure)
            self._fail(self._take_batch(), failure)
            return
        if compaction:
            self._forget(compaction)
        self._publish(batch.changes)
        batch.done.set()

    def _fail(self, batch: _Batch, failure: str) -> None:
        self._staged.clear()
        self._assigned = self.revision
        batch.failure = failure
        batch.done.set()

    def _publish(self, changes: Iterable[Change]) -> None:
        before = self.revision
        concerned: set[Watch] = set()
        for change in changes:
            self._show(change)
            if (staged := self._staged.get(change.place)) and staged.change is change:
                del self._staged[change.place]
            kind, namespace, name = change.place
            for interest in {(kind, "", ""), (kind, namespace, ""), (kind, "", name), change.place}:
                concerned |= self._watches.get(Place(*interest), set())
        for watch in concerned:
            watch.wake(before)

    # --- memory ---

    def _load(self) -> None:
        (self.compacted,) = self._database.execute("SELECT revision FROM compaction").fetchone()
        rows = self._database.execute(
            "SELECT revision, kind, namespace, name, type, body FROM changes ORDER BY revision"
        )
        for revision, kind, namespace, name, change, body in rows:
            place = Place(kind, namespace, name)
            self._show(Change(place, change, Record(revision, body), self.get(place)))
        # The last change may have been a deletion that has gone with its history: its number is not given again.
        self.revision = max(self.revision, self.compacted)

    def _show(self, change: Change) -> None:
        kind, namespace, name = change.place
        space = self._visible.setdefault(kind, {}).setdefault(namespace, {})
        if change.type == "DELETED":
            del space[name]
            if not space:
                del self._visible[kind][namespace]
        else:
            space[name] = change.record
        if change.previous:
            change.previous.fold()
        if change.revision > self.compacted:
            self._history.append(change)
            self._by_kind[kind].append(change)
        self.revision = change.revision

    def _forget(self, compaction: _Compaction) -> None:
        for _ in range(compaction.changes):
            self._by_kind[self._history.popleft().place.kind].popleft()
        self.compacted = compaction.revision

    def _rewound(self, kind: str, at: int) -> dict[str, dict[str, Record]]:
        self.check_reach(at)
        spaces = {space: dict(records) for space, records in self._visible.get(kind, {}).items()}
        for change in reversed(list(self.changes(Place(kind, "", ""), at))):
            space = spaces.setdefault(change.place.namespace, {})
            if change.previous:
                space[change.place.name] = change.previous
            else:
                space.pop(change.place.name, None)
        return spaces


def _row(change: Change) -> tuple[object, ...]:
    return change.revision, *change.place, change.type, change.record.raw


def _several(changes: list[Change], size: int) -> Iterator[list[Change]]:
    for start in range(0, len(changes), size):
        yield changes[start : start + size]


def _revision_of(change: Change) -> int:
    return change.record.revision


def _check_expected(place: Place, previous: Record | None, expected: int | None) -> None:
    current = previous.revision if previous else 0
    if expected is not None and expected != current:
        raise Conflict(f'{place.kind} "{place.name}" is at revision {current}, not at {expected}')


def _opened(path: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=FULL")
        database.executescript(_SCHEMA)
    except sqlite3.Error:
        database.close()
        raise
    return database
