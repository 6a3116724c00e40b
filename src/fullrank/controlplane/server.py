"""The listener: the API on a socket, over TLS; when it closes, the answers that still go on are ended first."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ssl import SSLContext
from typing import NamedTuple

from aiohttp import web

from fullrank.controlplane.routes import LARGEST_BODY, Api
from fullrank.errors import Unavailable

LAST_WORDS = 2.0  # seconds that an answer may still take when the server closes
KEEP_ALIVE = 300.0


class Bound(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}"


@asynccontextmanager
async def serving(
    api: Api, tls: SSLContext, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Bound]:
    """Serves while the context lasts; port 0 is any free one. Unavailable if the address cannot be had."""
    application = web.Application(client_max_size=LARGEST_BODY)
    application.router.add_route("*", "/{path:.*}", api.answer)
    runner = web.AppRunner(
        application,
        access_log=None,
        handler_cancellation=True,
        shutdown_timeout=LAST_WORDS,
        keepalive_timeout=KEEP_ALIVE,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port, ssl_context=tls, backlog=1024)
        try:
            await site.start()
        except OSError as error:
            raise Unavailable(f"cannot listen on {host} port {port}: {error.strerror or error}") from error
        bound = runner.addresses[0]
        yield Bound(bound[0], bound[1])
    finally:
        api.streams.close()
        await runner.cleanup()
