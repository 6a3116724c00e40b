"""`pods/proxy`: a program in a pod, asked through the API."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import ClientSession, TCPConnector, web
from yarl import URL

from fullrank.api.meta import Json
from fullrank.api.scheme import POD
from fullrank.client.port import Key
from fullrank.controlplane.local import LocalClient
from fullrank.listener import Streams, listening
from tests.contract.serving import home

pytestmark = pytest.mark.anyio

PROXY = "/api/v1/namespaces/default/pods/http:web:web/proxy"


async def told(request: web.Request) -> web.Response:
    body = await request.text()
    secret = {"Authorization", "Cookie"} & set(request.headers)
    return web.json_response([request.method, request.path_qs, body, sorted(secret)], headers={"X-Own": "1"})


async def echo(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data)
    return socket


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[ClientSession]:
    """A client with the token, and a pod with a program."""
    program = web.Application()
    program.router.add_get("/socket", echo)
    program.router.add_route("*", "/{path:.*}", told)
    async with listening(program, Streams(), host="127.0.0.1", port=0) as there, home(tmp_path) as served:
        port = {"name": "web", "containerPort": there.port}
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}}
        client = LocalClient(served.registry)
        await client.create(
            POD, pod | {"spec": {"containers": [{"name": "a", "image": "a", "ports": [port]}]}}
        )
        status = {"status": {"podIP": there.host}}
        await client.patch(Key(POD, "default", "web"), status, subresource="status")
        token = {"Authorization": f"Bearer {served.credentials.token}"}
        async with ClientSession(
            URL(served.bound.url), connector=TCPConnector(ssl=False), headers=token
        ) as session:
            yield session


async def test_a_request_goes_through_and_the_proof_of_who_asks_does_not(wire: ClientSession) -> None:
    async with wire.post(f"{PROXY}/a/b?x=1&x=2", data="words", headers={"Cookie": "a=b"}) as answer:
        assert await answer.json() == ["POST", "/a/b?x=1&x=2", "words", []]
        assert answer.headers["X-Own"] == "1"


async def test_a_websocket_goes_through(wire: ClientSession) -> None:
    async with wire.ws_connect(f"{PROXY}/socket") as socket:
        await socket.send_str("words")
        assert await socket.receive_str() == "words"
