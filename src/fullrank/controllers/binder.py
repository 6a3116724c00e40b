"""The binder of the embedded home: a job's pods are seated together or wait together, and a waiting job says why."""

import logging
from collections.abc import Mapping
from datetime import timedelta

import anyio

from fullrank.api.meta import Json, controller_of, is_terminating, name_of, namespace_of, stamp, uid_of
from fullrank.api.scheme import POD
from fullrank.client.events import EventRecorder
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.workqueue import WorkQueue
from fullrank.errors import Conflict, NotFound
from fullrank.scheduling.amounts import amounts_of, asked_by, total
from fullrank.scheduling.gang import Placement, Room, Shortfall, place

log = logging.getLogger(__name__)


class Binder:
    """Seats gangs one at a time, so that no two count on the same room; `cpu_overcommit` stretches the cores."""

    def __init__(self, client: Client, lookout: Lookout, clock: Clock, *, cpu_overcommit: float) -> None:
        self._client = client
        self._lookout = lookout
        self._clock = clock
        self._cpu_overcommit = cpu_overcommit
        self._events = EventRecorder(client, "fullrank-scheduler", clock)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._ledger = Ledger()
        self._waiting: dict[Key, str] = {}
        lookout.pods.listen(self._pod_changed)
        lookout.nodes.listen(self._node_changed)

    async def run(self) -> None:
        await self._lookout.synced()
        await self._queue.run(self.reconcile, workers=1)

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        if self._ledger.change(old, new):
            self._look_again()
        if new and _unseated(new):
            self._queue.add(self._gang_key(new))

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if old is None or new is None or _capacity(old) != _capacity(new) or _is_ready(old) != _is_ready(new):
            self._look_again()

    def _look_again(self) -> None:
        for key in self._waiting:
            self._queue.add(key)

    def _gang_key(self, pod: Json) -> Key:
        """A job's pods belong together; a pod of its own is a gang of one."""
        owner = self._lookout.job_key(controller_of(pod), namespace_of(pod))
        return owner or Key(POD, namespace_of(pod), name_of(pod))

    # -- look, decide, act -----------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> timedelta | None:
        owner, unseated = self._gang(key)
        if owner is None or not unseated:
            self._waiting.pop(key, None)
            return None
        asks = {name_of(pod): asked_by(pod) for pod in unseated}
        match place(asks, self._rooms(), self._ledger.holders()):
            case Placement(seats):
                self._waiting.pop(key, None)
                await self._seat(unseated, seats)
            case Shortfall(reason):
                await self._wait(key, owner, unseated, reason)
        return None

    def _gang(self, key: Key) -> tuple[Json | None, list[Json]]:
        """Who waits, and its pods without a node; none while some of a job's pods are still to be created."""
        if key.kind == POD:
            pod = self._lookout.pods.get(key)
            return pod, [pod] if pod and _unseated(pod) else []
        job = self._lookout.jobs[key.kind].get(key)
        if job is None:
            return None, []
        job_kind = self._lookout.job_kinds[(key.kind.api_version, key.kind.kind)]
        pods = self._lookout.pods.owned_by(uid_of(job))
        present = {job_kind.dialect.member(job_kind.framework, pod) for pod in pods}
        members = job_kind.gang(job_kind.read(job)).due
        complete = all(member in present for member in members)
        return job, [pod for pod in pods if _unseated(pod)] if complete else []

    def _rooms(self) -> list[Room]:
        return [
            Room(name_of(node), self._stretched(_capacity(node)), self._ledger.taken(name_of(node)))
            for node in self._lookout.nodes.all()
            if _is_ready(node)
        ]

    def _stretched(self, capacity: dict[str, int]) -> dict[str, int]:
        return capacity | {"cpu": int(capacity.get("cpu", 0) * self._cpu_overcommit)}

    async def _seat(self, pods: list[Json], seats: Mapping[str, str]) -> None:
        async with anyio.create_task_group() as tasks:
            for pod in pods:
                tasks.start_soon(self._bind, pod, seats[name_of(pod)])

    async def _bind(self, pod: Json, node: str) -> None:
        key = Key.of(POD, pod)
        try:
            await self._client.bind(key, node, uid=uid_of(pod))
            self._lookout.pods.learn(await self._client.get(key))
        except (Conflict, NotFound):
            return  # seated already, or gone: the watch tells
        text = f"Successfully assigned {key.namespace}/{key.name} to {node}"
        await self._events.emit(pod, "Normal", "Scheduled", text)

    async def _wait(self, key: Key, owner: Json, pods: list[Json], reason: str) -> None:
        if self._waiting.get(key) == reason:
            return
        self._waiting[key] = reason
        log.info("%s waits: %s", key, reason)
        await self._events.emit(owner, "Warning", "FailedScheduling", reason)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": reason,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(self._clock.now()),
        }
        for pod in pods:
            patch = {"status": {"conditions": [condition]}}
            try:
                await self._client.patch(Key.of(POD, pod), patch, subresource="status")
            except NotFound:
                continue


class Ledger:
    """What seated pods take of each node, kept up to date change by change."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, int]] = {}
        self._held: dict[str, dict[str, dict[str, int]]] = {}

    def change(self, old: Json | None, new: Json | None) -> bool:
        """Books a change of a pod; true if something became free."""
        before, after = _occupies(old), _occupies(new)
        if before == after:
            return False
        for pod, node, sign in ((old, before, -1), (new, after, 1)):
            if pod is not None and node:
                self._book(node, pod, sign)
        return bool(before)

    def _book(self, node: str, pod: Json, sign: int) -> None:
        asked = asked_by(pod)
        taken = self._taken.setdefault(node, {})
        for name, amount in asked.items():
            taken[name] = taken.get(name, 0) + sign * amount
        holders = self._held.setdefault(_holder(pod), {})
        if sign > 0:
            holders[uid_of(pod)] = asked
        else:
            holders.pop(uid_of(pod), None)
            if not holders:
                del self._held[_holder(pod)]

    def taken(self, node: str) -> dict[str, int]:
        return dict(self._taken.get(node, {}))

    def holders(self) -> dict[str, dict[str, int]]:
        return {who: total(pods.values()) for who, pods in self._held.items()}


def _occupies(pod: Json | None) -> str:
    """The node a pod takes room on, if any: from when it is bound until it has ended."""
    if pod is None or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return ""
    node: str = pod["spec"].get("nodeName", "")
    return node


def _holder(pod: Json) -> str:
    owner = controller_of(pod)
    return f"{namespace_of(pod)}/{owner['name'] if owner else name_of(pod)}"


def _unseated(pod: Json) -> bool:
    return not pod["spec"].get("nodeName") and not is_terminating(pod)


def _capacity(node: Json) -> dict[str, int]:
    return amounts_of((node.get("status") or {}).get("allocatable"))


def _is_ready(node: Json) -> bool:
    conditions: list[Json] = (node.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
