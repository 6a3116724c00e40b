"""The wire itself: doors, bodies, forms and streams, for clients that are not kubectl."""

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import pytest
from aiohttp import ClientSession, TCPConnector

from fullrank.api.meta import Json
from fullrank.api.scheme import CONFIG_MAP, POD
from fullrank.client.port import Key
from tests.contract.serving import Home, home

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


class Wire:
    """A plain HTTP client with the token."""

    def __init__(self, served: Home, session: ClientSession) -> None:
        self.served = served
        self.session = session

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        if isinstance(body, dict | list):
            headers.setdefault("Content-Type", "application/json")
            body = json.dumps(body)
        if isinstance(body, bytes):
            body = BytesIO(body)
        async with self.session.request(
            method, self.served.bound.url + path, data=body, headers=headers
        ) as answer:
            raw = await answer.read()
            is_json = answer.content_type == "application/json"
            return answer.status, json.loads(raw) if is_json else raw.decode()

    @asynccontextmanager
    async def watch(self, path: str, **headers: str) -> AsyncIterator[AsyncIterator[Json]]:
        async with self.session.get(self.served.bound.url + path, headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            yield (json.loads(line) async for line in answer.content)


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[Wire]:
    async with home(tmp_path) as served:
        context = ssl.create_default_context(cafile=str(served.credentials.ca))
        token = {"Authorization": f"Bearer {served.credentials.token}"}
        async with ClientSession(connector=TCPConnector(ssl=context), headers=token) as session:
            yield Wire(served, session)


def config_map(name: str, **data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


DOORS = {
    "/livez": 200,
    "/readyz": 200,
    "/healthz": 401,
    "/version": 200,
    "/api": 401,
    PODS: 401,
    "/": 401,
    "/x": 401,
}


@pytest.mark.parametrize(("path", "status"), DOORS.items())
async def test_only_three_paths_are_open_to_everybody(wire: Wire, path: str, status: int) -> None:
    assert (await wire.ask("GET", path, Authorization=""))[0] == status
    assert (await wire.ask("GET", path, Authorization="Bearer wrong"))[0] == status


# Nine lines, each ten times the one before.
BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter, letter, b",".join([b"*%c" % (letter - 1)] * 10)) for letter in b"bcdefghi"
)
BAD_BODIES: dict[str, tuple[str, bytes, int, str]] = {
    "broken JSON": ("application/json", b"{bad", 400, "must be of type ConfigMap): couldn't get version/kind; json"),
    "nothing": ("application/json", b"", 400, "unexpected end of JSON input"),
    "a list": ("application/json", b"[]", 400, "it is not an object"),
    "JSON nested for ever": ("application/json", b'{"data":' * 100_000, 400, "json parse error"),
    "not UTF-8": ("application/json", b'{"kind":"\xff"}', 400, "json parse error"),
    "another kind": ("application/json", b'{"kind":"Pod","apiVersion":"v1"}', 400, "does not match the expected kind"),
    "text for metadata": ("application/json", b'{"metadata":"x"}', 400, "metadata must be a v1.ObjectMeta"),
    "broken YAML": ("application/yaml", b"a: [", 400, "not YAML"),
    "a YAML bomb": ("application/yaml", BOMB, 400, "too large once its aliases are written out"),
    "a YAML key that is a number": ("application/yaml", b"{1: 2}", 400, "the key 1 is not text"),
    "XML": ("application/xml", b"<a/>", 415, "accepted media types include: application/json, application/yaml"),
    "four megabytes": ("application/json", b" " * 4_000_000, 413, "Request entity too large: limit is 3145728"),
}  # fmt: skip


@pytest.mark.parametrize(("media", "body", "status", "message"), BAD_BODIES.values(), ids=BAD_BODIES)
async def test_a_bad_body_is_told_what_is_wrong_with_it(
    wire: Wire, media: str, body: bytes, status: int, message: str
) -> None:
    code, told = await wire.ask("POST", MAPS, body, **{"Content-Type": media})
    assert (code, told["kind"], told["code"]) == (status, "Status", status)
    assert message in told["message"]


