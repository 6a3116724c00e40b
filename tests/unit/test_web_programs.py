"""The way through the Job Center to a program: what goes there, what comes back, and that it flows."""

import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel
import pytest
from aiohttp import ClientError, ClientWebSocketResponse, WSMsgType, WSServerHandshakeError, web

from fullrank.api.annotations import LAST_VISIT
from fullrank.api.scheme import POD
from fullrank.client.port import Key
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.tensorboard import TENSORBOARDS
from fullrank.web.headers import kept_to
from tests.unit.job_center import Front, a_front, a_program

pytestmark = pytest.mark.anyio

BOOK, BOARD = "/notebooks/default/a", "/tensorboards/default/a"
MEGABYTE = 1 << 20


@asynccontextmanager
async def in_front_of(*routes: web.RouteDef) -> AsyncIterator[Front]:
    """A program as a notebook and as a TensorBoard, and somebody who is logged in."""
    async with a_front() as front, a_program(*routes) as address:
        await front.log_in()
        await front.make(NOTEBOOKS, "a", address)
        await front.make(TENSORBOARDS, "a", address)
        yield front


@asynccontextmanager
async def a_socket(front: Front, *protocols: str, origin: str = "") -> AsyncIterator[ClientWebSocketResponse]:
    async with front.session.ws_connect(
        f"{front.url}{BOOK}/socket",
        protocols=protocols,
        headers={"Origin": origin or front.url},
        max_msg_size=0,
    ) as socket:
        yield socket


async def echo(request: web.Request) -> web.WebSocketResponse:
    """Says everything twice."""
    socket = web.WebSocketResponse(protocols=("v1.kernel", "v2.kernel"), max_msg_size=0)
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.TEXT:
            await socket.send_str(message.data * 2)
        else:
            await socket.send_bytes(message.data * 2)
    return socket


async def test_the_address_arrives_whole_and_as_it_was_written() -> None:
    heard: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request.raw_path)
        return web.Response(text="here")

    async with in_front_of(web.route("*", "/{path:.*}", answer)) as front:
        written = f"{BOOK}/api/a%2Fb%20c/%E4%BD%A0?x=%2F&x=1+2&tag=a%26b&&empty="
        found = await front.ask("GET", written)
        assert (found.status, await found.text()) == (200, "here")
        assert heard == [written]


