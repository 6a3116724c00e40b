"""Leading by lease, under a clock that jumps: one at a time, and the next one when the first is gone."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from trio.testing import MockClock

from fullrank.api.scheme import LEASE
from fullrank.client.port import Key
from fullrank.controllers.leader import DURATION, PAUSE, RENEWAL, Leader
from fullrank.controlplane.local import LocalClient
from fullrank.errors import Unavailable
from tests.unit.world import a_world

pytestmark = pytest.mark.anyio
KEY = Key(LEASE, "default", "fullrank-operator")


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, object]]:
    return "trio", {"clock": MockClock(autojump_threshold=0)}


@pytest.fixture
async def client() -> AsyncIterator[LocalClient]:
    async with a_world() as world:
        yield world.client


class JumpingClock:
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=anyio.current_time())


def leader(client: LocalClient, identity: str) -> Leader:
    return Leader(client, JumpingClock(), KEY, identity)


async def holder(client: LocalClient) -> str:
    name: str = (await client.get(KEY))["spec"]["holderIdentity"]
    return name


async def test_the_first_leads_and_gives_the_lease_up_when_it_leaves(client: LocalClient) -> None:
    async with leader(client, "first").leading():
        assert await holder(client) == "first"
    assert await holder(client) == ""


async def test_the_second_waits_for_as_long_as_the_first_renews(client: LocalClient) -> None:
    async with leader(client, "first").leading():
        with anyio.move_on_after(10 * DURATION) as patience:
            async with leader(client, "second").leading():
                raise AssertionError("two lead")
        assert patience.cancelled_caught
        assert await holder(client) == "first"


async def test_a_lease_that_is_given_up_passes_on_at_once(client: LocalClient) -> None:
    async with leader(client, "first").leading():
        pass
    start = anyio.current_time()
    async with leader(client, "second").leading():
        assert anyio.current_time() - start < PAUSE
        assert (await client.get(KEY))["spec"]["leaseTransitions"] == 1


async def test_a_lease_that_nobody_renews_runs_out(client: LocalClient) -> None:
    dead = {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": "2001-01-01T00:00:00.000000Z"}
    await client.create(LEASE, {"metadata": {"name": KEY.name, "namespace": KEY.namespace}, "spec": dead})
    start = anyio.current_time()
    async with leader(client, "next").leading():
        assert DURATION <= anyio.current_time() - start <= DURATION + 2 * PAUSE


async def test_one_who_lost_the_lease_stops(client: LocalClient) -> None:
    with pytest.RaisesGroup(Unavailable):
        async with leader(client, "first").leading():
            found = await client.get(KEY)
            await client.replace(LEASE, found | {"spec": found["spec"] | {"holderIdentity": "thief"}})
            with anyio.fail_after(RENEWAL + 2 * PAUSE):
                await anyio.sleep_forever()
