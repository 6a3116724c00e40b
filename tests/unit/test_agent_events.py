import itertools
from collections.abc import Iterator

import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import CORE_KINDS, EVENT, NAMESPACE, Scheme
from fullrank.client.events import EventRecorder
from fullrank.clock import ManualClock
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry
from fullrank.controlplane.store import Store

pytestmark = pytest.mark.anyio
POD: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "x" * 253, "namespace": "default", "uid": "u"},
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def client(clock: ManualClock) -> Iterator[LocalClient]:
    store = Store(":memory:", inline=True)
    numbers = itertools.count(1)
    yield LocalClient(Registry(store, Scheme(CORE_KINDS), clock, lambda: f"uid-{next(numbers)}"))
    store.close()


async def test_a_repeat_raises_the_count_of_an_event(client: LocalClient, clock: ManualClock) -> None:
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}})
    for _ in range(3):
        # Another recorder each time, as after a restart: what happened is known by its name.
        await EventRecorder(client, "kubelet", clock).emit(POD, "Warning", "BackOff", "again")
        clock.advance(60)
    await EventRecorder(client, "kubelet", clock).emit(POD, "Normal", "Started", "once")
    events = {event["reason"]: event for event in (await client.select(EVENT, "default")).items}
    assert {reason: event["count"] for reason, event in events.items()} == {"BackOff": 3, "Started": 1}
    assert events["BackOff"]["firstTimestamp"] == "2026-01-01T00:00:00Z"
    assert events["BackOff"]["lastTimestamp"] == "2026-01-01T00:02:00Z"
    assert events["BackOff"]["involvedObject"]["uid"] == "u"


async def test_an_event_that_cannot_be_written_fails_nobody(client: LocalClient, clock: ManualClock) -> None:
    await EventRecorder(client, "kubelet", clock).emit(POD, "Normal", "Started", "in no namespace")
