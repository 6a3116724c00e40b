"""A request passed on to a program in a pod, and its answer back: bodies as they come, WebSockets both ways."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeAlias

import aiohttp
import anyio
from aiohttp import ClientTimeout, ClientWSTimeout, DummyCookieJar, WSCloseCode, WSMsgType, web
from multidict import CIMultiDict
from yarl import URL

from fullrank.errors import Unavailable
from fullrank.listener import Streams

CONNECT = 5.0  # seconds within which a program on its feet takes a connection
GOODBYE = 5.0  # seconds that a WebSocket's other end has to say goodbye as well
HEARTBEAT = 30.0  # seconds between looks whether a silent browser is still there
LARGEST_MESSAGE = 64 << 20  # of a WebSocket: it is in memory whole
OF_THE_CONNECTION = frozenset((
    "connection", "expect", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip
UNSAID = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")  # what aiohttp would add of its own

Socket: TypeAlias = web.WebSocketResponse | aiohttp.ClientWebSocketResponse


def going_out() -> aiohttp.ClientSession:
    """For requests of many people to many programs: it remembers no cookies and waits for as long as it takes."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=False),
        cookie_jar=DummyCookieJar(),
        timeout=ClientTimeout(total=None, sock_connect=CONNECT),
        auto_decompress=False,
        skip_auto_headers=UNSAID,
    )


def passed_on(headers: Mapping[str, str], *but: str) -> CIMultiDict[str]:
    """All headers except those that concern one connection only, and those named."""
    named = {word.strip().lower() for word in headers.get("Connection", "").split(",")}
    left_out = OF_THE_CONNECTION | named | set(but)
    return CIMultiDict((name, value) for name, value in headers.items() if name.lower() not in left_out)


def is_websocket(request: web.BaseRequest) -> bool:
    return "upgrade" in request.headers.get("Connection", "").lower() and (
        request.headers.get("Upgrade", "").lower() == "websocket"
    )


async def relay(
    request: web.Request,
    session: aiohttp.ClientSession,
    url: URL,
    headers: CIMultiDict[str],
    streams: Streams,
    *,
    back: Callable[[Mapping[str, str]], CIMultiDict[str]] = passed_on,
    traffic: Callable[[], None] = lambda: None,
) -> web.StreamResponse:
    """The program's answer, its headers as `back` leaves them; Unavailable if it gives none.

    `traffic` is called for each message of a WebSocket.
    """
    if is_websocket(request):
        return await _converse(request, session, url, headers, streams, traffic)
    try:
        answer = await session.request(
            request.method,
            url,
            headers=headers,
            data=request.content if request.can_read_body else None,
            allow_redirects=False,
        )
    except (aiohttp.ClientError, TimeoutError) as problem:
        raise Unavailable(f"error trying to reach service: {problem}") from problem
    async with answer:
        response = web.StreamResponse(
            status=answer.status, reason=answer.reason, headers=back(answer.headers)
        )
        with streams.lasting():
            await _pour(request, answer, response)
        return response


async def _pour(request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
    try:
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        await response.write_eof()
    except (aiohttp.ClientError, ConnectionError):
        # One of the two has left in the middle. A client that is still there must not take this for the end.
        if request.transport is not None:
            request.transport.abort()


async def _converse(
    request: web.Request,
    session: aiohttp.ClientSession,
    url: URL,
    headers: CIMultiDict[str],
    streams: Streams,
    traffic: Callable[[], None],
) -> web.StreamResponse:
    """The program first: what it will not talk about is refused before the browser believes it is connected."""
    offered = [word.strip() for word in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    own = {name for name in headers if name.lower().startswith("sec-websocket-")}
    try:
        program = await session.ws_connect(
            url,
            protocols=[word for word in offered if word],
            headers=passed_on(headers, *(name.lower() for name in own)),
            timeout=ClientWSTimeout(ws_close=GOODBYE),
            max_msg_size=LARGEST_MESSAGE,
        )
    except aiohttp.WSServerHandshakeError as refusal:
        return web.Response(status=refusal.status if refusal.status >= 400 else 502, text=refusal.message)
    except (aiohttp.ClientError, TimeoutError) as problem:
        raise Unavailable(f"error trying to reach service: {problem}") from problem
    async with program:
        browser = web.WebSocketResponse(
            protocols=[program.protocol] if program.protocol else (),
            timeout=GOODBYE,
            heartbeat=HEARTBEAT,
            compress=False,
            max_msg_size=LARGEST_MESSAGE,
        )
        await browser.prepare(request)
        with streams.lasting():
            async with anyio.create_task_group() as both:
                for source, target in ((browser, program), (program, browser)):
                    both.start_soon(_pass_on, source, target, traffic, both.cancel_scope)
        with anyio.CancelScope(shield=True):
            await browser.close(code=WSCloseCode.GOING_AWAY)
        return browser


async def _pass_on(
    source: Socket, target: Socket, traffic: Callable[[], None], both: anyio.CancelScope
) -> None:
    """What one says to the other, until it says goodbye: then so do we, in its own words."""
    with suppress(ConnectionError):
        while (message := await source.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
            if message.type == WSMsgType.TEXT:
                await target.send_str(message.data)
            else:
                await target.send_bytes(message.data)
            traffic()
        if message.type == WSMsgType.CLOSE:
            await target.close(code=_sendable(message.data), message=(message.extra or "").encode())
        elif source.close_code == WSCloseCode.MESSAGE_TOO_BIG:
            await target.close(code=WSCloseCode.MESSAGE_TOO_BIG)
        elif message.type in (WSMsgType.ERROR, WSMsgType.CLOSED):
            await target.close(code=WSCloseCode.GOING_AWAY)
    both.cancel()


def _sendable(code: int | None) -> int:
    """Some codes only tell what was seen (1005: goodbye without a code) and may not be said."""
    return code if code and code not in (1005, 1006, 1015) else WSCloseCode.OK
