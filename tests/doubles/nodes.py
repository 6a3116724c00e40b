"""Nodes without machines: each has its object and its room, and whatever is bound to one of them runs at once.

They pretend what an agent does for a pod, as far as the API sees it: one status that says Running, with an address and
a container that is ready; and, once the pod is asked to go, that it has gone. Nothing is started, pulled or logged, and
no events are told.
"""

from collections.abc import Awaitable, Callable

import anyio

from fullrank.api.meta import Json, is_terminating, stamp, uid_of
from fullrank.api.scheme import NODE, POD
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.errors import Conflict, NotFound

ROOM = {"cpu": "96", "memory": "768Gi", "pods": "110"}
AT_ONCE = 64  # pods that are reported together


class PretendedNodes:
    def __init__(self, client: Client, clock: Clock, count: int) -> None:
        self._client = client
        self._clock = clock
        self._count = count
        self._reported: set[str] = set()

    async def run(self) -> None:
        limiter = anyio.CapacityLimiter(AT_ONCE)

        async def within(deed: Callable[[Json], Awaitable[None]], pod: Json) -> None:
            async with limiter:
                await deed(pod)

        for number in range(self._count):
            await self._client.create(NODE, self._node(f"pretended-{number}"))
        since = (await self._client.select(POD)).revision
        async with self._client.watch(POD, since=since) as events, anyio.create_task_group() as tasks:
            async for event in events:
                pod, uid = event.obj, uid_of(event.obj)
                if event.type == "DELETED":
                    self._reported.discard(uid)
                elif is_terminating(pod):
                    tasks.start_soon(within, self._end, pod)
                elif pod["spec"].get("nodeName") and uid not in self._reported:
                    self._reported.add(uid)
                    tasks.start_soon(within, self._report, pod)

    def _node(self, name: str) -> Json:
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": ROOM, "allocatable": ROOM, "conditions": [ready]}
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}

    async def _report(self, pod: Json) -> None:
        now = stamp(self._clock.now())
        running = [
            {
                "name": one["name"],
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": one["image"],
                "imageID": one["image"],
                "state": {"running": {"startedAt": now}},
            }
            for one in pod["spec"]["containers"]
        ]
        conditions = [
            {"type": word, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
            for word in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
        ]
        status = {
            "phase": "Running",
            "startTime": now,
            "hostIP": "127.0.0.1",
            "podIP": "127.0.0.2",
            "podIPs": [{"ip": "127.0.0.2"}],
            "conditions": conditions,
            "containerStatuses": running,
        }
        try:
            await self._client.patch(Key.of(POD, pod), {"status": status}, subresource="status")
        except NotFound:
            return  # it went meanwhile

    async def _end(self, pod: Json) -> None:
        try:
            await self._client.delete(Key.of(POD, pod), uid=uid_of(pod), grace=0)
        except (NotFound, Conflict):
            return  # gone already