async def test_the_program_learns_who_asks_but_nothing_of_our_session() -> None:
    heard: list[dict[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(dict(request.headers))
        return web.Response()

    async with in_front_of(web.get("/{path:.*}", answer)) as front:
        theirs = {
            "Cookie": "_xsrf=2|a|b; theme=dark",
            "Authorization": "Basic eA==",
            "Connection": "X-Hop",
            "X-Hop": "1",
        }
        for path in (BOOK, BOARD):
            cookie = {"Cookie": f"{theirs['Cookie']}; {_session_cookie(front)}"}
            assert (await front.ask("GET", f"{path}/", headers=theirs | cookie)).status == 200
        book, board = heard
        assert book["Cookie"] == board["Cookie"] == theirs["Cookie"]
        assert (book["Authorization"], board["Authorization"]) == ("token hush", "Basic eA==")
        assert book["Host"] == book["X-Forwarded-Host"] == front.host
        assert (book["X-Forwarded-For"], book["X-Forwarded-Proto"]) == ("127.0.0.1", "http")
        assert "X-Hop" not in book


def _session_cookie(front: Front) -> str:
    return "; ".join(f"{one.key}={one.value}" for one in front.session.cookie_jar)


async def test_nothing_comes_back_that_reaches_beyond_the_programs_own_pages() -> None:
    async def answer(_request: web.Request) -> web.Response:
        response = web.Response(text="page", headers={"Content-Security-Policy": "default-src 'self'"})
        for name in (
            "Service-Worker-Allowed",
            "Clear-Site-Data",
            "Cross-Origin-Opener-Policy",
            "X-Their-Own",
        ):
            response.headers[name] = "/"
        for cookie in (
            "_xsrf=1; Path=/; HttpOnly",
            "all=1; Domain=localhost; Path=/",
            f"{ours}=stolen; Path=/",
        ):
            response.headers.add("Set-Cookie", cookie)
        return response

    async with in_front_of(web.get("/{path:.*}", answer)) as front:
        ours = next(iter(front.session.cookie_jar)).key
        found = await front.ask("GET", f"{BOOK}/")
        assert found.headers.getall("Set-Cookie") == [
            f"_xsrf=1; Path={BOOK}/; HttpOnly",
            f"all=1; Path={BOOK}/",
        ]
        assert found.headers["X-Their-Own"] == "/"
        assert not {"Service-Worker-Allowed", "Clear-Site-Data", "Cross-Origin-Opener-Policy"} & set(
            found.headers
        )
        policies = found.headers.getall("Content-Security-Policy")
        assert policies == ["default-src 'self'", "frame-ancestors 'self'"]


def test_a_cookie_deeper_in_the_program_stays_there() -> None:
    assert kept_to("/a/", "x=1; path=/a/b; Secure") == "x=1; Path=/a/b; Secure"
    assert kept_to("/a/", "x=1; path=/a/b; Path=/") == "x=1; Path=/a/"
    assert kept_to("/a/", "x=1") == "x=1; Path=/a/"


async def test_large_bodies_flow_both_ways_while_they_are_still_being_written() -> None:
    async def double(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        async for piece in request.content.iter_any():
            await response.write(piece)
            await response.write(piece)
        return response

    async def upload() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * MEGABYTE
            await come_back.wait()

    come_back = anyio.Event()
    async with in_front_of(web.post("/{path:.*}", double)) as front:
        headers = {"Origin": front.url}
        async with front.session.post(f"{front.url}{BOOK}/up", data=upload(), headers=headers) as answer:
            size = len(await answer.content.readany())
            come_back.set()  # not before the first piece has been there and back
            async for piece in answer.content.iter_any():
                size += len(piece)
            assert (answer.status, size) == (200, 16 * MEGABYTE)


async def test_a_packed_body_arrives_packed_with_its_length() -> None:
    packed = gzip.compress(b"words " * 1000)

    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Content-Encoding"] == "gzip"
        assert request.content_length == len(packed)
        return web.Response(body=await request.read(), headers={"Content-Encoding": "gzip"})

    async with in_front_of(web.put("/{path:.*}", answer)) as front:
        words = {"Content-Encoding": "gzip", "Origin": front.url}
        found = await front.ask(
            "PUT", f"{BOOK}/file", data=packed, headers=words, skip_auto_headers=["Expect"]
        )
        assert (found.status, await found.read()) == (200, packed)
        assert found.headers["Content-Length"] == str(len(packed))


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304), ("DELETE", 418)])
async def test_answers_without_a_body_and_odd_ones_come_as_they_are(method: str, status: int) -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(status=status, reason="As I say", headers={"ETag": '"1"'})

    async with in_front_of(web.route("*", "/{path:.*}", answer)) as front:
        found = await front.ask(method, f"{BOOK}/", headers={"Origin": front.url})
        assert (found.status, found.reason, found.headers["ETag"]) == (status, "As I say", '"1"')


