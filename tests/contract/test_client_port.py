"""What every part may rely on, whichever home it lives in: ours without a socket, ours over HTTP, a real cluster."""

import anyio
import pytest

from fullrank.api.meta import Json, is_terminating, name_of, revision_of, uid_of
from fullrank.api.scheme import CONFIG_MAP, NAMESPACE, POD
from fullrank.client.port import Client, Key, WatchEvent
from fullrank.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound

pytestmark = pytest.mark.anyio


def a_map(namespace: str, name: str = "a", labels: Json | None = None, **values: str) -> Json:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels or {}}, "data": values}


def a_pod(namespace: str, name: str = "p") -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "some/image:1"}], "schedulerName": "nobody"},
    }


def map_key(namespace: str, name: str = "a") -> Key:
    return Key(CONFIG_MAP, namespace, name)


def pod_key(namespace: str, name: str = "p") -> Key:
    return Key(POD, namespace, name)


# --- creating and reading ---


async def test_a_created_object_has_what_the_server_gives_it(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAP, a_map(namespace, size="1"))
    assert created["data"] == {"size": "1"}
    assert (created["apiVersion"], created["kind"]) == ("v1", "ConfigMap")
    assert created["metadata"]["uid"]
    assert created["metadata"]["creationTimestamp"].endswith("Z")
    assert revision_of(created) > 0
    assert await client.get(map_key(namespace)) == created


async def test_what_is_not_there_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await client.get(map_key(namespace))


async def test_a_name_is_taken_once(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace))
    with pytest.raises(AlreadyExists, match=r'^configmaps "a" already exists$'):
        await client.create(CONFIG_MAP, a_map(namespace))


async def test_nothing_is_created_in_a_namespace_that_does_not_exist(client: Client) -> None:
    with pytest.raises(NotFound, match=r'^namespaces "nowhere" not found$'):
        await client.create(CONFIG_MAP, a_map("nowhere"))


async def test_a_namespaced_object_needs_a_namespace(client: Client) -> None:
    with pytest.raises(BadRequest, match="an empty namespace may not be set during creation"):
        await client.create(CONFIG_MAP, a_map(""))


async def test_a_bad_name_is_refused_with_its_path(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await client.create(CONFIG_MAP, a_map(namespace, "../etc"))
    assert [cause.field for cause in refusal.value.causes] == ["metadata.name"]
    assert str(refusal.value).startswith(
        'ConfigMap "../etc" is invalid: metadata.name: Invalid value: "../etc": a low'
    )


async def test_names_can_be_generated(client: Client, namespace: str) -> None:
    wanted = {"metadata": {"generateName": "worker-", "namespace": namespace}}
    names = {name_of(await client.create(CONFIG_MAP, wanted)) for _ in range(5)}
    assert len(names) == 5
    assert all(name.startswith("worker-") and len(name) == len("worker-") + 5 for name in names)


async def test_what_a_reader_does_to_its_copy_stays_with_the_reader(client: Client, namespace: str) -> None:
    mine = a_map(namespace, size="1")
    created = await client.create(CONFIG_MAP, mine)
    for copy in (
        mine,
        created,
        await client.get(map_key(namespace)),
        (await client.select(CONFIG_MAP, namespace)).items[0],
    ):
        copy["data"] = copy["metadata"]["labels"] = None
    assert (await client.get(map_key(namespace)))["data"] == {"size": "1"}


# --- replacing and patching ---


async def test_a_replaced_object_has_a_newer_revision(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAP, a_map(namespace, size="1"))
    replaced = await client.replace(CONFIG_MAP, {**created, "data": {"size": "2"}})
    assert replaced["data"] == {"size": "2"}
    assert revision_of(replaced) > revision_of(created)
    assert uid_of(replaced) == uid_of(created)


async def test_a_write_over_somebody_elses_is_a_conflict(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAP, a_map(namespace))
    await client.patch(map_key(namespace), {"data": {"by": "another"}})
    with pytest.raises(
        Conflict, match='on configmaps "a": the object has been modified; please apply your changes'
    ):
        await client.replace(CONFIG_MAP, {**created, "data": {"by": "me"}})
    stale = {"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"by": "me"}}
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.patch(map_key(namespace), stale)
    assert (await client.get(map_key(namespace)))["data"] == {"by": "another"}


async def test_a_write_that_changes_nothing_keeps_the_revision(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAP, a_map(namespace, size="1"))
    assert revision_of(await client.replace(CONFIG_MAP, created)) == revision_of(created)
    assert revision_of(await client.patch(map_key(namespace), {"data": {"size": "1"}})) == revision_of(
        created
    )


async def test_what_is_not_there_cannot_be_replaced_or_patched(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        await client.replace(CONFIG_MAP, a_map(namespace))
    with pytest.raises(NotFound):
        await client.patch(map_key(namespace), {"data": {}})


async def test_of_many_who_compare_and_set_each_one_counts(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace, count="0"))

    async def increment() -> None:
        while True:
            seen = await client.get(map_key(namespace))
            try:
                await client.replace(
                    CONFIG_MAP, {**seen, "data": {"count": str(int(seen["data"]["count"]) + 1)}}
                )
            except Conflict:
                continue
            return

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(increment)
    assert (await client.get(map_key(namespace)))["data"] == {"count": "10"}


async def test_a_merge_patch_sets_and_removes(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace, keep="1", drop="2"))
    patched = await client.patch(map_key(namespace), {"data": {"drop": None, "add": "3"}})
    assert patched["data"] == {"keep": "1", "add": "3"}


async def test_a_json_patch_does_all_or_nothing(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace, size="1"))
    test, replace = ({"op": op, "path": "/data/size", "value": "2"} for op in ("test", "replace"))
    with pytest.raises(Invalid):
        await client.patch(
            map_key(namespace), [replace, {"op": "remove", "path": "/data/other"}], type="json"
        )
    patched = await client.patch(map_key(namespace), [replace, test], type="json")
    assert patched["data"] == {"size": "2"}


