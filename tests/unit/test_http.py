"""The wire: what a server says becomes our errors, and what breaks on the way is told."""

import socket
from collections.abc import AsyncIterator

import anyio
import msgspec
import pytest
from aiohttp import web

from fullrank.api.scheme import CONFIG_MAP, NAMESPACE, POD, Kind
from fullrank.client.http import HttpClient, complaint, path_of
from fullrank.client.kubeconfig import Connection, Credentials
from fullrank.client.port import Key
from fullrank.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    FullrankError,
    Gone,
    Invalid,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)

pytestmark = pytest.mark.anyio

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
KEY = Key(CONFIG_MAP, "default", "a")

PATHS = {
    "a collection of all namespaces": (path_of(POD), "/api/v1/pods"),
    "a collection of one": (path_of(POD, "n"), "/api/v1/namespaces/n/pods"),
    "an object without a namespace": (path_of(NAMESPACE, "", "n"), "/api/v1/namespaces/n"),
    "a part of an object": (
        path_of(JOB, "n", "j", "status"),
        "/apis/kubeflow.org/v1/namespaces/n/pytorchjobs/j/status",
    ),
    "a name that means mischief": (path_of(POD, "n", "../x?y"), "/api/v1/namespaces/n/pods/..%2Fx%3Fy"),
}


@pytest.mark.parametrize(("path", "wanted"), PATHS.values(), ids=PATHS.keys())
def test_everything_has_its_place(path: str, wanted: str) -> None:
    assert path == wanted


COMPLAINTS = {
    "by reason": (409, {"reason": "AlreadyExists", "message": "m"}, AlreadyExists),
    "a plain conflict": (409, {"message": "m"}, Conflict),
    "an expired page": (410, {"reason": "Expired", "message": "m"}, Gone),
    "a watch that is too old": (410, {"reason": "Gone", "message": "m"}, Gone),
    "forbidden": (403, {"reason": "Forbidden", "message": "m"}, Forbidden),
    "too large": (413, {"message": "m"}, TooLarge),
    "who are you": (401, {"message": "m"}, Unauthorized),
    "too many requests": (429, {"reason": "TooManyRequests", "message": "m"}, Unavailable),
    "its own trouble": (500, {"reason": "InternalError", "message": "m"}, Unavailable),
    "a bad request of an unknown reason": (400, {"reason": "Whatever", "message": "m"}, BadRequest),
}


@pytest.mark.parametrize(("code", "status", "wanted"), COMPLAINTS.values(), ids=COMPLAINTS.keys())
def test_a_status_becomes_an_error_of_ours(code: int, status: object, wanted: type[FullrankError]) -> None:
    error = complaint(code, msgspec.json.encode(status))
    assert (type(error), str(error)) == (wanted, "m")


def test_a_body_that_is_no_status_is_quoted() -> None:
    error = complaint(502, b"<html>Bad Gateway</html>")
    assert (type(error), str(error)) == (Unavailable, "<html>Bad Gateway</html>")


def test_causes_survive_the_journey() -> None:
    message = 'ConfigMap "a" is invalid: metadata.name: Required value: name it'
    causes = [
        {"reason": "FieldValueRequired", "message": "Required value: name it", "field": "metadata.name"}
    ]
    error = complaint(
        422, msgspec.json.encode({"reason": "Invalid", "message": message, "details": {"causes": causes}})
    )
    assert isinstance(error, Invalid)
    assert str(error) == message
    assert error.what == 'ConfigMap "a"'
    (cause,) = error.causes
    assert (cause.field, cause.reason) == ("metadata.name", "FieldValueRequired")


LONG = b"x" * 300_000


async def answer(request: web.Request) -> web.StreamResponse:
    if "watch" in request.query:
        return await cut_off(request)
    if request.path == "/log":
        return web.Response(body=b"first\r\x0bstill first\n" + LONG + b"\nlast")
    if request.headers.get("Authorization") != "Bearer t":
        return web.json_response({"message": "Unauthorized"}, status=401)
    return web.Response(text="not json")


async def cut_off(request: web.Request) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    await response.write(b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n{"type":"ADD')
    assert request.transport is not None
    request.transport.close()
    return response


@pytest.fixture
async def server() -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_lines_are_whole_however_long(server: str) -> None:
    async with HttpClient(Connection(server)) as client, client.stream("/log") as lines:
        assert [line async for line in lines] == [b"first\r\x0bstill first\n", LONG + b"\n", b"last"]


async def test_a_watch_that_breaks_off_says_so_after_what_it_told(server: str) -> None:
    async with HttpClient(Connection(server)) as client, client.watch(CONFIG_MAP, since="1") as events:
        assert (await anext(events)).obj == {"metadata": {"name": "a"}}
        with pytest.raises(Unavailable):
            await anext(events)


async def test_what_is_not_json_is_the_servers_trouble(server: str) -> None:
    async with HttpClient(Connection(server, credentials=Credentials(token="t"))) as client:
        assert await client.raw("/version") == b"not json"
        with pytest.raises(Unavailable, match="what is not JSON"):
            await client.get(KEY)


async def test_wrong_credentials_are_told(server: str) -> None:
    async with HttpClient(Connection(server)) as client:
        with pytest.raises(Unauthorized):
            await client.get(KEY)


async def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        server = f"http://127.0.0.1:{taken.getsockname()[1]}"
    async with HttpClient(Connection(server)) as client:
        with anyio.fail_after(5), pytest.raises(Unavailable, match=f"cannot reach {server}"):
            await client.get(KEY)


async def test_a_missing_object_is_not_found_whatever_the_reason() -> None:
    assert isinstance(complaint(404, b"404 page not found"), NotFound)
