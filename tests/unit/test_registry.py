"""What a write means: Kubernetes' semantics, and the words in which it refuses."""

from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import count
from typing import Any, NamedTuple

import anyio
import pytest

from fullrank.api.meta import Json, name_of
from fullrank.api.scheme import CONFIG_MAP, CORE_KINDS, NAMESPACE, POD, SERVICE, SERVICE_ACCOUNT, Kind, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controlplane.registry import Preconditions, Registry, ensure_namespaces
from fullrank.controlplane.store import Place, Store
from fullrank.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    FullrankError,
    Gone,
    Invalid,
    NotFound,
    Unsupported,
)

pytestmark = pytest.mark.anyio

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status",))
KEY = Key(CONFIG_MAP, "default", "a")
POD_KEY = Key(POD, "default", "p")
TAKEN = Key(JOB, "default", "taken")
JOB_KEY = Key(JOB, "default", "j")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def registry(clock: ManualClock) -> AsyncIterator[Registry]:
    store = Store(":memory:", keep=100, inline=True)
    numbers = count(1)
    registry = Registry(
        store, Scheme((*CORE_KINDS, JOB)), clock, lambda: f"uid-{next(numbers)}", root_ca="THE CA"
    )
    await ensure_namespaces(registry)
    yield registry
    store.close()


def a_map(name: str = "a", **metadata: object) -> Json:
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "data": {"size": "1"}}


def a_pod(name: str = "p", **spec: object) -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [], **spec}}


def a_job(name: str = "j") -> Json:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"size": 1}, "status": {"done": True}}


# --- born ---


async def test_a_home_is_born_with_furnished_namespaces(registry: Registry) -> None:
    names = [name_of(record.obj) for record in registry.select(NAMESPACE).records]
    assert names == ["default", "kube-node-lease", "kube-public", "kube-system", "kubeflow"]
    for name in names:
        assert registry.get(Key(SERVICE_ACCOUNT, name, "default"))
        assert registry.get(Key(CONFIG_MAP, name, "kube-root-ca.crt")).obj["data"] == {"ca.crt": "THE CA"}


async def test_a_home_that_is_there_already_is_left_alone(registry: Registry) -> None:
    before = registry.store.revision
    await ensure_namespaces(registry)
    assert registry.store.revision == before


