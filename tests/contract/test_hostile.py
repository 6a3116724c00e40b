"""Whatever comes to the door, it answers 4xx, says so in a Status, writes no traceback, and goes on.

Every route and verb is closed to those it does not know; every body, header and query may be written by an enemy.
"""

import asyncio
import gzip
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientError, ClientSession, TCPConnector
from yarl import URL

from fullrank.clock import SystemClock
from fullrank.controlplane.pki import credentials
from tests.contract.hostile import POD_SPEC, Door, a_replica, all_routes, house_with_a_door, mutations

pytestmark = pytest.mark.anyio

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/kubeflow.org/v1/namespaces/default/pytorchjobs"
AIOHTTP = "aiohttp.server"  # which a home keeps quiet
JSON = "application/json"
YAML = "application/yaml"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
STEPS = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
async def door(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Door]:
    async with house_with_a_door(tmp_path) as door:
        yield door
    assert [
        record.getMessage() for record in caplog.records if record.exc_info and record.name != AIOHTTP
    ] == []


# --- who may come in ---


async def test_no_route_and_no_verb_opens_to_strangers(door: Door, tmp_path: Path) -> None:
    stranger = credentials(tmp_path / "elsewhere", SystemClock().now())
    async with door.session(token="") as nobody, door.session(token="wrong") as guesser:
        for method, path in all_routes(door):
            for session in (nobody, guesser):
                async with session.request(method, door.url + path) as answer:
                    assert answer.status == 401, f"{method} {path}: {answer.status}"
        for path in ("/livez", "/readyz", "/version"):
            async with nobody.get(door.url + path) as answer:
                assert answer.status == 200
    tls = ssl.create_default_context(cafile=str(door.keys.ca))
    tls.load_cert_chain(stranger.client_certificate, stranger.client_key)
    async with ClientSession(connector=TCPConnector(ssl=tls)) as forger:
        with pytest.raises(ClientError):
            await forger.get(door.url + PODS)


async def test_a_wrong_token_is_not_mended_by_a_right_certificate(door: Door) -> None:
    tls = ssl.create_default_context(cafile=str(door.keys.ca))
    tls.load_cert_chain(door.keys.client_certificate, door.keys.client_key)
    async with ClientSession(connector=TCPConnector(ssl=tls)) as session:
        async with session.get(door.url + PODS) as answer:
            assert answer.status == 200
        for wrong in ("Bearer wrong", "Bearer", "Basic YTpi", "bearer  ", "Negotiate x", "x" * 4000):
            async with session.get(door.url + PODS, headers={"Authorization": wrong}) as answer:
                assert answer.status == 401, wrong


# --- what they bring ---