async def test_yaml_is_taken_as_well_as_json(wire: Wire) -> None:
    body = b"metadata: {name: c}\ndata: {when: 2026-01-01}\n"
    code, created = await wire.ask("POST", MAPS, body, **{"Content-Type": "application/yaml"})
    assert (code, created["data"]) == (201, {"when": "2026-01-01"})


REFUSALS: dict[str, tuple[str, str, int, str]] = {
    "an unknown group": (
        "GET",
        "/apis/apps/v1/deployments",
        404,
        "the server could not find the requested resource",
    ),
    "an unknown kind": ("GET", "/api/v1/things", 404, "the server could not find the requested resource"),
    "an unknown part": ("GET", f"{PODS}/x/frob", 404, "the server could not find the requested resource"),
    "a missing object": ("GET", f"{PODS}/x", 404, 'pods "x" not found'),
    "too long a path": ("GET", f"{PODS}/x/log/y", 404, "the server could not find the requested resource"),
    "a verb that is not served": ("PUT", PODS, 405, "the server does not allow this method"),
    "a create in no namespace": ("POST", "/api/v1/pods", 405, "the server does not allow this method"),
    "a limit that is no number": ("GET", f"{PODS}?limit=x", 400, 'limit: "x" is not a number'),
    "a selector that is none": ("GET", f"{PODS}?labelSelector=a%3D%3D%3Db", 400, ""),
    "a field nobody selects by": ("GET", f"{PODS}?fieldSelector=foo%3Dbar", 400, "foo"),
    "a page that is none": ("GET", f"{PODS}?continue=x", 400, "continue"),
    "a watch from nowhere": ("GET", f"{PODS}?watch=1&resourceVersion=x", 400, "resourceVersion"),
    "a dry run that is none": ("DELETE", f"{PODS}/x?dryRun=x", 422, "dryRun"),
    "no such propagation": ("DELETE", f"{PODS}/x?propagationPolicy=Up", 422, "propagationPolicy"),
}


@pytest.mark.parametrize(("method", "path", "status", "message"), REFUSALS.values(), ids=REFUSALS)
async def test_what_cannot_be_done_is_a_status(
    wire: Wire, method: str, path: str, status: int, message: str
) -> None:
    code, told = await wire.ask(method, path)
    assert (code, told["kind"], told["status"]) == (status, "Status", "Failure")
    assert message in told["message"]


