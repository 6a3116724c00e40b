"""Owner references and namespaces: what has lost its owners goes, and so does what is in a namespace that goes."""

from collections.abc import AsyncIterator, Callable
from itertools import count

import anyio
import pytest

from fullrank.api.meta import Json, name_of, owner_reference, uid_of
from fullrank.api.scheme import CONFIG_MAP, CORE_KINDS, NAMESPACE, POD, SECRET, SERVICE_ACCOUNT, Kind, Scheme
from fullrank.client.port import Client, Key
from fullrank.clock import ManualClock
from fullrank.controlplane.collector import Collector
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.namespaces import Namespaces
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.store import Store

pytestmark = pytest.mark.anyio


class Home:
    """A home in memory, with a collector at work; `until` waits for a change that makes something true."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.client: Client = LocalClient(registry)

    def there(self, kind: Kind = CONFIG_MAP, namespace: str = "default") -> list[str]:
        found = self.registry.select(kind, namespace).records
        return [name_of(record.obj) for record in found if name_of(record.obj) != "kube-root-ca.crt"]

    async def until(self, true: Callable[[], bool], kind: Kind = CONFIG_MAP) -> None:
        with (
            anyio.fail_after(5),
            self.registry.watch(kind, since=str(self.registry.store.revision)) as watching,
        ):
            while not true():
                await anext(watching)

    async def make(
        self, name: str, *owners: Json, blocks: bool = True, finalizers: tuple[str, ...] = ()
    ) -> Json:
        references = [
            {**owner_reference(owner), "controller": False, "blockOwnerDeletion": blocks} for owner in owners
        ]
        metadata = {
            "name": name,
            "namespace": "default",
            "ownerReferences": references,
            "finalizers": list(finalizers),
        }
        return await self.client.create(CONFIG_MAP, {"metadata": metadata})


def key(name: str) -> Key:
    return Key(CONFIG_MAP, "default", name)


@pytest.fixture
async def home() -> AsyncIterator[Home]:
    numbers = count()
    store = Store(":memory:", inline=True)
    scheme = Scheme(CORE_KINDS)
    registry = Registry(store, scheme, ManualClock(), lambda: f"uid-{next(numbers)}", root_ca="THE CA")
    await ensure_namespaces(registry)
    home = Home(registry)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Collector(home.client, scheme).run)
        tasks.start_soon(Namespaces(home.client, scheme, "THE CA", ManualClock()).run)
        yield home
        tasks.cancel_scope.cancel()
    store.close()


async def test_what_an_owner_owned_goes_with_it_and_so_on(home: Home) -> None:
    grandparent = await home.make("grandparent")
    parent = await home.make("parent", grandparent)
    await home.make("child", parent)
    await home.make("stranger")
    await home.client.delete(key("grandparent"))
    await home.until(lambda: home.there() == ["stranger"])


async def test_one_owner_left_is_enough(home: Home) -> None:
    first, second = await home.make("first"), await home.make("second")
    child = await home.make("child", first, second)
    await home.client.delete(key("first"))
    await home.until(lambda: len(home.registry.get(key("child")).obj["metadata"]["ownerReferences"]) == 1)
    kept = home.registry.get(key("child")).obj
    assert uid_of(kept) == uid_of(child)
    assert [owner["name"] for owner in kept["metadata"]["ownerReferences"]] == ["second"]
    await home.client.delete(key("second"))
    await home.until(lambda: home.there() == [])


async def test_an_owner_that_was_never_there_owns_nothing(home: Home) -> None:
    ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "nobody"}}
    await home.make("orphan", ghost)
    await home.until(lambda: home.there() == [])


async def test_an_owner_of_the_same_name_is_not_the_same_owner(home: Home) -> None:
    owner = await home.make("owner")
    await home.client.delete(key("owner"))
    await home.make("owner")
    await home.make("child", owner)
    await home.until(lambda: home.there() == ["owner"])


async def test_an_owner_of_an_unknown_kind_is_left_to_others(home: Home) -> None:
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "uid": "d"}}
    await home.make("kept", other)
    await home.make("gone", await home.make("owner"))
    await home.client.delete(key("owner"))
    await home.until(lambda: home.there() == ["kept"])


async def test_in_the_foreground_the_owner_goes_last(home: Home) -> None:
    owner = await home.make("owner")
    await home.make("blocking", owner, finalizers=("example.com/wait",))
    await home.make("plain", owner, blocks=False)
    await home.client.delete(key("owner"), propagation="Foreground")
    await home.until(lambda: "deletionTimestamp" in home.registry.get(key("blocking")).obj["metadata"])
    assert "owner" in home.there()
    await home.client.patch(key("blocking"), {"metadata": {"finalizers": None}})
    await home.until(lambda: home.there() == [])


async def test_orphans_stay_and_forget_their_owner(home: Home) -> None:
    owner = await home.make("owner")
    await home.make("child", owner)
    await home.client.delete(key("owner"), propagation="Orphan")
    await home.until(lambda: home.there() == ["child"])
    assert "ownerReferences" not in home.registry.get(key("child")).obj["metadata"]


async def test_owners_and_dependents_may_be_of_different_kinds(home: Home) -> None:
    pod = await home.client.create(POD, {"metadata": {"name": "p", "namespace": "default"}, "spec": {}})
    secret = {"metadata": {"name": "s", "namespace": "default", "ownerReferences": [owner_reference(pod)]}}
    await home.client.create(SECRET, secret)
    await home.client.delete(Key(POD, "default", "p"))
    await home.until(lambda: home.there(SECRET) == [], SECRET)


async def test_a_settled_home_writes_nothing(home: Home) -> None:
    owner = await home.make("owner")
    await home.make("child", owner)
    revision = home.registry.store.revision
    await anyio.wait_all_tasks_blocked()
    assert home.registry.store.revision == revision


# --- namespaces ---


async def test_a_namespace_goes_after_its_contents(home: Home) -> None:
    await home.client.create(NAMESPACE, {"metadata": {"name": "team"}})
    held = {"metadata": {"name": "held", "namespace": "team", "finalizers": ["example.com/wait"]}}
    await home.client.create(CONFIG_MAP, held)
    await home.client.create(SECRET, {"metadata": {"name": "s", "namespace": "team"}})
    await home.client.delete(Key(NAMESPACE, "", "team"))
    await home.until(lambda: home.there(SECRET, "team") == [], SECRET)
    assert home.there(CONFIG_MAP, "team") == ["held"]
    assert "team" in home.there(NAMESPACE, "")
    await home.client.patch(Key(CONFIG_MAP, "team", "held"), {"metadata": {"finalizers": None}})
    await home.until(lambda: "team" not in home.there(NAMESPACE, ""), NAMESPACE)


async def test_what_every_namespace_has_is_put_back(home: Home) -> None:
    ca, account = Key(CONFIG_MAP, "default", "kube-root-ca.crt"), Key(SERVICE_ACCOUNT, "default", "default")
    await anyio.wait_all_tasks_blocked()
    await home.client.patch(ca, {"data": {"ca.crt": "forged"}})
    await home.until(lambda: home.registry.get(ca).obj["data"] == {"ca.crt": "THE CA"})
    await home.client.delete(account)
    await home.until(lambda: home.there(SERVICE_ACCOUNT) == ["default"], SERVICE_ACCOUNT)
