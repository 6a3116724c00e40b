"""What an operator tells those who look after it: that it lives, that it is ready, and what it has counted."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from aiohttp import web

from fullrank.errors import BadRequest
from fullrank.listener import Bound, Streams, listening

PROMETHEUS = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}


@asynccontextmanager
async def probes(
    metrics: str, health: str, *, counted: Callable[[], str], ready: Callable[[], bool]
) -> AsyncIterator[list[Bound]]:
    """Serves `/metrics` at one address, `/healthz` and `/readyz` at the other; at `0` nothing is served."""

    async def tell_counts(_: web.Request) -> web.Response:
        return web.Response(text=counted(), headers=PROMETHEUS)

    async def tell_alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def tell_ready(_: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="not everything there is has been seen yet")

    async with AsyncExitStack() as stack:
        found = []
        for address, routes in (
            (metrics, [web.get("/metrics", tell_counts)]),
            (health, [web.get("/healthz", tell_alive), web.get("/readyz", tell_ready)]),
        ):
            if address != "0":
                host, port = parsed(address)
                application = web.Application()
                application.add_routes(routes)
                found.append(
                    await stack.enter_async_context(listening(application, Streams(), host=host, port=port))
                )
        yield found


def parsed(address: str) -> tuple[str, int]:
    """`:8080` is every address of this machine, as Go programs write it."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise BadRequest(
            f'"{address}" is no address: write HOST:PORT, :PORT for every address, or 0 for none'
        )
    return host.strip("[]") or "0.0.0.0", int(port)  # a pod is asked from outside
