import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import NAMESPACE, Scheme
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection, Credentials
from fullrank.client.port import Client
from fullrank.clock import SystemClock
from fullrank.controlplane import pki
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.questions import LogOptions
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from tests.contract.kubernetes import NEEDED, assets, kubernetes


class NoLogs:
    async def read(self, _pod: Json, _container: str, _options: LogOptions) -> AsyncIterator[bytes]:
        yield b""


@asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Registry]:
    admission = Admission()
    store = Store(folder / "state.db")
    registry = Registry(store, Scheme(admission.kinds), SystemClock(), lambda: str(uuid.uuid4()), admission)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await ensure_namespaces(registry)
        yield registry
        tasks.cancel_scope.cancel()
    store.close()


@asynccontextmanager
async def served(registry: Registry, folder: Path) -> AsyncIterator[Connection]:
    """Our own control plane on a loopback socket, and how to reach it."""
    keys = pki.credentials(folder / "pki", SystemClock().now())
    api = Api(registry, Admission(), Access(keys.token), NoLogs(), SystemClock())
    async with serving(api, keys.server_context()) as bound:
        yield Connection(bound.url, ca=keys.ca.read_text(), credentials=Credentials(token=keys.token))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    binaries = assets()
    if binaries is None:
        pytest.skip(NEEDED)
    with kubernetes(binaries, tmp_path_factory.mktemp("kubernetes")) as connection:
        yield connection


@pytest.fixture(params=["local", "http", pytest.param("cluster", marks=pytest.mark.cluster)])
async def client(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Client]:
    async with AsyncExitStack() as stack:
        if request.param == "cluster":
            yield await stack.enter_async_context(HttpClient(request.getfixturevalue("cluster")))
            return
        registry = await stack.enter_async_context(embedded(tmp_path))
        if request.param == "local":
            yield LocalClient(registry)
            return
        connection = await stack.enter_async_context(served(registry, tmp_path))
        yield await stack.enter_async_context(HttpClient(connection))


@pytest.fixture
async def namespace(client: Client) -> str:
    created = await client.create(NAMESPACE, {"metadata": {"generateName": "contract-"}})
    name: str = created["metadata"]["name"]
    return name