async def test_an_error_says_what_it_is_about(wire: Wire) -> None:
    _, missing = await wire.ask("GET", "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs/x")
    assert missing["reason"] == "NotFound"
    assert missing["details"] == {"name": "x", "group": "kubeflow.org", "kind": "pytorchjobs"}
    _, invalid = await wire.ask("POST", PODS, {"metadata": {"name": "x"}, "spec": {}})
    assert invalid["details"] == {
        "name": "x",
        "kind": "Pod",
        "causes": [{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.containers"}],
    }


async def test_a_long_list_comes_in_pages(wire: Wire) -> None:
    for number in range(5):
        await wire.ask("POST", "/api/v1/namespaces/kubeflow/configmaps", config_map(f"c{number}"))
    path, names = "/api/v1/namespaces/kubeflow/configmaps?limit=2", []
    proceed = ""
    while True:
        _, page = await wire.ask("GET", f"{path}&continue={proceed}" if proceed else path)
        names += [item["metadata"]["name"] for item in page["items"]]
        proceed = page["metadata"].get("continue", "")
        if not proceed:
            break
        assert page["metadata"]["remainingItemCount"] == 6 - len(names)
    assert names == ["c0", "c1", "c2", "c3", "c4", "kube-root-ca.crt"]


async def test_forms_of_an_answer(wire: Wire) -> None:
    await wire.ask("POST", MAPS, config_map("c", a="b"))
    _, table = await wire.ask("GET", f"{MAPS}/c?includeObject=Object", **TABLE)
    assert table["rows"][0]["cells"][:2] == ["c", 1]
    assert table["rows"][0]["object"]["data"] == {"a": "b"}
    partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    _, listed = await wire.ask("GET", MAPS, Accept=partial)
    assert listed["kind"] == "PartialObjectMetadataList"
    assert all("data" not in item for item in listed["items"])


async def test_a_watch_begins_with_what_there_is_and_says_when_that_was_all(wire: Wire) -> None:
    await wire.ask("POST", MAPS, config_map("c"))
    path = f"{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with wire.watch(path) as events:
        first = [await anext(events) for _ in range(3)]
        assert [event["type"] for event in first] == ["ADDED", "ADDED", "BOOKMARK"]
        assert first[-1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        await wire.ask("DELETE", f"{MAPS}/c")
        last = await anext(events)
        assert (last["type"], last["object"]["metadata"]["name"]) == ("DELETED", "c")


async def test_a_watch_goes_on_where_a_list_ended(wire: Wire) -> None:
    _, listed = await wire.ask("GET", MAPS)
    await wire.ask("POST", MAPS, config_map("c"))
    revision = listed["metadata"]["resourceVersion"]
    async with wire.watch(f"{MAPS}?watch=true&resourceVersion={revision}") as events:
        event = await anext(events)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "ConfigMap")


async def test_a_watch_of_rows_sends_its_header_once(wire: Wire) -> None:
    await wire.ask("POST", MAPS, config_map("c"))
    async with wire.watch(f"{MAPS}?watch=1", **TABLE) as events:
        first, second = await anext(events), await anext(events)
    assert first["object"]["columnDefinitions"]
    assert second["object"]["columnDefinitions"] == []
    assert second["object"]["rows"][0]["cells"][0] == "kube-root-ca.crt"


async def test_a_watch_ends_when_its_time_is_up(wire: Wire) -> None:
    async with wire.watch(f"{MAPS}?watch=1&timeoutSeconds=1") as events:
        assert len([event async for event in events]) == 1


async def test_a_watch_from_before_history_is_told_to_list_again(wire: Wire) -> None:
    store = wire.served.registry.store
    store.compacted = store.revision
    code, told = await wire.ask("GET", f"{MAPS}?watch=1&resourceVersion=1")
    assert (code, told["reason"]) == (410, "Expired")


async def test_watches_end_politely_when_the_server_closes(tmp_path: Path) -> None:
    async with home(tmp_path) as served:
        context = ssl.create_default_context(cafile=str(served.credentials.ca))
        token = {"Authorization": f"Bearer {served.credentials.token}"}
        session = ClientSession(connector=TCPConnector(ssl=context), headers=token)
        answer = await session.get(f"{served.bound.url}{MAPS}?watch=1&sendInitialEvents=false")
        assert answer.status == 200
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(answer.read)
                wire = Wire(served, session)
                await wire.ask("POST", MAPS, config_map("last"))
                served.streams.close()
    assert json.loads(await answer.read())["object"]["metadata"]["name"] == "last"
    await session.close()


async def test_a_pod_is_bound_once(wire: Wire) -> None:
    spec = {"containers": [{"name": "a", "image": "b"}]}
    await wire.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "here"}}
    assert (await wire.ask("POST", f"{PODS}/p/binding", binding))[0] == 201
    assert wire.served.registry.get(Key(POD, "default", "p")).obj["spec"]["nodeName"] == "here"
    code, told = await wire.ask("POST", f"{PODS}/p/binding", binding)
    assert (code, told["reason"]) == (409, "Conflict")
    assert (await wire.ask("POST", f"{PODS}/p/binding", {"target": 5}))[0] == 400


async def test_deleting_takes_its_options_from_the_body_or_the_query(wire: Wire) -> None:
    await wire.ask("POST", MAPS, config_map("c"))
    code, told = await wire.ask("DELETE", f"{MAPS}/c", {"preconditions": {"uid": "other"}})
    assert (code, told["reason"]) == (409, "Conflict")
    assert (await wire.ask("DELETE", f"{MAPS}/c?dryRun=All"))[0] == 200
    code, done = await wire.ask("DELETE", f"{MAPS}/c?propagationPolicy=Background")
    assert (code, done["status"], done["details"]["kind"]) == (200, "Success", "configmaps")


