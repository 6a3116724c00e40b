"""A local copy that is true: it follows, it believes its own writer at once, and late news cannot fool it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

import anyio
import pytest

from fullrank.api.meta import Json, name_of, owner_reference, uid_of
from fullrank.api.scheme import CONFIG_MAP, CORE_KINDS, Kind, Scheme
from fullrank.client.cache import Cache
from fullrank.client.port import Key, Listing, WatchEvent
from fullrank.clock import ManualClock
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.store import Store
from fullrank.errors import Gone, Unavailable

pytestmark = pytest.mark.anyio

KEY = Key(CONFIG_MAP, "default", "a")


@pytest.fixture
async def client() -> AsyncIterator[LocalClient]:
    numbers = count()
    store = Store(":memory:", keep=20, inline=True)
    registry = Registry(store, Scheme(CORE_KINDS), ManualClock(), lambda: f"uid-{next(numbers)}")
    await ensure_namespaces(registry)
    yield LocalClient(registry)
    store.close()


def a_map(name: str = "a", **metadata: object) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "labels": {"mine": "yes"}, **metadata}}


def seen(name: str = "a", uid: str = "u", revision: int = 1) -> Json:
    return {"metadata": {"name": name, "namespace": "default", "uid": uid, "resourceVersion": str(revision)}}


def names(cache: Cache) -> list[str]:
    return sorted(name_of(obj) for obj in cache.all())


@asynccontextmanager
async def following(cache: Cache) -> AsyncIterator[anyio.abc.ObjectReceiveStream[None]]:
    """The cache kept true meanwhile, and a stream that says something at each change."""
    news, changes = anyio.create_memory_object_stream[None](1000)
    cache.listen(lambda _old, _new: news.send_nowait(None))
    async with news, changes, anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        with anyio.fail_after(5):
            await cache.synced()
            yield changes
        tasks.cancel_scope.cancel()


async def until(changes: anyio.abc.ObjectReceiveStream[None], cache: Cache, wanted: list[str]) -> None:
    while names(cache) != wanted:
        await changes.receive()


async def test_it_holds_what_there_was_and_follows_what_happens(client: LocalClient) -> None:
    await client.create(CONFIG_MAP, a_map("a"))
    cache = Cache(client, CONFIG_MAP, labels="mine")
    async with following(cache) as changes:
        assert names(cache) == ["a"]
        await client.create(CONFIG_MAP, a_map("b"))
        await until(changes, cache, ["a", "b"])
        await client.delete(KEY)
        await until(changes, cache, ["b"])
        assert cache.get(KEY) is None


async def test_what_leaves_the_selection_may_come_back(client: LocalClient) -> None:
    await client.create(CONFIG_MAP, a_map("a"))
    cache = Cache(client, CONFIG_MAP, labels="mine=yes")
    async with following(cache) as changes:
        for label, wanted in (("no", []), ("yes", ["a"])):
            await client.patch(KEY, {"metadata": {"labels": {"mine": label}}})
            await until(changes, cache, wanted)


async def test_it_finds_what_an_owner_controls(client: LocalClient) -> None:
    owner = await client.create(CONFIG_MAP, a_map("owner"))
    await client.create(CONFIG_MAP, a_map("owned", ownerReferences=[owner_reference(owner)]))
    cache = Cache(client, CONFIG_MAP, labels="mine")
    async with following(cache) as changes:
        assert [name_of(obj) for obj in cache.owned_by(uid_of(owner))] == ["owned"]
        await client.patch(Key(CONFIG_MAP, "default", "owned"), {"metadata": {"ownerReferences": None}})
        while cache.owned_by(uid_of(owner)):
            await changes.receive()
        assert cache.owned_by("nobody") == []


async def test_it_keeps_only_what_is_looked_at(client: LocalClient) -> None:
    await client.create(CONFIG_MAP, {**a_map(), "data": {"big": "x" * 1000}})
    cache = Cache(client, CONFIG_MAP, labels="mine", trim=lambda obj: {"metadata": obj["metadata"]})
    async with following(cache):
        assert list(cache.get(KEY) or {}) == ["metadata"]


# --- a writer's own knowledge ---


def a_cache() -> Cache:
    return Cache(Pretended([], []), CONFIG_MAP)


def test_what_is_learnt_is_there_at_once() -> None:
    cache, told = a_cache(), list[tuple[Json | None, Json | None]]()
    cache.listen(lambda old, new: told.append((old, new)))
    first, second = seen(revision=1), seen(revision=2)
    for obj in (first, second, first, second):
        cache.learn(obj)
    assert cache.get(KEY) == second
    assert told == [(None, first), (first, second)]


def test_what_is_forgotten_does_not_come_back() -> None:
    cache = a_cache()
    cache.learn(seen(revision=1))
    cache.forget(seen(revision=1))
    cache.learn(seen(revision=2))
    assert cache.get(KEY) is None
    cache.learn(seen(uid="its successor", revision=3))
    cache.forget(seen(revision=1))
    assert uid_of(cache.get(KEY) or {"metadata": {}}) == "its successor"


# --- trouble ---


class Pretended:
    """A server of few words: each list and each watch answers with the next thing it was given."""

    def __init__(
        self, listings: list[Listing | Exception], watches: list[list[WatchEvent | Exception]]
    ) -> None:
        self.listings = listings
        self.watches = watches
        self.since: list[str] = []
        self.exhausted = anyio.Event()

    async def get(self, key: Key) -> Json:
        raise Unavailable(str(key))

    async def select(self, kind: Kind, namespace: str = "", **_: object) -> Listing:  # noqa: ARG002
        answer = self.listings.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def watch(
        self,
        kind: Kind,  # noqa: ARG002
        namespace: str = "",  # noqa: ARG002
        *,
        since: str,
        **_: object,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        self.since.append(since)
        yield self._events()

    async def _events(self) -> AsyncIterator[WatchEvent]:
        for event in self.watches.pop(0) if self.watches else []:
            if isinstance(event, Exception):
                raise event
            yield event
        if not self.watches:
            self.exhausted.set()
            await anyio.sleep_forever()


async def test_it_goes_on_where_it_was_after_an_interruption() -> None:
    server = Pretended(
        [Listing([], "5")],
        [
            [WatchEvent("ADDED", seen("a", "u1", 6)), Unavailable("cut")],
            [],
            [WatchEvent("BOOKMARK", seen(revision=9))],
            [],
        ],
    )
    cache = Cache(server, CONFIG_MAP)
    async with following(cache):
        await server.exhausted.wait()
    assert server.since == ["5", "6", "6", "9"]
    assert names(cache) == ["a"]


async def test_it_lists_again_when_its_place_in_history_is_gone() -> None:
    server = Pretended(
        [
            Listing([seen("old", "u1", 3), seen("kept", "u2", 4)], "5"),
            Listing([seen("kept", "u2", 4), seen("new", "u3", 90)], "100"),
        ],
        [[Gone("too old")]],
    )
    cache = Cache(server, CONFIG_MAP)
    async with following(cache) as changes:
        await until(changes, cache, ["kept", "new"])


async def test_what_was_learnt_later_than_a_list_stays() -> None:
    server = Pretended([Listing([], "5")], [])
    cache = Cache(server, CONFIG_MAP)
    cache.learn(seen("early", "u1", 4))
    cache.learn(seen("late", "u2", 6))
    async with following(cache):
        assert names(cache) == ["late"]


async def test_a_server_that_starts_over_is_believed() -> None:
    server = Pretended(
        [Listing([seen("a", "u1", 500), seen("b", "u2", 501)], "600"), Listing([seen("a", "u9", 2)], "3")],
        [[Gone("Too large resource version")]],
    )
    cache = Cache(server, CONFIG_MAP)
    async with following(cache) as changes:
        await until(changes, cache, ["a"])
        assert uid_of(cache.get(KEY) or {"metadata": {}}) == "u9"


async def test_it_waits_for_a_server_that_cannot_be_reached() -> None:
    server = Pretended([Unavailable("not yet"), Listing([seen()], "5")], [])
    cache = Cache(server, CONFIG_MAP)
    async with following(cache):
        assert names(cache) == ["a"]
