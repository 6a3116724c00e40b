"""`pods/[SCHEME:]NAME[:PORT]/proxy/PATH`: a request to a program in a pod, through the API's own door."""

from contextlib import suppress
from typing import NamedTuple

import aiohttp
from aiohttp import web

from fullrank.api.meta import Json, name_of
from fullrank.controlplane.streams import Streams
from fullrank.errors import BadRequest, Unavailable

CHUNK = 1 << 16
OURS = frozenset((  # what concerns the connection to us, or proves who asks: not for the program in the pod
    "authorization", "connection", "content-length", "cookie", "host", "keep-alive", "te", "trailer",
    "transfer-encoding", "upgrade",
))  # fmt: skip


class Target(NamedTuple):
    scheme: str
    name: str
    port: str

    @classmethod
    def read(cls, text: str) -> "Target":
        match text.split(":"):
            case [name]:
                return cls("http", name, "")
            case [name, port]:
                return cls("http", name, port)
            case [("http" | "https" | "") as scheme, name, port]:
                return cls(scheme or "http", name, port)
        raise BadRequest(f'invalid pod request "{text}": it is NAME, NAME:PORT or SCHEME:NAME:PORT')


async def proxied(
    request: web.Request, streams: Streams, pod: Json, target: Target, path: str
) -> web.StreamResponse:
    """The program's answer as it is; Unavailable if it gives none."""
    url = f"{target.scheme}://{_address(pod)}:{port_of(pod, target.port)}/{path}"
    headers = {name: value for name, value in request.headers.items() if name.lower() not in OURS}
    session = aiohttp.ClientSession(auto_decompress=False)
    try:
        async with (
            session,
            session.request(
                request.method,
                url,
                params=request.query,
                headers=headers,
                data=await request.read() or None,
                allow_redirects=False,
                ssl=False,
            ) as answer,
        ):
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in OURS}
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            with suppress(ConnectionResetError), streams.lasting():  # the client has left
                async for piece in answer.content.iter_chunked(CHUNK):
                    await response.write(piece)
                await response.write_eof()
            return response
    except aiohttp.ClientError as problem:
        raise Unavailable(f"error trying to reach service: {problem}") from problem


def _address(pod: Json) -> str:
    address: str = (pod.get("status") or {}).get("podIP") or ""
    if not address:
        raise BadRequest(f"pod {name_of(pod)} has no address yet")
    return address


def port_of(pod: Json, wanted: str) -> int:
    """By number or name; without either the first that the pod names, else 80."""
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or []]
    if not wanted:
        first: int = ports[0]["containerPort"] if ports else 80
        return first
    named: int | None = next((one["containerPort"] for one in ports if one.get("name") == wanted), None)
    if named is not None:
        return named
    if wanted.isdecimal() and 0 < int(wanted) < 1 << 16:
        return int(wanted)
    raise BadRequest(f'pod {name_of(pod)} has no port "{wanted}"')
