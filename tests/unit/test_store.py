"""The store: an answered write is on disk, a watch misses nothing, a failure changes nothing."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from fullrank.controlplane.store import Change, Place, Store
from fullrank.errors import Conflict, Gone, NotFound, Unavailable

pytestmark = pytest.mark.anyio

EVERYTHING = Place("things", "", "")


def a_place(name: str, namespace: str = "default") -> Place:
    return Place("things", namespace, name)


def a_thing(name: str = "a", **content: object) -> dict[str, object]:
    return {"metadata": {"name": name}, **content}


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store(":memory:", inline=True)
    yield store
    store.close()


@asynccontextmanager
async def running(path: Path | str, keep: int = 10_000) -> AsyncIterator[Store]:
    store = Store(path, keep=keep)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        yield store
        tasks.cancel_scope.cancel()
    store.close()


def told(changes: Iterator[Change]) -> list[tuple[str, str, int]]:
    return [(change.type, change.place.name, change.revision) for change in changes]


async def test_a_revision_counts_every_change(store: Store) -> None:
    first = await store.put(a_place("a"), a_thing())
    second = await store.put(a_place("a"), a_thing(size=2))
    await store.remove(a_place("a"), second.obj)
    assert (first.revision, second.revision, store.revision) == (1, 2, 3)
    assert second.obj == {"metadata": {"name": "a", "resourceVersion": "2"}, "size": 2}
    assert store.get(a_place("a")) is None


async def test_a_record_has_its_json_ready(store: Store) -> None:
    record = await store.put(a_place("a"), a_thing(size=2))
    assert record.raw == b'{"metadata":{"name":"a","resourceVersion":"1"},"size":2}'
    assert record.copy() == record.obj
    assert record.copy() is not record.obj


async def test_an_expected_revision_must_be_the_current_one(store: Store) -> None:
    await store.put(a_place("a"), a_thing(), expected=0)
    with pytest.raises(Conflict):
        store.put(a_place("a"), a_thing(), expected=0)
    with pytest.raises(Conflict):
        store.put(a_place("a"), a_thing(), expected=7)
    await store.put(a_place("a"), a_thing(), expected=1)
    with pytest.raises(NotFound):
        store.remove(a_place("b"), a_thing("b"))


async def test_objects_come_in_order_of_namespace_and_name(store: Store) -> None:
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        await store.put(a_place(name, namespace), a_thing(name))
    assert [(place.namespace, place.name) for place, _ in store.select("things")] == [
        ("a", "y"),
        ("a", "z"),
        ("b", "x"),
    ]
    assert [place.name for place, _ in store.select("things", "b")] == ["x"]


async def test_the_past_can_be_listed(store: Store) -> None:
    await store.put(a_place("a"), a_thing(size=1))
    await store.put(a_place("a"), a_thing(size=2))
    await store.put(a_place("b"), a_thing("b"))
    await store.remove(a_place("a"), a_thing())
    sizes = [[record.obj.get("size") for _, record in store.select("things", at=at)] for at in range(5)]
    assert sizes == [[], [1], [2], [2, None], [None]]


async def test_a_staged_write_is_seen_by_the_next_writer_and_by_nobody_else() -> None:
    async with running(":memory:") as store:
        staged = store.put(a_place("a"), a_thing())
        assert store.latest(a_place("a")) is not None
        assert store.get(a_place("a")) is None
        with pytest.raises(Conflict):
            store.put(a_place("a"), a_thing(), expected=0)
        await staged
        assert store.get(a_place("a")) is not None


async def test_writes_staged_together_are_committed_together(tmp_path: Path) -> None:
    commits: list[str] = []
    async with running(tmp_path / "state.db") as store:
        store._database.set_trace_callback(lambda sql: commits.append(sql) if sql == "COMMIT" else None)
        staged = [store.put(a_place(f"a{number}"), a_thing()) for number in range(100)]
        for each in staged:
            await each
    assert len(commits) == 1


async def test_of_many_who_compare_and_set_each_one_counts() -> None:
    async with running(":memory:") as store:
        await store.put(a_place("counter"), a_thing("counter", count=0))

        async def increment() -> None:
            while True:
                seen = store.get(a_place("counter"))
                assert seen is not None
                raised = {**seen.obj, "count": seen.obj["count"] + 1}
                try:
                    await store.put(a_place("counter"), raised, expected=seen.revision)
                except Conflict:
                    await store.settled(a_place("counter"))
                else:
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(increment)
        final = store.get(a_place("counter"))
        assert final is not None
        assert final.obj["count"] == 50


async def test_a_reopened_file_holds_what_was_answered(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with running(path) as store:
        await store.put(a_place("a"), a_thing(size=1))
        await store.put(a_place("b"), a_thing("b"))
        await store.remove(a_place("b"), a_thing("b"))
        before = told(store.changes(EVERYTHING, 0))
    async with running(path) as store:
        assert [(place.name, record.obj["size"]) for place, record in store.select("things")] == [("a", 1)]
        assert told(store.changes(EVERYTHING, 0)) == before
        assert (await store.put(a_place("c"), a_thing("c"))).revision == 4


async def test_a_locked_file_fails_the_writes_and_leaves_the_store_usable(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with running(path) as store:
        store._database.execute("PRAGMA busy_timeout=0")
        await store.put(a_place("a"), a_thing(size=1))
        intruder = sqlite3.connect(path, isolation_level=None)
        intruder.execute("BEGIN IMMEDIATE")
        staged = [store.put(a_place("a"), a_thing(size=2)), store.put(a_place("b"), a_thing("b"))]
        for each in staged:
            with pytest.raises(Unavailable, match="locked"):
                await each
        intruder.close()
        assert store.revision == 1
        seen = store.latest(a_place("a"))
        assert seen is not None
        assert seen.obj["size"] == 1
        assert (await store.put(a_place("b"), a_thing("b"))).revision == 2


async def test_a_full_disk_fails_the_writes_and_leaves_the_store_usable(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with running(path) as store:
        await store.put(a_place("a"), a_thing())
        (pages,) = store._database.execute("PRAGMA page_count").fetchone()
        store._database.execute(f"PRAGMA max_page_count={pages + 1}")
        with pytest.raises(Unavailable, match="full"):
            await store.put(a_place("big"), a_thing("big", filling="x" * 100_000))
        store._database.execute("PRAGMA max_page_count=1000000")
        await store.put(a_place("big"), a_thing("big", filling="x" * 100_000))
        assert [place.name for place, _ in store.select("things")] == ["a", "big"]


async def test_a_closing_store_lets_nobody_wait_for_ever() -> None:
    store = Store(":memory:")
    staged = store.put(a_place("a"), a_thing())
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        tasks.cancel_scope.cancel()
    with pytest.raises(Unavailable, match="closing"):
        await staged
    with pytest.raises(Unavailable, match="closing"):
        store.put(a_place("a"), a_thing())
    store.close()


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("this is not a database, and long enough to be taken for one" * 100)
    with pytest.raises(Unavailable, match=r"state\.db cannot be opened"):
        Store(path)


# --- watching ---


async def test_a_watch_replays_history_and_goes_on_live(store: Store) -> None:
    for number in range(3):
        await store.put(a_place(f"a{number}"), a_thing())
    seen = []
    with store.watch(EVERYTHING, 1) as watch:
        seen += [(await anext(watch)).revision, (await anext(watch)).revision]
        assert watch.ready() is None
        await store.put(a_place("a3"), a_thing())
        seen.append((await anext(watch)).revision)
    assert seen == [2, 3, 4]


async def test_a_watch_misses_nothing_and_repeats_nothing() -> None:
    async with running(":memory:") as store:
        seen: dict[int, list[int]] = {}

        async def follow(number: int) -> None:
            seen[number] = []
            with store.watch(EVERYTHING, 0) as watch:
                async for change in watch:
                    seen[number].append(change.revision)
                    if change.revision == 200:
                        return

        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(follow, number)
            for number in range(200):
                staged = store.put(a_place(f"a{number}"), a_thing())
                if number % 7 == 0:
                    await staged
        assert list(seen.values()) == [list(range(1, 201))] * 20


async def test_a_watch_sees_only_what_it_is_interested_in(store: Store) -> None:
    with store.watch(Place("things", "b", "x"), 0) as watch:
        for kind, namespace, name in (("things", "a", "x"), ("things", "b", "y"), ("others", "b", "x")):
            await store.put(Place(kind, namespace, name), a_thing())
        assert watch.ready() is None
        await store.put(Place("things", "b", "x"), a_thing())
        assert (await anext(watch)).revision == 4


async def test_a_cancelled_wait_loses_nothing(store: Store) -> None:
    with store.watch(EVERYTHING, 0) as watch:
        with anyio.move_on_after(0):
            await anext(watch)
        await store.put(a_place("a"), a_thing())
        assert (await anext(watch)).revision == 1


async def test_a_watch_tells_up_to_where_it_has_told_everything(store: Store) -> None:
    with store.watch(EVERYTHING, 0) as watch:
        await store.put(a_place("a"), a_thing())
        assert watch.revision == 0
        await anext(watch)
        assert watch.ready() is None
        await store.put(Place("others", "", "b"), a_thing())
        assert watch.revision == 2


async def test_a_change_knows_what_was_before(store: Store) -> None:
    await store.put(a_place("a"), a_thing(size=1))
    await store.put(a_place("a"), a_thing(size=2))
    await store.remove(a_place("a"), a_thing(size=3))
    pairs = [
        (change.previous and change.previous.obj["size"], change.record.obj["size"])
        for change in store.changes(EVERYTHING, 0)
    ]
    assert pairs == [(None, 1), (1, 2), (2, 3)]


async def test_compacted_history_is_gone_and_the_objects_stay(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    async with running(path, keep=5) as store:
        await store.put(a_place("old"), a_thing("old"))
        for number in range(20):
            await store.put(a_place("a"), a_thing(size=number))
        await store.remove(a_place("a"), a_thing())
        with pytest.raises(Gone, match="too old resource version: 3"):
            store.watch(EVERYTHING, 3)
        reach = store.compacted
    async with running(path, keep=5) as store:
        assert (store.revision, store.compacted) == (22, reach)
        assert [place.name for place, _ in store.select("things")] == ["old"]
        assert told(store.changes(EVERYTHING, 20)) == [("MODIFIED", "a", 21), ("DELETED", "a", 22)]
        rows = store._database.execute("SELECT count(*) FROM changes").fetchone()
        assert rows[0] <= 9


async def test_a_slow_watcher_is_cut_off_and_an_idle_one_is_not() -> None:
    store = Store(":memory:", keep=5, inline=True)
    with store.watch(EVERYTHING, 0) as slow, store.watch(Place("others", "", ""), 0) as idle:
        assert idle.ready() is None
        for number in range(20):
            await store.put(a_place("a"), a_thing(size=number))
        with pytest.raises(Gone):
            await anext(slow)
        await store.put(Place("others", "", "b"), a_thing())
        assert (await anext(idle)).revision == 21
    store.close()


async def test_a_revision_from_the_future_is_refused(store: Store) -> None:
    with pytest.raises(Gone, match="Too large resource version: 9, current: 0"):
        store.watch(EVERYTHING, 9)