DEEP = 200_000
BOMB = b"a: &a [x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c]\n" % (c, c, c - 1, c - 1) for c in range(ord("b"), 123)
)
BODIES: dict[str, tuple[str, bytes]] = {
    "objects nested for ever": (JSON, b'{"a":' * DEEP + b"1" + b"}" * DEEP),
    "lists nested for ever": (JSON, b'{"a":' + b"[" * DEEP + b"]" * DEEP + b"}"),
    "nested just a lot": (JSON, b'{"metadata":{"name":"x"},"data":' + b'{"a":' * 500 + b"1" + b"}" * 501),
    "a number of five thousand digits": (JSON, b'{"metadata":{"name":"x"},"data":{"a":' + b"9" * 5000 + b"}}"),
    "a number beyond all floats": (JSON, b'{"metadata":{"name":"x","generation":1e99999}}'),
    "NaN": (JSON, b'{"metadata":{"name":"x"},"data":{"a":NaN}}'),
    "Infinity": (JSON, b'{"metadata":{"name":"x"},"data":{"a":-Infinity}}'),
    "a lone surrogate": (JSON, b'{"metadata":{"name":"x"},"data":{"a":"\\ud800"}}'),
    "bytes that are no text": (JSON, b'{"metadata":{"name":"\xc3\x28"}}'),
    "NUL in a name": (JSON, b'{"metadata":{"name":"a\\u0000b"}}'),
    "NUL between": (JSON, b'{"metadata":{"name":"x"}}\x00'),
    "two objects": (JSON, b'{"metadata":{"name":"x"}}{"metadata":{"name":"y"}}'),
    "text after the end": (JSON, b'{"metadata":{"name":"x"}} x'),
    "nothing but a number": (JSON, b"5"),
    "nothing but null": (JSON, b"null"),
    "a byte order mark": (JSON, b'\xef\xbb\xbf{"metadata":{"name":"x"}}'),
    "UTF-16": (JSON, '{"metadata":{"name":"x"}}'.encode("utf-16")),
    "a name that climbs": (JSON, b'{"metadata":{"name":"../../etc/passwd"}}'),
    "a name too long": (JSON, b'{"metadata":{"name":"' + b"x" * 300 + b'"}}'),
    "no name": (JSON, b'{"metadata":{}}'),
    "another namespace": (JSON, b'{"metadata":{"name":"x","namespace":"kube-system"}}'),
    "metadata that is a list": (JSON, b'{"metadata":[]}'),
    "labels that are numbers": (JSON, b'{"metadata":{"name":"x","labels":{"a":1}}}'),
    "YAML nested for ever": (YAML, b"a: " + b"[" * 5000),
    "a YAML bomb": (YAML, BOMB),
    "a YAML loop": (YAML, b"metadata: {name: x}\ndata: &a {b: *a}\n"),
    "YAML that runs code": (YAML, b"metadata: {name: !!python/object/apply:os.system ['true']}\n"),
    "YAML bytes": (YAML, b"metadata: {name: x}\ndata: {a: !!binary aGVsbG8=}\n"),
    "a YAML set": (YAML, b"metadata: {name: x}\ndata: !!set {a, b}\n"),
    "a YAML time": (YAML, b"metadata: {name: x}\ndata: {a: !!timestamp 2026-01-01}\n"),
    "YAML pairs": (YAML, b"metadata: {name: x}\ndata: !!pairs [a: b]\n"),
    "a YAML number beyond 64 bits": (YAML, b"metadata: {name: x}\ndata: {a: 100000000000000000000000}\n"),
    "a YAML lone surrogate": (YAML, b'metadata: {name: x}\ndata: {a: "\\ud800"}\n'),
    "two YAML documents": (YAML, b"metadata: {name: x}\n---\nmetadata: {name: y}\n"),
    "a YAML key that is a list": (YAML, b"? [a]\n: b\n"),
    "YAML with tabs": (YAML, b"a:\n\t- b\n"),
    "YAML control characters": (YAML, b"a: \x01\n"),
    "protobuf cut short": ("application/vnd.kubernetes.protobuf", b"k8s\x00\x0a\x0c\x0a\x02v1\x12"),
    "protobuf that is none": ("application/vnd.kubernetes.protobuf", b"\xff" * 40),
    "protobuf that counts too far": ("application/vnd.kubernetes.protobuf", b"k8s\x00\x12" + b"\xff" * 9 + b"\x01"),
    "a media type with nonsense": ("application/json; charset=nosuch; x", b"{"),
    "no media type we know": ("multipart/form-data; boundary=x", b"--x--"),
    "a form": ("application/x-www-form-urlencoded", b"a=b"),
}  # fmt: skip


async def test_a_hostile_body_is_refused(door: Door) -> None:
    answers = {words: await door.ask("POST", MAPS, body, media) for words, (media, body) in BODIES.items()}
    assert {words: told for words, told in answers.items() if not is_refusal(*told)} == {}


def is_refusal(code: int, told: Any) -> bool:
    return 400 <= code < 500 and (told["kind"], told["code"]) == ("Status", code)


async def test_a_body_that_unpacks_to_gigabytes_is_refused(door: Door) -> None:
    packed = gzip.compress(bytes(200_000_000), 9)
    code, _ = await door.ask("POST", MAPS, packed, JSON, **{"Content-Encoding": "gzip"})
    assert code == 413
    code, _ = await door.ask("POST", MAPS, b"not gzip", JSON, **{"Content-Encoding": "gzip"})
    assert code == 400


