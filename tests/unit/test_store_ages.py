"""History grows old, under a clock that jumps: what is minutes old is forgotten, what is there stays."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from trio.testing import MockClock

from fullrank.controlplane.store import Place, Store
from fullrank.errors import Gone

pytestmark = pytest.mark.anyio

THING = Place("things", "default", "a")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, Any]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


async def test_history_older_than_five_minutes_is_let_go() -> None:
    store = Store(":memory:", inline=True)
    store.put(THING, {"metadata": {"name": "a"}, "size": 1})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.grow_old)
        await anyio.sleep(30)
        store.put(THING, {"metadata": {"name": "a"}, "size": 2})
        await anyio.sleep(300)
        assert [change.revision for change in store.changes(Place("things", "", ""), 0)] == [1, 2]
        await anyio.sleep(40)
        store.put(THING, {"metadata": {"name": "a"}, "size": 3})
        with pytest.raises(Gone, match="too old resource version"):
            list(store.changes(Place("things", "", ""), 0))
        assert [change.revision for change in store.changes(Place("things", "", ""), 1)] == [2, 3]
        tasks.cancel_scope.cancel()
    found = store.get(THING)
    assert found is not None
    assert found.obj["size"] == 3
    store.close()


async def test_revisions_never_go_back_though_the_last_change_was_a_deletion_long_ago(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = Store(path, inline=True)
    store.put(Place("things", "default", "old"), {"metadata": {"name": "old"}})
    store.put(THING, {"metadata": {"name": "a"}})
    store.remove(THING, {"metadata": {"name": "a"}})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.grow_old)
        await anyio.sleep(1000)
        store.remove(Place("things", "default", "old"), {"metadata": {"name": "old"}})
        await anyio.sleep(1000)
        store._flush_inline()
        tasks.cancel_scope.cancel()
    assert (store.revision, store.compacted) == (4, 4)
    store.close()
    store = Store(path, inline=True)
    assert (store.revision, store.compacted) == (4, 4)
    assert store.put(THING, {"metadata": {"name": "a"}}).change.revision == 5
    store.close()
