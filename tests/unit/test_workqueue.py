"""The work queue under a clock that jumps: hours of alarms in milliseconds."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

import anyio
import pytest
import trio.testing

from fullrank.controllers.workqueue import WorkQueue
from fullrank.errors import Conflict, NotFound, Unavailable

pytestmark = pytest.mark.anyio
Reconcile = Callable[[str], Awaitable[timedelta | None]]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "trio", {"clock": trio.testing.MockClock(autojump_threshold=0)}


async def worked(queue: WorkQueue[str], reconcile: Reconcile, *, until: float, workers: int = 2) -> None:
    with anyio.move_on_after(until):
        await queue.run(reconcile, workers=workers)


async def test_a_key_added_twice_is_worked_once() -> None:
    queue, seen = WorkQueue[str](), list[str]()

    async def note(key: str) -> None:
        seen.append(key)

    for key in ("a", "b", "a"):
        queue.add(key)
    await worked(queue, note, until=1)
    assert seen == ["a", "b"]


async def test_a_key_added_while_it_is_worked_on_is_worked_once_more_and_never_twice_at_once() -> None:
    queue, seen, at_work = WorkQueue[str](), list[int](), set[str]()

    async def slow(key: str) -> None:
        assert key not in at_work
        at_work.add(key)
        seen.append(len(seen))
        if len(seen) == 1:
            queue.add(key)
            queue.add(key)
        await anyio.sleep(1)
        at_work.discard(key)

    queue.add("a")
    await worked(queue, slow, until=10)
    assert len(seen) == 2


async def test_a_key_comes_back_when_it_asked_to() -> None:
    queue, times = WorkQueue[str](), list[float]()
    start = anyio.current_time()

    async def hourly(_key: str) -> timedelta:
        times.append(round(anyio.current_time() - start))
        return timedelta(hours=1)

    queue.add("a")
    await worked(queue, hourly, until=3 * 3600 + 1)
    assert times == [0, 3600, 7200, 10800]


async def test_an_earlier_alarm_replaces_a_later_one() -> None:
    queue, times = WorkQueue[str](), list[float]()
    start = anyio.current_time()

    async def note(_key: str) -> None:
        times.append(round(anyio.current_time() - start))

    queue.add_after("a", 100)
    queue.add_after("a", 10)
    queue.add_after("a", 50)
    await worked(queue, note, until=1000)
    assert times == [10]


@pytest.mark.parametrize("error", [Conflict("x"), Unavailable("x"), RuntimeError("x")])
async def test_a_failure_is_tried_again_ever_later_and_forgotten_after_success(error: Exception) -> None:
    queue, times = WorkQueue[str](), list[float]()
    start = anyio.current_time()

    async def three_times(_key: str) -> None:
        times.append(round(anyio.current_time() - start, 3))
        if len(times) <= 3:
            raise error

    queue.add("a")
    await worked(queue, three_times, until=60)
    assert times == [0, 0.01, 0.03, 0.07]


async def test_what_is_gone_needs_no_more_work() -> None:
    queue, seen = WorkQueue[str](), list[str]()

    async def gone(key: str) -> None:
        seen.append(key)
        raise NotFound(key)

    queue.add("a")
    await worked(queue, gone, until=1000)
    assert seen == ["a"]


async def test_one_slow_key_does_not_hold_up_the_others() -> None:
    queue, seen = WorkQueue[str](), list[str]()

    async def slow_for_a(key: str) -> None:
        if key == "slow":
            await anyio.sleep_forever()
        seen.append(key)

    for key in ("slow", "b", "c"):
        queue.add(key)
    await worked(queue, slow_for_a, until=5)
    assert seen == ["b", "c"]


async def test_it_rests_when_nobody_waits_for_attention_or_has_it() -> None:
    queue, rested = WorkQueue[str](), list[float]()
    start = anyio.current_time()

    async def slow(_key: str) -> None:
        await anyio.sleep(1)

    async def note() -> None:
        await queue.rest()
        rested.append(round(anyio.current_time() - start, 3))

    for key in ("a", "b"):
        queue.add(key)
    assert queue.crowded
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(note)
        await worked(queue, slow, until=5)
    assert rested == [1]
    assert not queue.crowded