NINES = "9" * 5000
QUERIES: dict[str, str] = {
    "a limit beyond all numbers": f"{PODS}?limit={NINES}",
    "a limit in letters": f"{PODS}?limit=ten",
    "a token that is no token": f"{PODS}?continue=%00%ff",
    "a token that is JSON only": f"{PODS}?continue=e30",
    "a token from the future": f"{PODS}?limit=1&continue=eyJydiI6OTk5OTk5LCJzdGFydCI6IiJ9",
    "a token of nested lists": f"{PODS}?continue=W1tbW1tbW1tbW1tb",
    "a token with letters beyond ASCII": f"{PODS}?continue=%E6%97%A5",
    "a revision of five thousand digits": f"{PODS}?watch=1&resourceVersion={NINES}",
    "a revision in letters": f"{PODS}?watch=1&resourceVersion=abc",
    "a revision below nothing": f"{PODS}?watch=1&resourceVersion=-1",
    "a revision from the future": f"{PODS}?watch=1&resourceVersion=99999999",
    "a list at a revision in letters": f"{PODS}?resourceVersion=abc",
    "a list at a revision of five thousand digits": f"{PODS}?resourceVersion={NINES}",
    "a match without a revision": f"{PODS}?resourceVersionMatch=Exact",
    "a match that is none": f"{PODS}?resourceVersion=1&resourceVersionMatch=Roughly",
    "exactly nothing": f"{PODS}?resourceVersion=0&resourceVersionMatch=Exact",
    "a page and a match": f"{PODS}?continue=e30&resourceVersion=1&resourceVersionMatch=Exact",
    "a timeout in letters": f"{PODS}?watch=1&timeoutSeconds=soon",
    "a selector of commas": f"{PODS}?labelSelector=,,,",
    "a selector of brackets": f"{PODS}?labelSelector=a in ((((",
    "a selector with NUL": f"{PODS}?labelSelector=a%3D%00",
    "a field that is not there": f"{PODS}?fieldSelector=spec.containers%3Dx",
    "a field with an odd escape": f"{PODS}?fieldSelector=metadata.name%3D%5C",
    "a field without a value": f"{PODS}?fieldSelector=metadata.name",
    "a dry run of something": f"{PODS}/x?dryRun=Some",
    "the log of nothing": f"{PODS}/x/log?tailLines=-5",
    "a path that climbs": "/api/v1/namespaces/../../etc/passwd",
    "a path of nothing": "/api/v1//pods",
    "a name with NUL": f"{PODS}/%00",
    "a proxy to no port": f"{PODS}/x:99999/proxy/",
    "a proxy to a port in letters": f"{PODS}/x:http/proxy/",
    "an address of seven thousand letters": f"{PODS}/{'x' * 7000}",
    "an address of seventy thousand letters": f"{PODS}/{'x' * 70_000}",
    "a thousand questions": f"{PODS}?limit=x&" + "&".join(f"a{number}={number}" for number in range(900)),
}  # fmt: skip


async def test_a_hostile_question_is_refused(door: Door) -> None:
    answers = {
        words: await door.ask("DELETE" if "dryRun" in path else "GET", path)
        for words, path in QUERIES.items()
    }
    assert {words: told for words, told in answers.items() if not 400 <= told[0] < 500} == {}


HEADERS: dict[str, dict[str, str]] = {
    "an Accept of commas": {"Accept": ",;,;=,"},
    "an Accept of nonsense": {"Accept": "application/json;as=Table;v=v99;g=x;q=NaN"},
    "an Accept of four thousand parts": {"Accept": ",".join(["a/b"] * 1500)},
    "a user agent beyond ASCII": {"User-Agent": "日本"},
    "a range": {"Range": "bytes=0-1"},
    "an upgrade to nothing": {"Connection": "Upgrade", "Upgrade": "nothing"},
    "a WebSocket without its key": {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "99",
    },
    "a method in disguise": {"X-HTTP-Method-Override": "DELETE"},
}


async def test_odd_headers_do_no_harm(door: Door) -> None:
    assert (await door.ask("POST", PODS, {"metadata": {"name": "p"}, "spec": POD_SPEC}))[0] == 201
    for words, headers in HEADERS.items():
        for path in (PODS, f"{PODS}/p", f"{PODS}/p/exec?command=x&stdout=1", "/apis", "/openapi/v3"):
            code, told = await door.ask("GET", path, **headers)
            assert code < 500, (words, path, told)
    assert (await door.ask("GET", f"{PODS}/p"))[0] == 200


async def test_headers_are_bounded(door: Door) -> None:
    assert (await door.ask("GET", PODS, **{"X-Long": "x" * 100_000}))[0] == 400
    many = {f"X-{number}": "x" * 100 for number in range(5000)}
    assert (await door.ask("GET", PODS, **many))[0] in (400, 431)


RAW: dict[str, bytes] = {
    "no HTTP at all": b"\x16\x03\x01 hello\r\n\r\n",
    "a length below nothing": b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    "two lengths": b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    "a length and chunks": b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "chunks of no size": b"POST /api HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "an address of all the bytes": b"GET /\x01\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    "a version of its own": b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
}  # fmt: skip