async def test_a_strategic_merge_patch_pairs_containers_by_name(client: Client, namespace: str) -> None:
    await client.create(POD, a_pod(namespace))
    change = {"spec": {"containers": [{"name": "main", "image": "some/image:2"}]}}
    patched = await client.patch(pod_key(namespace), change, type="strategic")
    (container,) = patched["spec"]["containers"]
    assert (container["name"], container["image"]) == ("main", "some/image:2")


async def test_status_has_a_door_of_its_own(client: Client, namespace: str) -> None:
    created = await client.create(POD, {**a_pod(namespace), "status": {"phase": "Failed"}})
    assert created["status"]["phase"] == "Pending"
    through_the_front = await client.patch(pod_key(namespace), {"status": {"phase": "Running"}})
    assert through_the_front["status"]["phase"] == "Pending"
    running = {
        **created,
        "status": {**created["status"], "phase": "Running"},
        "spec": {**created["spec"], "nodeName": "x"},
    }
    written = await client.replace(POD, running, subresource="status")
    assert (written["status"]["phase"], written["spec"].get("nodeName")) == ("Running", None)
    patched = await client.patch(pod_key(namespace), {"status": {"reason": "Because"}}, subresource="status")
    assert (patched["status"]["phase"], patched["status"]["reason"]) == ("Running", "Because")


async def test_the_generation_counts_changes_of_what_is_wanted(client: Client, namespace: str) -> None:
    generations = [
        obj["metadata"]["generation"]
        for obj in (
            await client.create(POD, a_pod(namespace)),
            await client.patch(pod_key(namespace), {"metadata": {"labels": {"a": "b"}}}),
            await client.patch(pod_key(namespace), {"status": {"reason": "Because"}}, subresource="status"),
            await client.patch(pod_key(namespace), {"spec": {"activeDeadlineSeconds": 60}}),
        )
    ]
    assert generations == [1, 1, 1, 2]


# --- deleting ---


async def test_a_deleted_object_is_gone(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace))
    await client.delete(map_key(namespace))
    with pytest.raises(NotFound):
        await client.get(map_key(namespace))
    with pytest.raises(NotFound):
        await client.delete(map_key(namespace))


async def test_a_delete_with_a_uid_takes_only_that_very_object(client: Client, namespace: str) -> None:
    created = await client.create(CONFIG_MAP, a_map(namespace))
    with pytest.raises(Conflict, match="the UID in the precondition"):
        await client.delete(map_key(namespace), uid="another")
    await client.delete(map_key(namespace), uid=uid_of(created))
    with pytest.raises(NotFound):
        await client.get(map_key(namespace))


