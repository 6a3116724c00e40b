"""The agent of one node: registers the machine, and gives every pod that is bound to it a supervisor.

Cancelling it ends the supervision, not the pods: the next agent adopts them. To stop them is the caller's choice
(`stop_all_pods`).
"""

import logging
import math
from collections.abc import Collection
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from fullrank.agent.api_access import ApiAccess
from fullrank.agent.following import follow
from fullrank.agent.network import Network
from fullrank.agent.node import Machine, NodePost
from fullrank.agent.places import Places
from fullrank.agent.runtime import Runtime
from fullrank.agent.sources import Source, references
from fullrank.agent.supervisor import ImageSource, Node, PodSupervisor, Story
from fullrank.agent.volumes import release_volumes
from fullrank.api.meta import Json, name_of, namespace_of, uid_of
from fullrank.api.scheme import CONFIG_MAP, POD, SECRET, SERVICE, Kind
from fullrank.client.events import EventRecorder
from fullrank.client.port import Client
from fullrank.clock import Clock
from fullrank.errors import Unavailable

logger = logging.getLogger(__name__)

HEARTBEAT = 10.0  # seconds
WRITERS = 4  # of events: together they share the store's commits
RETRY = 1.0  # seconds
GATHERING = 0.02  # seconds in which changes of names are gathered into one writing of the hosts files