async def test_a_collection_is_deleted_by_its_labels(wire: Wire) -> None:
    for name in ("a", "b"):
        labelled = {**config_map(name), "metadata": {"name": name, "labels": {"it": name}}}
        await wire.ask("POST", MAPS, labelled)
    code, deleted = await wire.ask("DELETE", f"{MAPS}?labelSelector=it%3Da")
    assert (code, [item["metadata"]["name"] for item in deleted["items"]]) == (200, ["a"])
    left = wire.served.registry.select(CONFIG_MAP, "default").records
    assert [record.obj["metadata"]["name"] for record in left] == ["b", "kube-root-ca.crt"]


async def test_logs_are_text_whatever_is_accepted_and_flags_may_be_pythonic(wire: Wire) -> None:
    spec = {"containers": [{"name": "a", "image": "b"}, {"name": "z", "image": "b"}]}
    await wire.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    done = {"state": {"terminated": {"exitCode": 0}}}
    status = {"containerStatuses": [{"name": "a", **done}, {"name": "z", **done}]}
    await wire.served.registry.patch(Key(POD, "default", "p"), {"status": status}, subresource="status")
    code, told = await wire.ask("GET", f"{PODS}/p/log")
    assert told["message"] == "a container name must be specified for pod p, choose one of: [a z]"
    accept = {"Accept": "application/json"}
    assert await wire.ask("GET", f"{PODS}/p/log?container=z&tailLines=1", **accept) == (200, "z 9\n")
    wire.served.logs.more.set()
    assert await wire.ask("GET", f"{PODS}/p/log?container=a&follow=True&tailLines=1") == (200, "a 9\nmore\n")
    assert await wire.ask("GET", f"{PODS}/p/log?container=a&limitBytes=7") == (200, "a 0\na 1")
    code, told = await wire.ask("GET", f"{PODS}/p/log?container=a&previous=true")
    assert (code, told["message"]) == (400, 'previous terminated container "a" in pod "p" not found')
    assert (await wire.ask("GET", f"{PODS}/p/log?container=a&sinceTime=noon"))[0] == 422


