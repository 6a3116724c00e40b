"""An HTTP server on a socket; when it closes, the answers that still go on are ended first."""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ssl import SSLContext
from typing import Any, NamedTuple

import anyio
from aiohttp import web

from fullrank.errors import Unavailable

IP_FREEBIND = 15  # Linux has it, Python's `socket` does not name it
LAST_WORDS = 2.0  # seconds that an answer may still take when the server closes


class Bound(NamedTuple):
    scheme: str
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Streams:
    """The answers that are going on now, so that closing the server ends them politely."""

    def __init__(self) -> None:
        self._scopes: set[anyio.CancelScope] = set()
        self._closed = False

    @contextmanager
    def lasting(self, seconds: float | None = None) -> Iterator[None]:
        with anyio.move_on_after(seconds) as scope:
            self._scopes.add(scope)
            if self._closed:
                scope.cancel()
            try:
                yield
            finally:
                self._scopes.discard(scope)

    def close(self) -> None:
        self._closed = True
        for scope in self._scopes:
            scope.cancel()


@asynccontextmanager
async def listening(
    application: web.Application,
    streams: Streams,
    *,
    host: str,
    port: int,
    tls: SSLContext | None = None,
    early: bool = False,
    **protocol: Any,
) -> AsyncIterator[Bound]:
    """Serves while the context lasts; port 0 is any free one. Unavailable if the address cannot be had.

    Nothing is logged about requests: their addresses may carry secrets. `protocol` goes to aiohttp's RequestHandler.
    `early`: the machine may have the address only later, as that of a bridge nobody is on yet.
    """
    runner = web.AppRunner(
        application, access_log=None, handler_cancellation=True, shutdown_timeout=LAST_WORDS, **protocol
    )
    await runner.setup()
    try:
        try:
            site: web.BaseSite = (
                web.SockSite(runner, _bound_early(host, port), ssl_context=tls)
                if early
                else web.TCPSite(runner, host, port, ssl_context=tls, backlog=1024)
            )
            await site.start()
        except OSError as error:
            raise Unavailable(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        bound = runner.addresses[0]
        yield Bound("https" if tls else "http", bound[0], bound[1])
    finally:
        streams.close()
        await runner.cleanup()


def _bound_early(host: str, port: int) -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.IPPROTO_IP, IP_FREEBIND, 1)
        bound.bind((host, port))
    except OSError:
        bound.close()
        raise
    return bound
