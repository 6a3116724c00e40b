"""A cache over any home: it ends up with what is there, whatever happened in between."""

import anyio
import pytest

from fullrank.api.meta import Json, name_of
from fullrank.api.scheme import CONFIG_MAP
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key

pytestmark = pytest.mark.anyio


def a_map(namespace: str, name: str, color: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": {"color": color}}}


async def test_a_cache_follows_any_home(client: Client, namespace: str) -> None:
    for number in range(5):
        await client.create(CONFIG_MAP, a_map(namespace, f"early-{number}", "red"))
    cache = Cache(client, CONFIG_MAP, namespace, labels="color=red")
    changed = anyio.Event()

    def notice(_old: Json | None, _new: Json | None) -> None:
        nonlocal changed
        changed.set()
        changed = anyio.Event()

    cache.listen(notice)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cache.run)
        with anyio.fail_after(20):
            await cache.synced()
            assert len(cache.all()) == 5
            await client.create(CONFIG_MAP, a_map(namespace, "late", "red"))
            await client.delete(Key(CONFIG_MAP, namespace, "early-0"))
            await client.patch(
                Key(CONFIG_MAP, namespace, "early-1"), {"metadata": {"labels": {"color": "blue"}}}
            )
            wanted = ["early-2", "early-3", "early-4", "late"]
            while sorted(name_of(obj) for obj in cache.all()) != wanted:
                await changed.wait()
        tasks.cancel_scope.cancel()
    late = await client.get(Key(CONFIG_MAP, namespace, "late"))
    assert cache.get(Key(CONFIG_MAP, namespace, "late")) == late