async def test_what_is_hardly_http_is_refused_and_the_door_stays(door: Door) -> None:
    tls = ssl.create_default_context(cafile=str(door.keys.ca))
    url = URL(door.url)
    for words, sent in RAW.items():
        reader, writer = await asyncio.open_connection(url.host, url.port, ssl=tls)
        writer.write(sent)
        answer = await asyncio.wait_for(reader.readline(), 10)
        assert answer.split()[1:2] in ([b"400"], [b"401"], [b"505"]), (words, answer)
        writer.transport.abort()
    assert (await door.ask("GET", "/livez"))[0] == 200


PATCHES: dict[str, tuple[str, Any]] = {
    "steps that are no list": (STEPS, {"op": "add"}),
    "steps that are numbers": (STEPS, [5]),
    "a step to nowhere": (STEPS, [{"op": "add", "path": "/a/b/c", "value": 1}]),
    "a step at no place": (STEPS, [{"op": "replace", "path": "/data/-", "value": 1}]),
    "an index of five thousand digits": (
        STEPS,
        [{"op": "add", "path": "/metadata/finalizers/" + "9" * 5000, "value": "a.b/c"}],
    ),
    "a step that removes everything": (STEPS, [{"op": "remove", "path": ""}]),
    "a move into itself": (STEPS, [{"op": "move", "from": "/data", "path": "/data/x"}]),
    "a step without a verb": (STEPS, [{"path": "/data"}]),
    "a name that changes": (MERGE, {"metadata": {"name": "other"}}),
    "a uid that changes": (MERGE, {"metadata": {"uid": "other"}}),
    "data of lists": (MERGE, {"data": {"a": []}}),
    "no object": (MERGE, [1]),
    "metadata gone": (MERGE, {"metadata": 5}),
    "an unknown directive": (STRATEGIC, {"$patch": "explode"}),
    "a directive in place of a list": (STRATEGIC, {"metadata": {"finalizers": {"$patch": "delete"}}}),
    "an order of nothing": (STRATEGIC, {"$setElementOrder/data": 5}),
    "deletions that are no list": (STRATEGIC, {"metadata": {"$deleteFromPrimitiveList/finalizers": 5}}),
    "an empty configuration": (APPLY, {}),
    "a configuration of another kind": (
        APPLY,
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "c"}},
    ),
    "a configuration with lists for words": (
        APPLY,
        {"apiVersion": [], "kind": {}, "metadata": {"name": "c"}},
    ),
}


async def test_a_hostile_patch_is_refused_and_changes_nothing(door: Door) -> None:
    _, made = await door.ask("POST", MAPS, {"metadata": {"name": "c"}, "data": {"a": "b"}})
    for words, (media, patch) in PATCHES.items():
        code, told = await door.ask("PATCH", f"{MAPS}/c?fieldManager=x", patch, media)
        assert (words, 400 <= code < 500, told["kind"]) == (words, True, "Status"), told
        assert (await door.ask("GET", f"{MAPS}/c"))[1] == made


async def test_what_was_applied_as_the_only_label_can_be_taken_back(door: Door) -> None:
    """The object's metadata stays, though nobody owns any of it any more."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"a": "b"}}}
    path = f"{MAPS}/c?fieldManager=me"
    await door.ask("PATCH", path, config, APPLY)
    config["metadata"] = {"name": "c"}
    code, left = await door.ask("PATCH", path, config | {"data": {"x": "y"}}, APPLY)
    assert (code, left["metadata"]["name"], left["metadata"].get("labels")) == (200, "c", None)


async def test_a_status_that_controllers_could_not_read_is_refused(door: Door) -> None:
    job = {"metadata": {"name": "j"}, "spec": {"pytorchReplicaSpecs": {"Worker": a_replica("pytorch")}}}
    assert (await door.ask("POST", JOBS, job))[0] == 201
    for status, field in (
        ({"conditions": [{}]}, "status.conditions[0].type"),
        ({"startTime": "2026-13-01"}, "status.startTime"),
        ({"startTime": "2026-01-01"}, "status.startTime"),
        ({"completionTime": "9999-12-31T23:59:59-23:59"}, "status.completionTime"),
    ):
        code, told = await door.ask("PATCH", f"{JOBS}/j/status", {"status": status}, MERGE)
        assert (code, told["details"]["causes"][0]["field"]) == (422, field)


@pytest.mark.parametrize("seed", [1, 2])
async def test_objects_with_something_wrong_in_them_never_break_anything(door: Door, seed: int) -> None:
    assert await mutations(door, seed, 40) == []