async def test_a_status_of_the_wrong_shape_is_refused_at_the_door(wire: Wire) -> None:
    spec = {"containers": [{"name": "a", "image": "b"}]}
    await wire.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": spec})
    merge = {"Content-Type": "application/merge-patch+json"}
    code, told = await wire.ask("PATCH", f"{PODS}/p/status", {"status": {"containerStatuses": 5}}, **merge)
    assert (code, told["details"]["causes"][0]["field"]) == (422, "status.containerStatuses")
    replaced = {"metadata": {"name": "p"}, "status": "fine"}
    assert (await wire.ask("PUT", f"{PODS}/p/status", replaced))[0] == 400
    assert (await wire.ask("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, **merge))[0] == 200
    assert (await wire.ask("GET", PODS, **TABLE))[1]["rows"][0]["cells"][2] == "Running"


async def test_an_event_is_the_same_in_both_groups(wire: Wire) -> None:
    about = {"kind": "Pod", "name": "p", "namespace": "default"}
    event = {
        "metadata": {"name": "e"},
        "regarding": about,
        "note": "seen",
        "reason": "Seen",
        "type": "Normal",
    }
    newer = "/apis/events.k8s.io/v1/namespaces/default/events"
    code, created = await wire.ask("POST", newer, event | {"eventTime": "2026-01-01T00:00:00.000000Z"})
    assert (code, created["apiVersion"], created["note"]) == (201, "events.k8s.io/v1", "seen")
    _, older = await wire.ask("GET", "/api/v1/namespaces/default/events/e")
    assert (older["apiVersion"], older["message"], older["involvedObject"]) == ("v1", "seen", about)
    merge = {"Content-Type": "application/merge-patch+json"}
    _, patched = await wire.ask("PATCH", f"{newer}/e", {"note": "again"}, **merge)
    assert patched["note"] == "again"
    _, listed = await wire.ask("GET", f"{newer}?fieldSelector=regarding.name%3Dp")
    assert [(each["kind"], each["note"]) for each in listed["items"]] == [("Event", "again")]
    async with wire.watch(f"{newer}?watch=1") as events:
        first = await anext(events)
    assert (first["type"], first["object"]["note"]) == ("ADDED", "again")
    _, table = await wire.ask("GET", f"{newer}/e", **TABLE)
    assert table["rows"][0]["cells"][1:4] == ["Normal", "Seen", "pod/p"]
    await wire.ask("DELETE", f"{newer}/e")
    assert (await wire.ask("GET", "/api/v1/namespaces/default/events/e"))[0] == 404


APPLY = {"Content-Type": "application/apply-patch+yaml"}


async def test_what_others_own_is_not_applied_over(wire: Wire) -> None:
    mine, yours = f"{MAPS}/c?fieldManager=me", f"{MAPS}/c?fieldManager=you"
    code, made = await wire.ask("PATCH", mine, config_map("c", a="1"), **APPLY)
    assert (code, made["metadata"]["managedFields"][0]["manager"]) == (201, "me")
    code, told = await wire.ask("PATCH", yours, config_map("c", a="2"), **APPLY)
    assert (code, told["reason"], told["details"]) == (
        409,
        "Conflict",
        {"causes": [{"reason": "FieldManagerConflict", "message": 'conflict with "me"', "field": ".data.a"}]},
    )
    code, forced = await wire.ask("PATCH", f"{yours}&force=true", config_map("c", a="2"), **APPLY)
    assert (code, forced["data"]) == (200, {"a": "2"})
    again, same = await wire.ask("PATCH", yours, config_map("c", a="2"), **APPLY)
    assert (again, same["metadata"]["resourceVersion"]) == (200, forced["metadata"]["resourceVersion"])


BAD_APPLIES: dict[str, tuple[str, Json, int, str]] = {
    "nobody's": ("", config_map("c"), 422, "fieldManager: Required value: is required for apply patch"),
    "without a kind": (
        "fieldManager=me",
        {"metadata": {"name": "c"}},
        400,
        "must have an apiVersion and a kind",
    ),
    "of another name": ("fieldManager=me", config_map("d"), 400, "does not match the name on the URL (c)"),
    "with owners": (
        "fieldManager=me",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "c", "managedFields": [{"manager": "x"}]},
        },
        400,
        "metadata.managedFields must be nil",
    ),
    "by too long a name": (f"fieldManager={'x' * 129}", config_map("c"), 422, "fieldManager: Too long"),
    "strictly, with unknown fields": (
        "fieldManager=me&fieldValidation=Strict",
        config_map("c") | {"dta": {}},
        400,
        'strict decoding error: unknown field "dta"',
    ),
}


@pytest.mark.parametrize(("query", "config", "status", "message"), BAD_APPLIES.values(), ids=BAD_APPLIES)
async def test_a_bad_apply_is_told_what_is_wrong(
    wire: Wire, query: str, config: Json, status: int, message: str
) -> None:
    code, told = await wire.ask("PATCH", f"{MAPS}/c?{query}", config, **APPLY)
    assert code == status
    assert message in told["message"]


async def test_writers_are_signed_by_their_agent_where_they_give_no_name(wire: Wire) -> None:
    _, made = await wire.ask("POST", MAPS, config_map("c", a="1"), **{"User-Agent": "robot/1.2 (linux)"})
    (entry,) = made["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == ("robot", "Update")
    assert entry["fieldsV1"] == {"f:data": {".": {}, "f:a": {}}}


async def test_fields_named_twice_are_told(wire: Wire) -> None:
    body = b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"c"},"data":{"a":"1","a":"2"}}'
    media = {"Content-Type": "application/json"}
    code, told = await wire.ask("POST", f"{MAPS}?fieldValidation=Strict", body, **media)
    assert (code, told["message"].endswith('strict decoding error: duplicate field "data.a"')) == (400, True)
    code, made = await wire.ask("POST", MAPS, body, **media)
    assert (code, made["data"]) == (201, {"a": "2"})