class NodeAgent:
    def __init__(
        self,
        client: Client,
        runtime: Runtime,
        images: ImageSource,
        clock: Clock,
        *,
        home: Path,
        machine: Machine,
        access: ApiAccess | None = None,
        network: Network | None = None,
    ) -> None:
        self._post = NodePost(client, clock, machine)
        self._events = EventRecorder(client, "kubelet", clock, host=machine.name)
        self._stories, self._told = anyio.create_memory_object_stream[Story](math.inf)
        self._node = Node(
            machine.name,
            machine.address,
            client,
            runtime,
            images,
            clock,
            places=Places(home),
            network=network or Network(Places(home)),
            tell=self._stories.send_nowait,
            allocatable=self._post.capacity,
            access=access,
        )
        self._supervisors: dict[str, PodSupervisor] = {}
        self._readers: dict[tuple[str, Source], set[str]] = {}  # whose pods show an object as files
        self._services_known = anyio.Event()
        self._names_changed = anyio.Event()
        self._ends: dict[tuple[str, str], anyio.Event] = {}
        self._was_listed = self._is_tidy = False

    async def run(self) -> None:
        async with self._stories, self._told, anyio.create_task_group() as tasks:
            for _ in range(WRITERS):
                tasks.start_soon(self._write_events)
            tasks.start_soon(self._beat)
            tasks.start_soon(self._follow_services)
            tasks.start_soon(self._write_names)
            tasks.start_soon(self._follow_sources, CONFIG_MAP)
            tasks.start_soon(self._follow_sources, SECRET)
            # A pod that starts before its services are known would not find them.
            await self._services_known.wait()
            await self._follow_pods(tasks)

    async def _beat(self) -> None:
        while True:
            try:
                await self._post.announce()
            except Unavailable as problem:
                logger.warning("the node's heartbeat was not written: %s", problem)
            await anyio.sleep(HEARTBEAT)

    async def _write_events(self) -> None:
        async for story in self._told:
            await self._events.emit(
                story.pod, story.type, story.reason, story.message, field_path=story.field_path
            )

    async def _follow_services(self) -> None:
        def see(service: Json) -> None:
            self._node.network.learn_service(service)
            self._names_changed.set()

        def lose(service: Json) -> None:
            self._node.network.forget_service(service)
            self._names_changed.set()

        await follow(self._node.client, SERVICE, see=see, lose=lose, listed=self._services_known.set)

    async def _follow_sources(self, kind: Kind) -> None:
        """Pods that show an object as files are told when it changes."""

        def see(obj: Json) -> None:
            for uid in self._readers.get((namespace_of(obj), Source(kind, name_of(obj))), ()):
                self._supervisors[uid].renew_volumes()

        await follow(self._node.client, kind, see=see, lose=see)

    async def _write_names(self) -> None:
        while True:
            await self._names_changed.wait()
            await anyio.sleep(GATHERING)
            self._names_changed = anyio.Event()
            try:
                self._node.network.settle()
            except OSError as problem:
                logger.warning("the names of pods cannot be written, trying again: %s", problem)
                self._names_changed.set()
                await anyio.sleep(RETRY)

    async def _follow_pods(self, tasks: TaskGroup) -> None:
        waiting: dict[str, Json] = {}  # until what no longer belongs here has been stopped

        def see(pod: Json) -> None:
            if not self._is_tidy:
                waiting[uid_of(pod)] = pod
            elif (known := self._supervisors.get(uid_of(pod))) is not None:
                known.learn(pod)
            else:
                self._supervise(tasks, pod)

        def lose(pod: Json) -> None:
            waiting.pop(uid_of(pod), None)
            if (known := self._supervisors.get(uid_of(pod))) is not None:
                known.lose()

        async def tidy_up() -> None:
            await self._stop_strangers(waiting)
            self._is_tidy = True
            # Addresses that pods already have come before new ones are given out.
            for pod in sorted(waiting.values(), key=lambda pod: not (pod.get("status") or {}).get("podIP")):
                self._supervise(tasks, pod)

        def listed() -> None:
            if not self._was_listed:
                self._was_listed = True
                tasks.start_soon(tidy_up)

        fields = f"spec.nodeName={self._node.name}"
        await follow(self._node.client, POD, see=see, lose=lose, listed=listed, fields=fields)

    async def _stop_strangers(self, known: Collection[str]) -> None:
        """Ends pods whose objects went while no agent ran: a pod of the same name may be about to start."""
        async with anyio.create_task_group() as tasks:
            for uid in self._node.runtime.pods():
                if uid not in known:
                    logger.info("pod %s was deleted while no agent ran: stopping it", uid)
                    tasks.start_soon(self._remove, uid)

    async def _remove(self, pod_uid: str) -> None:
        await stop_pod(self._node.runtime, pod_uid, 0)
        await self._node.runtime.forget(pod_uid)
        release_volumes(pod_uid, self._node.places)

    def _supervise(self, tasks: TaskGroup, pod: Json) -> None:
        self._supervisors[uid_of(pod)] = PodSupervisor(pod, self._node)
        for source in references(pod):
            self._readers.setdefault((namespace_of(pod), source), set()).add(uid_of(pod))
        key = (namespace_of(pod), name_of(pod))
        before, self._ends[key] = self._ends.get(key), anyio.Event()
        tasks.start_soon(self._run, pod, before, self._ends[key])
        self._names_changed.set()

    async def _run(self, pod: Json, before: anyio.Event | None, end: anyio.Event) -> None:
        uid, key = uid_of(pod), (namespace_of(pod), name_of(pod))
        if before is not None:  # no rank runs twice: what had this name must have ended
            await before.wait()
        logger.info("pod %s/%s is here", *key)
        while True:
            try:
                await self._supervisors[uid].run()
            except Exception:  # the agent's work queue: one odd pod must not stop the others
                logger.exception("supervision of pod %s/%s failed", *key)
                await anyio.sleep(HEARTBEAT)
                self._supervisors[uid] = self._supervisors[uid].successor()
            else:
                break
        del self._supervisors[uid]
        for source in {*references(pod)}:
            readers = self._readers[namespace_of(pod), source]
            readers.discard(uid)
            if not readers:
                del self._readers[namespace_of(pod), source]
        end.set()
        if self._ends[key] is end:
            del self._ends[key]
        self._names_changed.set()
        logger.info("pod %s/%s is gone", *key)


async def stop_all_pods(runtime: Runtime, grace: float) -> None:
    """Stops everything that runs on this machine, all at the same time; what it was is reported by the next agent."""
    async with anyio.create_task_group() as tasks:
        for pod_uid in runtime.pods():
            tasks.start_soon(stop_pod, runtime, pod_uid, grace)


async def stop_pod(runtime: Runtime, pod_uid: str, grace: float) -> None:
    async with anyio.create_task_group() as tasks:
        for run in await runtime.runs(pod_uid):
            if run.exit is None:
                tasks.start_soon(runtime.stop, run.attempt, grace)
