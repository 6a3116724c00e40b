"""`pods/[SCHEME:]NAME[:PORT]/proxy/PATH`: a request to a program in a pod, through the API's own door."""

from typing import NamedTuple

from aiohttp import web
from yarl import URL

from fullrank.api.meta import Json, name_of
from fullrank.errors import BadRequest
from fullrank.listener import Streams
from fullrank.relay import going_out, passed_on, relay

OURS = ("authorization", "cookie", "host")  # proves who asks, or names us: not for the program in the pod


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
    address = f"{target.scheme}://{_address(pod)}:{port_of(pod, target.port)}/{path}"
    decoded = ("content-encoding", "content-length") if "Content-Encoding" in request.headers else ()
    headers = passed_on(request.headers, *OURS, *decoded)
    async with going_out() as session:
        return await relay(request, session, URL(address).with_query(request.query), headers, streams)


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
