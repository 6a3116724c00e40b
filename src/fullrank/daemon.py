"""The only place where everything is built and started: an embedded home, as long as somebody is in it."""

import gc
import logging
import os
import re
import resource
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any
from uuid import uuid4

import anyio
import anyio.to_thread

from fullrank import __version__
from fullrank.agent.agent import NodeAgent, stop_all_pods
from fullrank.agent.api_access import ApiAccess
from fullrank.agent.devices import annotations_for, gpus_of, resources_of
from fullrank.agent.equipment import equipment
from fullrank.agent.logs import PodLogReader
from fullrank.agent.meter import Meter
from fullrank.agent.network import port_is_free
from fullrank.agent.node import Machine
from fullrank.agent.retention import Retention
from fullrank.agent.runtime import Runtime
from fullrank.agent.visits import Visit, running_attempt, visiting
from fullrank.api.meta import Json
from fullrank.api.scheme import Scheme
from fullrank.client import kubeconfig
from fullrank.clock import SystemClock
from fullrank.controllers.apps import AppController
from fullrank.controllers.binder import Binder
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.jobs import JobController
from fullrank.controllers.jupyter import ask_jupyter
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.ports import PortBook
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.collector import Collector
from fullrank.controlplane.exec_route import Wish
from fullrank.controlplane.front import announce
from fullrank.controlplane.local import LocalClient
from fullrank.controlplane.namespaces import Namespaces
from fullrank.controlplane.pki import Credentials as PkiCredentials
from fullrank.controlplane.pki import credentials
from fullrank.controlplane.questions import LogOptions
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS, SUBMITTED_KINDS
from fullrank.errors import Unavailable
from fullrank.home import Running, announced, locked
from fullrank.listener import Bound
from fullrank.settings import Settings, duration
from fullrank.web.server import JobCenter
from fullrank.web.server import serving as serving_pages

log = logging.getLogger(__name__)

GRACE = 30.0  # seconds that pods have to end when the home is left

Part = Callable[[], Coroutine[Any, Any, None]]


@dataclass
class Home:
    """An embedded home that is up; `stop_pods` says what leaving it means for the pods that run."""

    running: Running
    stop_pods: bool = True


@asynccontextmanager
async def embedded_home(settings: Settings) -> AsyncIterator[Home]:
    """Brings up store, API, controllers and agent, in this order; on leaving they go in the opposite one."""
    prepare_process()
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        stack.enter_context(locked(settings.home))
        tools = equipment(
            settings.runtime, settings.home, clock, environ=os.environ, strict=settings.images == "strict"
        )
        await stack.enter_async_context(tools.runtime)
        runtime, gateway = tools.runtime, tools.gateway()
        proof = credentials(settings.home / "pki", clock.now(), (settings.listen, gateway))
        store = stack.enter_context(closing(Store(settings.home / "state.db")))
        admission = Admission(SUBMITTED_KINDS)
        scheme = Scheme(admission.kinds)
        registry = Registry(
            store, scheme, clock, lambda: str(uuid4()), admission, root_ca=proof.ca.read_text()
        )
        await stack.enter_async_context(_running(store.run, store.grow_old))
        await ensure_namespaces(registry)
        client = LocalClient(registry)
        logs, containers = _Logs(settings.home), _Containers(runtime)
        api = Api(
            registry, admission, Access(proof.token), logs, clock, containers=containers, meter=Meter(runtime)
        )
        tls, listen = proof.server_context(), settings.listen
        address = await stack.enter_async_context(
            _answering(settings.port, lambda port: serving(api, tls, host=listen, port=port))
        )
        _write_kubeconfig(settings.home / "kubeconfig", address, proof)
        await announce(client, address)
        center = JobCenter(client, proof.token, clock, listen=listen)
        ui = await stack.enter_async_context(
            _answering(settings.ui_port, lambda port: serving_pages(center, host=listen, port=port))
        )
        for_pods = address
        if gateway:
            for_pods = await stack.enter_async_context(_listening_to_pods(api, proof, gateway))
        home = Home(Running(os.getpid(), __version__, address, ui))
        stack.push_async_callback(_leave, home, runtime)
        cards = await anyio.to_thread.run_sync(gpus_of, settings.gpus)
        machine = Machine(
            node_name(socket.gethostname()),
            version=__version__,
            runtime=runtime.engine,
            resources=resources_of(cards),
            annotations=annotations_for(cards),
        )
        access = ApiAccess(for_pods, proof.ca.read_text(), proof.token)
        companions = (kind for kind in companion_kinds(JOB_KINDS) if kind in admission.kinds)
        lookout = Lookout(client, JOB_KINDS, companions)
        ports = PortBook(port_is_free, shared=not gateway)
        await stack.enter_async_context(
            _running(
                lookout.run,
                Collector(client, scheme).run,
                Namespaces(client, scheme, proof.ca.read_text(), clock).run,
                JobController(client, lookout, clock, ports).run,
                AppController(
                    client,
                    clock,
                    APP_KINDS,
                    new_token=token_hex,
                    ask=ask_jupyter,
                    ports=ports,
                    pulls=bool(gateway),
                ).run,
                Binder(client, lookout, clock, cpu_overcommit=settings.cpu_overcommit).run,
                NodeAgent(
                    client,
                    runtime,
                    tools.images,
                    clock,
                    home=settings.home,
                    machine=machine,
                    access=access,
                    network=tools.network(),
                ).run,
                *_sweepers(settings, client, clock),
            )
        )
        stack.enter_context(announced(settings.home, home.running))
        yield home


