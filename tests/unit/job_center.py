"""A Job Center in front of a control plane in memory, and programs behind it that tests write themselves."""

from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from aiohttp import ClientResponse, ClientSession, CookieJar, web
from yarl import URL

from fullrank.api.meta import Json
from fullrank.api.scheme import POD, SECRET, Scheme
from fullrank.client.port import Key
from fullrank.clock import ManualClock
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.store import Store
from fullrank.dialects.apps import AppKind
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.registry import SUBMITTED_KINDS
from fullrank.listener import Streams, listening
from fullrank.web.server import JobCenter, serving

TOKEN = "the-home-token"
SPECS: dict[str, Json] = {
    "TensorBoard": {"trainingLogFilesets": ["t9k://pvc/logs/log"]},
    "Notebook": {
        "type": "jupyter",
        "template": {"spec": {"containers": [{"name": "notebook", "image": "fullrank/notebook"}]}},
    },
}


@dataclass
class Front:
    """The Job Center as a browser sees it."""

    client: LocalClient
    clock: ManualClock
    session: ClientSession
    url: str

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    async def log_in(self) -> ClientResponse:
        return await self.ask("GET", f"/login?token={TOKEN}")

    async def ask(self, method: str, path: str, **words: Any) -> ClientResponse:
        where = URL(self.url + path, encoded=True)  # to the letter
        answer = await self.session.request(method, where, allow_redirects=False, **words)
        await answer.read()
        return answer

    async def annotations(self, kind: AppKind, name: str) -> Json:
        found = await self.client.get(Key(kind.kind, "default", name))
        annotations: Json = found["metadata"].get("annotations") or {}
        return annotations

    async def make(self, kind: AppKind, name: str, address: tuple[str, int] | None = None) -> None:
        """An object as its controller leaves it: with a pod at that address, if there is one."""
        metadata: Json = {"name": name, "namespace": "default"}
        head = {"apiVersion": kind.kind.api_version, "kind": kind.kind.kind, "metadata": metadata}
        made = await self.client.create(kind.kind, head | {"spec": SPECS[kind.kind.kind]})
        status: Json = {"phase": "Pending", "url": kind.url(made)}
        if address is not None:
            pod = kind.service(made)
            await self._make_pod(pod, *address)
            status |= {"phase": "Running", "pod": {"reference": {"name": pod}, "phase": "Running"}}
        if kind is NOTEBOOKS:
            secret = {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": metadata | {"name": kind.service(made)},
            }
            await self.client.create(SECRET, secret | {"data": {"token": b64encode(b"hush").decode()}})
        await self.client.patch(Key(kind.kind, "default", name), {"status": status}, subresource="status")

    async def _make_pod(self, name: str, host: str, port: int) -> None:
        container = {"name": "a", "image": "a", "ports": [{"name": "http", "containerPort": port}]}
        head: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        await self.client.create(POD, head | {"spec": {"containers": [container]}})
        status = {"phase": "Running", "podIP": host, "conditions": [{"type": "Ready", "status": "True"}]}
        await self.client.patch(Key(POD, "default", name), {"status": status}, subresource="status")


@asynccontextmanager
async def a_front(*, listen: str = "127.0.0.1") -> AsyncIterator[Front]:
    clock, numbers = ManualClock(), count(1)
    admission = Admission(SUBMITTED_KINDS)
    store = Store(":memory:", inline=True)
    registry = Registry(store, Scheme(admission.kinds), clock, lambda: f"uid-{next(numbers)}", admission)
    await ensure_namespaces(registry)
    client = LocalClient(registry)
    center = JobCenter(client, TOKEN, clock, listen=listen)
    async with (
        serving(center, host=listen) as bound,
        ClientSession(cookie_jar=CookieJar(unsafe=True), auto_decompress=False) as session,
    ):
        yield Front(client, clock, session, bound.url)
    store.close()


@asynccontextmanager
async def a_program(*routes: web.RouteDef) -> AsyncIterator[tuple[str, int]]:
    """A program in a pod: any routes, on a port of its own."""
    application = web.Application(client_max_size=0)
    application.add_routes(routes)
    async with listening(application, Streams(), host="127.0.0.1", port=0, auto_decompress=False) as bound:
        yield bound.host, bound.port