async def test_who_acts_as_somebody_else_may_do_nothing(wire: Wire) -> None:
    code, told = await wire.ask("GET", PODS, **{"Impersonate-User": "jane"})
    assert (code, told["reason"]) == (403, "Forbidden")
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    _, asked = await wire.ask("POST", review, {"spec": {}}, **{"Impersonate-User": "jane"})
    assert asked["status"]["allowed"] is False
    _, own = await wire.ask("POST", review, {"spec": {}})
    assert own["status"] == {"allowed": True}


async def test_a_review_is_no_table(wire: Wire) -> None:
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    only_table = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    assert (await wire.ask("POST", review, {"spec": {}}, **only_table))[0] == 406


async def test_no_tokens_are_issued(wire: Wire) -> None:
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    assert (await wire.ask("POST", f"{accounts}/default/token", {"spec": {}}))[0] == 404


LISTS_AT: dict[str, tuple[str, int, object]] = {
    "exactly then": ("resourceVersion={then}&resourceVersionMatch=Exact", 200, ["c", "kube-root-ca.crt"]),
    "no older than then": (
        "resourceVersion={then}&resourceVersionMatch=NotOlderThan",
        200,
        ["kube-root-ca.crt"],
    ),
    "then, without a match": ("resourceVersion={then}", 200, ["kube-root-ca.crt"]),
    "then, in pages": ("resourceVersion={then}&limit=5", 200, ["c", "kube-root-ca.crt"]),
    "in the future": ("resourceVersion=999999", 410, "Too large resource version: 999999, current: {now}"),
    "exactly before history": (
        "resourceVersion=1&resourceVersionMatch=Exact",
        410,
        "The resourceVersion for the provided list is too old.",
    ),
    "a match of nothing": (
        "resourceVersionMatch=Exact",
        422,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: '
        "resourceVersionMatch is forbidden unless resourceVersion is provided",
    ),
    "a rough match": (
        "resourceVersion=1&resourceVersionMatch=Roughly",
        422,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Roughly": '
        'supported values: "Exact", "NotOlderThan", ""',
    ),
}


async def test_a_list_may_name_the_revision_it_wants(wire: Wire) -> None:
    _, made = await wire.ask("POST", MAPS, config_map("c"))
    await wire.ask("DELETE", f"{MAPS}/c")
    store = wire.served.registry.store
    then, now = made["metadata"]["resourceVersion"], store.revision
    store.compacted = int(then) - 1
    for words, (query, status, wanted) in LISTS_AT.items():
        code, told = await wire.ask("GET", f"{MAPS}?{query.format(then=then)}")
        found = [item["metadata"]["name"] for item in told["items"]] if code == 200 else told["message"]
        wish = wanted.format(now=now) if isinstance(wanted, str) else wanted
        assert (words, code, found) == (words, status, wish)


async def test_warnings_are_words_that_a_header_can_hold_and_not_too_many(wire: Wire) -> None:
    strange = {"a\n\x00\x15b": 1, "b电": 2} | {f"unknown-{number}": number for number in range(500)}
    body = json.dumps({"metadata": {"name": "m"}, **strange})
    sent = {"Content-Type": "application/json"}
    async with wire.session.post(wire.served.bound.url + MAPS, data=body, headers=sent) as answer:
        warned = answer.headers.getall("Warning")
    assert answer.status == 201
    assert warned[:2] == [
        '299 - "unknown field \\"a\\\\x0a\\\\x00\\\\x15b\\""',
        '299 - "unknown field \\"b\\\\u7535\\""',
    ]
    assert len(warned) == 50