def _sweepers(settings: Settings, client: LocalClient, clock: SystemClock) -> Iterator[Part]:
    if settings.log_retention != "forever":
        kinds = (one.kind for one in SUBMITTED_KINDS)
        yield Retention(settings.home, client, kinds, clock, duration(settings.log_retention)).run


async def _leave(home: Home, runtime: Runtime) -> None:
    """After the agent has gone, so that it starts nothing again that is being stopped."""
    if home.stop_pods:
        with anyio.CancelScope(shield=True):
            await stop_all_pods(runtime, GRACE)


def prepare_process() -> None:
    # Objects live long here and rarely in cycles: collecting as often as Python does by default would be felt in
    # every hundredth write once there are thousands of them.
    gc.set_threshold(100_000, 50, 1000)
    # A thread that writes to the disk gets its turn soon, however busy the event loop is with clients.
    sys.setswitchinterval(0.0005)
    # One descriptor for each container that runs, and one for each connection.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # What clients send is told to them; it is no event for the log.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)


@asynccontextmanager
async def _running(*parts: Part) -> AsyncIterator[None]:
    """Parts that run until the block is left."""
    async with anyio.create_task_group() as tasks:
        for part in parts:
            tasks.start_soon(part)
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


@asynccontextmanager
async def _answering(
    wanted: int, served: Callable[[int], AbstractAsyncContextManager[Bound]]
) -> AsyncIterator[str]:
    """A server on the port that was asked for, or on any free one when that is taken; its address."""
    async with AsyncExitStack() as stack:
        try:
            bound = await stack.enter_async_context(served(wanted))
        except Unavailable:
            bound = await stack.enter_async_context(served(0))
            log.warning("port %d is taken: listening on %d instead", wanted, bound.port)
        yield bound.url


@asynccontextmanager
async def _listening_to_pods(api: Api, proof: PkiCredentials, gateway: str) -> AsyncIterator[str]:
    """The API once more, where pods with a network of their own find this machine."""
    async with serving(api, proof.server_context(), host=gateway, early=True) as bound:
        yield bound.url


class _Logs:
    """The agent's logs, as the API asks for them."""

    def __init__(self, home: Path) -> None:
        self._reader = PodLogReader(home)

    def read(self, pod: Json, container: str, options: LogOptions) -> AsyncIterator[bytes]:
        return self._reader.read(
            pod,
            container,
            follow=options.follow,
            tail_lines=options.tail,
            since=options.since,
            timestamps=options.timestamps,
            previous=options.previous,
        )


class _Containers:
    """The agent's running containers, as the API enters them."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def conversation(self, pod: Json, container: str, wish: Wish) -> AbstractAsyncContextManager[Visit]:
        return visiting(
            self._runtime,
            running_attempt(pod, container),
            wish.command,
            stdin=wish.stdin,
            stdout=wish.stdout,
            stderr=wish.stderr,
            tty=wish.tty,
        )


def _write_kubeconfig(path: Path, address: str, proof: PkiCredentials) -> None:
    way_in = kubeconfig.Credentials(
        token=proof.token, certificate=proof.client_certificate.read_text(), key=proof.client_key.read_text()
    )
    kubeconfig.write(
        path, kubeconfig.Connection(address, ca=proof.ca.read_text(), credentials=way_in), "fullrank"
    )


def node_name(hostname: str) -> str:
    """A machine's name as a node may be called."""
    return re.sub(r"[^a-z0-9.-]+", "-", hostname.lower()).strip("-.") or "localhost"