async def test_a_finalizer_holds_an_object_until_it_is_taken_off(client: Client, namespace: str) -> None:
    wanted = a_map(namespace)
    wanted["metadata"]["finalizers"] = ["example.com/wait"]
    await client.create(CONFIG_MAP, wanted)
    await client.delete(map_key(namespace))
    leaving = await client.get(map_key(namespace))
    assert is_terminating(leaving)
    with pytest.raises(AlreadyExists, match="object is being deleted"):
        await client.create(CONFIG_MAP, a_map(namespace))
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        await client.patch(
            map_key(namespace), {"metadata": {"finalizers": ["example.com/wait", "example.com/more"]}}
        )
    await client.patch(map_key(namespace), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        await client.get(map_key(namespace))


FINALIZERS = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


@pytest.mark.parametrize("propagation", FINALIZERS)
async def test_other_propagations_wait_for_the_collector(
    client: Client, namespace: str, propagation: str
) -> None:
    await client.create(CONFIG_MAP, a_map(namespace))
    await client.delete(map_key(namespace), propagation="Orphan" if propagation == "Orphan" else "Foreground")
    leaving = await client.get(map_key(namespace))
    assert leaving["metadata"]["finalizers"] == [FINALIZERS[propagation]]
    assert is_terminating(leaving)


async def test_a_pod_that_runs_nowhere_goes_at_once(client: Client, namespace: str) -> None:
    await client.create(POD, a_pod(namespace))
    await client.delete(pod_key(namespace))
    with pytest.raises(NotFound):
        await client.get(pod_key(namespace))


async def test_a_pod_that_runs_stays_until_its_node_lets_it_go(client: Client, namespace: str) -> None:
    await client.create(POD, a_pod(namespace))
    await client.bind(pod_key(namespace), "some-node")
    await client.delete(pod_key(namespace), grace=20)
    leaving = await client.get(pod_key(namespace))
    assert leaving["metadata"]["deletionGracePeriodSeconds"] == 20
    await client.delete(pod_key(namespace), grace=60)
    assert (await client.get(pod_key(namespace)))["metadata"]["deletionGracePeriodSeconds"] == 20
    await client.delete(pod_key(namespace), grace=5)
    assert (await client.get(pod_key(namespace)))["metadata"]["deletionGracePeriodSeconds"] == 5
    await client.delete(pod_key(namespace), grace=0)
    with pytest.raises(NotFound):
        await client.get(pod_key(namespace))


async def test_a_pod_that_has_finished_goes_at_once(client: Client, namespace: str) -> None:
    await client.create(POD, a_pod(namespace))
    await client.bind(pod_key(namespace), "some-node")
    await client.patch(pod_key(namespace), {"status": {"phase": "Succeeded"}}, subresource="status")
    await client.delete(pod_key(namespace))
    with pytest.raises(NotFound):
        await client.get(pod_key(namespace))


async def test_a_deleted_namespace_takes_nothing_in(client: Client, namespace: str) -> None:
    await client.delete(Key(NAMESPACE, "", namespace))
    leaving = await client.get(Key(NAMESPACE, "", namespace))
    assert leaving["status"]["phase"] == "Terminating"


# --- binding ---


async def test_a_pod_is_bound_once(client: Client, namespace: str) -> None:
    created = await client.create(POD, a_pod(namespace))
    with pytest.raises(Conflict):
        await client.bind(pod_key(namespace), "some-node", uid="another")
    await client.bind(pod_key(namespace), "some-node", uid=uid_of(created))
    bound = await client.get(pod_key(namespace))
    assert bound["spec"]["nodeName"] == "some-node"
    assert [(each["type"], each["status"]) for each in bound["status"]["conditions"]] == [
        ("PodScheduled", "True")
    ]
    with pytest.raises(Conflict, match='pod p is already assigned to node "some-node"'):
        await client.bind(pod_key(namespace), "other-node")
    with pytest.raises(NotFound):
        await client.bind(pod_key(namespace, "q"), "some-node")


# --- selecting ---


async def test_objects_are_selected_by_labels_and_fields(client: Client, namespace: str) -> None:
    for name, app in (("c", "web"), ("a", "web"), ("b", "db")):
        await client.create(CONFIG_MAP, a_map(namespace, name, {"app": app}))

    async def names(labels: str = "app", fields: str = "") -> list[str]:
        listing = await client.select(CONFIG_MAP, namespace, labels=labels, fields=fields)
        return [name_of(obj) for obj in listing.items]

    assert await names() == ["a", "b", "c"]
    assert await names("app in (web,other)") == ["a", "c"]
    assert await names("app,app!=web") == ["b"]
    assert await names("app=web", "metadata.name!=a") == ["c"]
    assert await names(fields="metadata.name=b") == ["b"]


async def test_all_namespaces_can_be_listed_at_once(client: Client, namespace: str) -> None:
    await client.create(CONFIG_MAP, a_map(namespace, labels={"in": namespace}))
    (found,) = (await client.select(CONFIG_MAP, labels=f"in={namespace}")).items
    assert (found["apiVersion"], found["kind"], found["metadata"]["namespace"]) == (
        "v1",
        "ConfigMap",
        namespace,
    )


async def test_pages_are_all_true_at_the_moment_of_the_first(client: Client, namespace: str) -> None:
    for name in "abcde":
        await client.create(CONFIG_MAP, a_map(namespace, name, {"paged": "yes"}))
    first = await client.select(CONFIG_MAP, namespace, labels="paged", limit=2)
    await client.delete(map_key(namespace, "d"))
    await client.create(CONFIG_MAP, a_map(namespace, "cc", {"paged": "yes"}))
    second = await client.select(CONFIG_MAP, namespace, labels="paged", limit=2, proceed=first.proceed)
    third = await client.select(CONFIG_MAP, namespace, labels="paged", limit=2, proceed=second.proceed)
    assert [[name_of(obj) for obj in page.items] for page in (first, second, third)] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
    ]
    assert third.proceed == ""


