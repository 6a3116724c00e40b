"""Whatever is sent, the registry either takes it or says what is wrong with it; it never falls over."""

from collections.abc import Awaitable

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fullrank.api.meta import Json
from fullrank.api.scheme import CONFIG_MAP, CORE_KINDS, POD, Kind, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.registry import Admit, Registry, ensure_namespaces, unchanged
from fullrank.controlplane.store import Store
from fullrank.errors import FullrankError

JOB = Kind("example.com", "v1", "Job", "jobs", subresources=("status",))
ATOMS = st.one_of(st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.text(max_size=5))
GARBAGE = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
OWNER = st.fixed_dictionaries(
    {}, optional={"apiVersion": GARBAGE, "kind": GARBAGE, "name": GARBAGE, "uid": GARBAGE}
)
METADATA = st.fixed_dictionaries(
    {},
    optional={
        "name": st.one_of(st.just("a"), GARBAGE),
        "namespace": st.one_of(st.just("default"), GARBAGE),
        "generateName": GARBAGE,
        "labels": GARBAGE,
        "annotations": GARBAGE,
        "finalizers": st.one_of(st.lists(st.text(max_size=5), max_size=2), GARBAGE),
        "ownerReferences": st.one_of(st.lists(OWNER, max_size=2), GARBAGE),
        "resourceVersion": GARBAGE,
        "uid": GARBAGE,
        "deletionTimestamp": GARBAGE,
    },
)
OBJECT = st.fixed_dictionaries(
    {},
    optional={
        "metadata": st.one_of(METADATA, GARBAGE),
        "spec": GARBAGE,
        "status": GARBAGE,
        "data": GARBAGE,
        "kind": GARBAGE,
    },
)
SPEC = {"containers": [{"name": "main", "image": "i"}]}
CASES = {
    "a custom kind": (JOB, unchanged),
    "a config map": (CONFIG_MAP, Admission()),
    "a pod": (POD, Admission()),
}


@pytest.mark.parametrize(("kind", "admit"), CASES.values(), ids=CASES.keys())
@given(objects=st.lists(OBJECT, min_size=1, max_size=4), patches=st.lists(GARBAGE | OBJECT, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_garbage_is_taken_or_refused(
    kind: Kind, admit: Admit, objects: list[Json], patches: list[Json]
) -> None:
    anyio.run(send, kind, admit, objects, patches)


async def send(kind: Kind, admit: Admit, objects: list[Json], patches: list[Json]) -> None:
    store = Store(":memory:", inline=True)
    registry = Registry(store, Scheme((*CORE_KINDS, JOB)), ManualClock(), lambda: "uid", admit)
    key = Key(kind, "default", "a")
    try:
        await ensure_namespaces(registry)
        for obj in objects:
            await tolerated(registry.create(kind, obj, namespace="default"))
            await tolerated(registry.replace(key, obj))
        await tolerated(registry.create(kind, {"metadata": {"name": "a"}, "spec": SPEC}, namespace="default"))
        for patch in patches:
            for subresource in ("", "status") if kind == JOB else ("",):
                await tolerated(registry.patch(key, patch, subresource=subresource))
                await tolerated(registry.patch(key, patch, type="json", subresource=subresource))
                await tolerated(registry.patch(key, patch, type="strategic", subresource=subresource))
        if kind == POD:
            await tolerated(registry.bind(key, "node"))
        await tolerated(registry.delete(key))
        await tolerated(registry.delete(key, grace=0))
    finally:
        store.close()


async def tolerated(deed: Awaitable[object]) -> None:
    try:
        await deed
    except FullrankError:
        return