async def test_events_arrive_one_by_one_and_a_client_that_leaves_is_noticed() -> None:
    left = anyio.Event()

    async def ticks(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(b"data: tick\n\n")
                await anyio.sleep(0.01)
        finally:
            left.set()

    async with in_front_of(web.get("/{path:.*}", ticks)) as front:
        async with front.session.get(f"{front.url}{BOOK}/events") as answer:
            assert await answer.content.readline() == b"data: tick\n"
            assert not left.is_set()
        with anyio.fail_after(5):
            await left.wait()


async def test_an_answer_that_breaks_off_does_not_look_whole() -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        assert request.transport is not None
        request.transport.abort()
        return response

    async with in_front_of(web.get("/{path:.*}", broken)) as front:
        with pytest.raises(ClientError):
            await front.ask("GET", f"{BOOK}/")


async def test_a_websocket_speaks_both_ways_in_the_protocol_they_agree_on() -> None:
    async with (
        in_front_of(web.get(f"{BOOK}/socket", echo)) as front,
        a_socket(front, "v2.kernel", "v9") as socket,
    ):
        assert socket.protocol == "v2.kernel"
        await socket.send_str("你好")
        assert await socket.receive_str() == "你好你好"
        await socket.send_bytes(b"\x00\xff")
        assert await socket.receive_bytes() == b"\x00\xff\x00\xff"
        await socket.send_bytes(b"x" * MEGABYTE)
        assert len(await socket.receive_bytes()) == 2 * MEGABYTE


async def test_a_goodbye_keeps_its_code_in_either_direction() -> None:
    codes: list[int | None] = []
    ended = anyio.Event()

    async def listen(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        async for message in socket:
            if message.data == "bye":
                await socket.close(code=4001, message=b"see you")
        codes.append(socket.close_code)
        if len(codes) == 2:
            ended.set()
        return socket

    async with in_front_of(web.get(f"{BOOK}/socket", listen)) as front:
        async with a_socket(front) as socket:
            await socket.send_str("bye")
            last = await socket.receive()
            assert (last.type, last.data, last.extra) == (WSMsgType.CLOSE, 4001, "see you")
        async with a_socket(front) as socket:
            await socket.close(code=4002)
        with anyio.fail_after(5):
            await ended.wait()
        assert codes[1] == 4002


async def test_a_websocket_of_another_page_or_without_a_session_is_refused_before_the_program_hears_of_it() -> (
    None
):
    heard = []

    async def listen(request: web.Request) -> web.WebSocketResponse:
        heard.append(request.path)
        return await echo(request)

    async with in_front_of(web.get(f"{BOOK}/socket", listen)) as front:
        for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
            with pytest.raises(WSServerHandshakeError, match="403"):
                async with a_socket(front, origin=origin):
                    pass
        front.session.cookie_jar.clear()
        with pytest.raises(WSServerHandshakeError, match="401"):
            async with a_socket(front):
                pass
        assert heard == []


async def test_what_the_program_refuses_to_talk_about_is_refused() -> None:
    async def no(_request: web.Request) -> web.Response:
        return web.Response(status=404)

    async with in_front_of(web.get(f"{BOOK}/socket", no)) as front:
        with pytest.raises(WSServerHandshakeError, match="404"):
            async with a_socket(front):
                pass


async def visited(front: Front) -> str:
    return str((await front.annotations(NOTEBOOKS, "a")).get(LAST_VISIT, ""))


async def until_visited(front: Front, moment: str) -> None:
    with anyio.fail_after(5):
        while await visited(front) != moment:
            await anyio.lowlevel.checkpoint()


async def test_each_use_is_stamped_but_not_more_than_once_a_minute() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response()

    async with in_front_of(web.get(f"{BOOK}/", answer), web.get(f"{BOOK}/socket", echo)) as front:
        await front.ask("GET", f"{BOOK}/")
        await until_visited(front, "2026-01-01T00:00:00Z")
        front.clock.advance(59)
        await front.ask("GET", f"{BOOK}/")
        async with a_socket(front) as socket:
            await socket.send_str("a")
            await socket.receive()
            assert await visited(front) == "2026-01-01T00:00:00Z"
            front.clock.advance(1)
            await socket.send_str("a")
            await until_visited(front, "2026-01-01T00:01:00Z")
        assert LAST_VISIT not in await front.annotations(TENSORBOARDS, "a")


async def test_a_visit_that_cannot_be_written_is_still_a_visit() -> None:
    async def answer(_request: web.Request) -> web.Response:
        await front.client.delete(Key(NOTEBOOKS.kind, "default", "a"))
        return web.Response(text="here")

    async with in_front_of(web.get(f"{BOOK}/", answer)) as front:
        assert await (await front.ask("GET", f"{BOOK}/")).text() == "here"
        assert (await front.ask("GET", f"{BOOK}/")).status == 404


async def test_a_program_whose_pod_is_not_ready_is_shown_no_token() -> None:
    heard = []

    async def answer(request: web.Request) -> web.Response:
        heard.append(request.path)
        return web.Response()

    async with in_front_of(web.get(f"{BOOK}/", answer)) as front:
        status = {"conditions": [{"type": "Ready", "status": "False"}]}
        pod = Key(POD, "default", NOTEBOOKS.app.service("a"))
        await front.client.patch(pod, {"status": status}, subresource="status")
        assert (await front.ask("GET", f"{BOOK}/")).status == 503
        assert heard == []