BAD_SELECTORS = {
    "labels that do not parse": ({"labels": "a in"}, "unable to parse requirement"),
    "fields that do not parse": ({"fields": "metadata.name"}, "can't understand 'metadata.name'"),
    "fields that cannot be selected by": ({"fields": "data.x=1"}, '"data.x" is not a known field selector'),
}


@pytest.mark.parametrize(("asked", "complaint"), BAD_SELECTORS.values(), ids=BAD_SELECTORS.keys())
async def test_bad_selectors_are_refused(client: Client, asked: dict[str, str], complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint):
        await client.select(
            CONFIG_MAP, "default", labels=asked.get("labels", ""), fields=asked.get("fields", "")
        )


# --- watching ---


async def seen(
    client: Client, namespace: str, since: str, count: int, labels: str = ""
) -> list[tuple[str, str]]:
    events: list[WatchEvent] = []
    with anyio.fail_after(20):
        async with client.watch(CONFIG_MAP, namespace, since=since, labels=labels) as stream:
            while len(events) < count:
                event = await anext(stream)
                events += [event] if event.type != "BOOKMARK" else []
    return [(event.type, name_of(event.obj)) for event in events]


async def test_a_watch_tells_what_happened_since(client: Client, namespace: str) -> None:
    since = (await client.select(CONFIG_MAP, namespace)).revision
    await client.create(CONFIG_MAP, a_map(namespace, "mine"))
    await client.patch(map_key(namespace, "mine"), {"data": {"size": "1"}})
    await client.delete(map_key(namespace, "mine"))
    mine = [each for each in await seen(client, namespace, since, 3) if each[1] == "mine"]
    assert mine == [("ADDED", "mine"), ("MODIFIED", "mine"), ("DELETED", "mine")]


async def test_a_watch_tells_what_happens_while_it_waits(client: Client, namespace: str) -> None:
    since = (await client.select(CONFIG_MAP, namespace)).revision
    async with client.watch(CONFIG_MAP, namespace, since=since, labels="live") as stream:
        for number in range(3):
            created = await client.create(CONFIG_MAP, a_map(namespace, f"a{number}", {"live": "yes"}))
            with anyio.fail_after(20):
                event = await anext(stream)
            assert (event.type, event.obj) == ("ADDED", created)


async def test_a_watch_through_a_selector_sees_things_enter_and_leave(client: Client, namespace: str) -> None:
    since = (await client.select(CONFIG_MAP, namespace)).revision
    await client.create(CONFIG_MAP, a_map(namespace))
    for label in ("yes", "no", "yes"):
        await client.patch(map_key(namespace), {"metadata": {"labels": {"chosen": label}}})
    events = await seen(client, namespace, since, 3, labels="chosen=yes")
    assert events == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "a")]