async def test_a_namespace_is_born_active(registry: Registry) -> None:
    created = await registry.create(NAMESPACE, {"metadata": {"generateName": "team-"}})
    name = name_of(created)
    assert created["metadata"]["labels"] == {"kubernetes.io/metadata.name": name}
    assert (created["spec"], created["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})
    assert registry.get(Key(SERVICE_ACCOUNT, name, "default"))


async def test_the_servers_own_metadata_is_not_the_callers_to_set(registry: Registry) -> None:
    created = await registry.create(
        CONFIG_MAP,
        a_map(uid="mine", creationTimestamp="2000-01-01T00:00:00Z", deletionTimestamp="2000-01-01T00:00:00Z"),
    )
    assert created["metadata"]["uid"].startswith("uid-")
    assert created["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "deletionTimestamp" not in created["metadata"]


async def test_a_custom_object_starts_counting_and_loses_its_status(registry: Registry) -> None:
    created = await registry.create(JOB, a_job())
    assert created["metadata"]["generation"] == 1
    assert "status" not in created
    assert (created["apiVersion"], created["kind"]) == ("kubeflow.org/v1", "PyTorchJob")


async def test_a_dry_run_answers_as_if_and_changes_nothing(registry: Registry) -> None:
    before = registry.store.revision
    created = await registry.create(CONFIG_MAP, a_map(), dry_run=True)
    assert created["metadata"]["uid"]
    assert "resourceVersion" not in created["metadata"]
    await registry.create(CONFIG_MAP, a_map())
    await registry.patch(KEY, {"data": {"size": "2"}}, dry_run=True)
    deletion = await registry.delete(KEY, dry_run=True)
    assert deletion.gone
    assert registry.get(KEY).obj["data"] == {"size": "1"}
    assert registry.store.revision == before + 1


async def test_a_generated_name_that_is_taken_is_drawn_again(registry: Registry) -> None:
    uids = iter(["u1", "same", "u2", "same", "other"])
    registry._new_uid = lambda: next(uids)
    wanted = {"metadata": {"generateName": "a-", "namespace": "default"}}
    first, second = [await registry.create(CONFIG_MAP, wanted) for _ in range(2)]
    assert name_of(first) != name_of(second)


async def test_what_admission_makes_of_an_object_is_what_is_stored(registry: Registry) -> None:
    registry._admit = lambda _kind, obj, old: {**obj, "old": old and old["data"]}
    assert (await registry.create(CONFIG_MAP, a_map()))["old"] is None
    assert (await registry.patch(KEY, {"data": {"size": "2"}}))["old"] == {"size": "1"}


# --- refused ---


class Refused(NamedTuple):
    deed: Callable[[Registry], Coroutine[Any, Any, object]]
    error: type[FullrankError]
    message: str


SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
REFUSED = {
    "a second object of the name": Refused(
        lambda registry: registry.create(JOB, a_job("taken")),
        AlreadyExists,
        'pytorchjobs.kubeflow.org "taken" already exists',
    ),
    "a namespace that does not exist": Refused(
        lambda registry: registry.create(CONFIG_MAP, a_map(namespace="nowhere")),
        NotFound,
        'namespaces "nowhere" not found',
    ),
    "a namespace other than the one asked for": Refused(
        lambda registry: registry.create(CONFIG_MAP, a_map(), namespace="kubeflow"),
        BadRequest,
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "no name at all": Refused(
        lambda registry: registry.create(CONFIG_MAP, {"metadata": {"namespace": "default"}}),
        Invalid,
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    ),
    "a name that is no name": Refused(
        lambda registry: registry.create(JOB, a_job("A_b")),
        Invalid,
        f'PyTorchJob.kubeflow.org "A_b" is invalid: metadata.name: Invalid value: "A_b": {SUBDOMAIN}',
    ),
    "a namespace with dots": Refused(
        lambda registry: registry.create(NAMESPACE, {"metadata": {"name": "a.b"}}),
        Invalid,
        'Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots',
    ),
    "a resourceVersion on something new": Refused(
        lambda registry: registry.create(CONFIG_MAP, a_map(resourceVersion="5")),
        BadRequest,
        "resourceVersion should not be set on objects to be created",
    ),
    "metadata that is no mapping": Refused(
        lambda registry: registry.create(CONFIG_MAP, {"metadata": "a"}),
        BadRequest,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: metadata must be a v1.ObjectMeta',
    ),
    "labels that are no words": Refused(
        lambda registry: registry.create(CONFIG_MAP, a_map(labels={"a": 1})),
        BadRequest,
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: metadata.labels must be a map[string]string',
    ),
    "another kind": Refused(
        lambda registry: registry.create(CONFIG_MAP, {**a_map(), "kind": "Secret"}),
        BadRequest,
        "the kind in the data (Secret) does not match the expected kind (ConfigMap)",
    ),
    "an owner without a uid": Refused(
        lambda registry: registry.create(
            CONFIG_MAP, a_map(ownerReferences=[{"apiVersion": "v1", "kind": "Pod", "name": "p"}])
        ),
        Invalid,
        'ConfigMap "a" is invalid: metadata.ownerReferences[0].uid: Invalid value: "": must not be empty',
    ),
    "a replacement under another name": Refused(
        lambda registry: registry.replace(TAKEN, {"metadata": {"name": "b", "resourceVersion": "1"}}),
        BadRequest,
        "the name of the object (b) does not match the name on the URL (taken)",
    ),
    "a blind replacement of a custom object": Refused(
        lambda registry: registry.replace(TAKEN, a_job("taken")),
        Invalid,
        'pytorchjobs.kubeflow.org "taken" is invalid: metadata.resourceVersion: Invalid value: 0: '
        "must be specified for an update",
    ),
    "a patch of the uid": Refused(
        lambda registry: registry.patch(TAKEN, {"metadata": {"uid": "mine"}}),
        Invalid,
        'PyTorchJob.kubeflow.org "taken" is invalid: metadata.uid: Invalid value: "mine": field is immutable',
    ),
    "a strategic merge patch of a custom object": Refused(
        lambda registry: registry.patch(TAKEN, {"spec": {}}, type="strategic"),
        Unsupported,
        "pytorchjobs.kubeflow.org take no strategic merge patch; send application/merge-patch+json",
    ),
    "a merge patch that is a list": Refused(
        lambda registry: registry.patch(TAKEN, [{}]),
        BadRequest,
        "a merge patch is an object",
    ),
    "a status of what has none": Refused(
        lambda registry: registry.replace(
            Key(CONFIG_MAP, "default", "kube-root-ca.crt"), a_map("kube-root-ca.crt"), subresource="status"
        ),
        NotFound,
        "the server could not find the requested resource",
    ),
    "a deletion of something else by then": Refused(
        lambda registry: registry.delete(TAKEN, preconditions=Preconditions(revision="1")),
        Conflict,
        'Operation cannot be fulfilled on PyTorchJob.kubeflow.org "taken": the ResourceVersion in the precondition (1) '
        "does not match the ResourceVersion in record (16). The object might have been modified",
    ),
    "a deletion of the default namespace": Refused(
        lambda registry: registry.delete(Key(NAMESPACE, "", "default")),
        Forbidden,
        'namespaces "default" is forbidden: this namespace may not be deleted',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
async def test_it_refuses_in_kubernetes_words_and_changes_nothing(registry: Registry, case: Refused) -> None:
    await registry.create(JOB, a_job("taken"))
    before = registry.store.revision
    with pytest.raises(case.error) as refusal:
        await case.deed(registry)
    assert str(refusal.value) == case.message
    assert registry.store.revision == before


async def test_a_service_is_named_by_the_older_rule(registry: Registry) -> None:
    with pytest.raises(Invalid, match="a DNS-1035 label must consist of"):
        await registry.create(SERVICE, {"metadata": {"name": "1a", "namespace": "default"}})


# --- written ---


async def test_spec_and_status_have_separate_doors(registry: Registry) -> None:
    await registry.create(JOB, a_job())
    await registry.patch(
        JOB_KEY,
        {"metadata": {"labels": {"a": "b"}}, "spec": {"size": 9}, "status": {"done": True}},
        subresource="status",
    )
    after_status = registry.get(JOB_KEY).obj
    assert (after_status["spec"], after_status["status"]) == ({"size": 1}, {"done": True})
    assert "labels" not in after_status["metadata"]
    assert after_status["metadata"]["generation"] == 1
    await registry.patch(JOB_KEY, {"spec": {"size": 2}, "status": None})
    after_spec = registry.get(JOB_KEY).obj
    assert (after_spec["spec"], after_spec["status"]) == ({"size": 2}, {"done": True})
    assert after_spec["metadata"]["generation"] == 2


async def test_a_status_write_of_a_core_kind_may_label_it(registry: Registry) -> None:
    await registry.create(POD, a_pod())
    written = await registry.patch(
        POD_KEY, {"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Running"}}, subresource="status"
    )
    assert (written["metadata"]["labels"], written["status"]["phase"]) == ({"a": "b"}, "Running")


async def test_updating_leaves_the_servers_metadata_alone(registry: Registry, clock: ManualClock) -> None:
    created = await registry.create(JOB, a_job())
    clock.advance(60)
    change = {
        "creationTimestamp": "2000-01-01T00:00:00Z",
        "generation": 9,
        "deletionTimestamp": "2000-01-01T00:00:00Z",
    }
    patched = await registry.patch(JOB_KEY, {"metadata": change})
    assert patched == created


async def test_of_many_patches_at_once_each_one_counts() -> None:
    store = Store(":memory:")
    registry = Registry(store, Scheme(CORE_KINDS), ManualClock(), lambda: "uid")

    async def patch(number: int) -> None:
        await registry.patch(KEY, {"data": {f"key-{number}": "x"}})

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await ensure_namespaces(registry)
        await registry.create(CONFIG_MAP, a_map())
        async with anyio.create_task_group() as writers:
            for number in range(50):
                writers.start_soon(patch, number)
        tasks.cancel_scope.cancel()
    assert len(registry.get(KEY).obj["data"]) == 51
    store.close()


async def test_whoever_meets_a_conflict_can_read_its_cause() -> None:
    store = Store(":memory:")
    registry = Registry(store, Scheme(CORE_KINDS), ManualClock(), lambda: "uid")
    seen: list[str] = []

    async def claim() -> None:
        try:
            await registry.create(CONFIG_MAP, a_map())
        except AlreadyExists:
            seen.append(name_of(registry.get(KEY).obj))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await ensure_namespaces(registry)
        async with anyio.create_task_group() as writers:
            for _ in range(5):
                writers.start_soon(claim)
        tasks.cancel_scope.cancel()
    assert seen == ["a"] * 4
    store.close()


# --- leaving ---


async def test_a_deleted_pod_has_its_grace(registry: Registry, clock: ManualClock) -> None:
    await registry.create(POD, a_pod(terminationGracePeriodSeconds=40))
    await registry.bind(POD_KEY, "node")
    deletion = await registry.delete(POD_KEY)
    assert not deletion.gone
    assert deletion.obj["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:40Z"
    assert deletion.obj["metadata"]["generation"] == 2
    clock.advance(10)
    sooner = await registry.delete(POD_KEY, grace=15)
    assert sooner.obj["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:15Z"
    assert (await registry.delete(POD_KEY, grace=0)).gone


async def test_a_held_pod_goes_with_its_last_finalizer(registry: Registry) -> None:
    pod = a_pod(nodeName="node")
    pod["metadata"]["finalizers"] = ["example.com/wait"]
    await registry.create(POD, pod)
    assert not (await registry.delete(POD_KEY, grace=0)).gone
    await registry.patch(POD_KEY, {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        registry.get(POD_KEY)


async def test_a_namespace_goes_when_it_is_finalized(registry: Registry) -> None:
    key = Key(NAMESPACE, "", "kubeflow")
    deletion = await registry.delete(key)
    assert (deletion.gone, deletion.obj["status"]["phase"]) == (False, "Terminating")
    with pytest.raises(
        Forbidden,
        match=r'^configmaps "a" is forbidden: unable to create new content in namespace kubeflow because',
    ):
        await registry.create(CONFIG_MAP, a_map(namespace="kubeflow"))
    await registry.patch(key, {"spec": {"finalizers": []}})
    assert registry.get(key).obj["spec"] == {"finalizers": ["kubernetes"]}
    await registry.replace(key, {**deletion.obj, "spec": {"finalizers": []}}, subresource="finalize")
    with pytest.raises(NotFound):
        registry.get(key)


async def test_a_collection_is_deleted_together(registry: Registry) -> None:
    for number in range(3):
        await registry.create(CONFIG_MAP, a_map(f"a{number}", labels={"old": "yes"}))
    deleted = await registry.delete_collection(CONFIG_MAP, "default", labels="old")
    assert [name_of(obj) for obj in deleted] == ["a0", "a1", "a2"]
    assert [name_of(record.obj) for record in registry.select(CONFIG_MAP, "default").records] == [
        "kube-root-ca.crt"
    ]


# --- listed and watched ---


async def test_a_page_from_before_the_compaction_is_gone(registry: Registry) -> None:
    first = registry.select(NAMESPACE, limit=2)
    assert first.remaining == 3
    await registry.create(CONFIG_MAP, a_map())
    for number in range(150):
        await registry.patch(KEY, {"data": {"size": str(number)}})
    with pytest.raises(Gone, match="continue parameter is too old") as gone:
        registry.select(NAMESPACE, limit=2, proceed=first.proceed)
    onward = registry.select(NAMESPACE, limit=2, proceed=gone.value.proceed)
    assert (onward.revision, onward.remaining) == (registry.store.revision, 1)
    assert not {name_of(each.obj) for each in onward.records} & {name_of(each.obj) for each in first.records}


@pytest.mark.parametrize("token", ["abc", "e30", "%%%", "bm9uc2Vuc2U"])
async def test_a_made_up_token_is_refused(registry: Registry, token: str) -> None:
    with pytest.raises(BadRequest, match="invalid continue token"):
        registry.select(NAMESPACE, proceed=token)


async def test_a_watch_without_a_beginning_tells_what_there_is(registry: Registry) -> None:
    await registry.create(CONFIG_MAP, a_map())
    with registry.watch(CONFIG_MAP, "default", fields="metadata.name=a") as watching:
        await registry.patch(KEY, {"data": {"size": "2"}})
        events = [await anext(watching), await anext(watching)]
        assert watching.ready() is None
    assert [(event.type, event.record.obj["data"]["size"]) for event in events] == [
        ("ADDED", "1"),
        ("MODIFIED", "2"),
    ]


async def test_what_leaves_a_selection_is_told_as_it_last_was_selected(registry: Registry) -> None:
    await registry.create(CONFIG_MAP, a_map(labels={"chosen": "yes"}))
    since = str(registry.store.revision)
    with registry.watch(CONFIG_MAP, since=since, labels="chosen=yes") as watching:
        left = await registry.patch(KEY, {"metadata": {"labels": {"chosen": "no"}}})
        event = await anext(watching)
    assert event.type == "DELETED"
    assert event.record.obj["metadata"]["labels"] == {"chosen": "yes"}
    assert event.record.obj["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]
    assert event.record.copy() == event.record.obj


async def test_what_enters_and_leaves_a_selection_again_and_again_is_told_each_time(
    registry: Registry,
) -> None:
    await registry.create(CONFIG_MAP, a_map(labels={"chosen": "yes"}))
    since, told = str(registry.store.revision), list[str]()
    with registry.watch(CONFIG_MAP, since=since, labels="chosen=yes") as watching:
        for word in ("yes", "no", "maybe", "yes", "yes", "no"):
            await registry.patch(
                KEY, {"metadata": {"labels": {"chosen": word}}, "data": {"n": str(len(told))}}
            )
            event = watching.ready()
            told.append(event.type if event else "")
        await registry.delete(KEY)
        assert watching.ready() is None
        await registry.create(CONFIG_MAP, a_map(labels={"chosen": "yes"}))
        assert (await anext(watching)).type == "ADDED"
    assert told == ["MODIFIED", "DELETED", "", "ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_from_nonsense_is_refused(registry: Registry) -> None:
    with pytest.raises(BadRequest, match="invalid resource version"):
        registry.watch(CONFIG_MAP, since="abc")


async def test_everything_survives_a_restart(tmp_path: Any) -> None:
    for _ in range(2):
        store = Store(tmp_path / "state.db", inline=True)
        registry = Registry(store, Scheme(CORE_KINDS), ManualClock(), lambda: "uid")
        await ensure_namespaces(registry)
        store.close()
    assert store.revision == 15
    assert store.get(Place("namespaces", "", "kubeflow"))
