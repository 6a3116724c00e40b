"""The API on a socket, over TLS."""

from contextlib import AbstractAsyncContextManager
from ssl import SSLContext

from aiohttp import web

from fullrank.controlplane.routes import LARGEST_BODY, Api
from fullrank.listener import Bound, listening

KEEP_ALIVE = 300.0


def serving(
    api: Api, tls: SSLContext, *, host: str = "127.0.0.1", port: int = 0, early: bool = False
) -> AbstractAsyncContextManager[Bound]:
    """Serves while the context lasts; port 0 is any free one. Unavailable if the address cannot be had."""
    application = web.Application(client_max_size=LARGEST_BODY)
    application.router.add_route("*", "/{path:.*}", api.answer)
    return listening(
        application,
        api.streams,
        host=host,
        port=port,
        tls=tls,
        early=early,
        keepalive_timeout=KEEP_ALIVE,
    )
