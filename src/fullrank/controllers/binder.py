"""The binder of the embedded home: tells the floor what there is, and does what it decides.

A job's pods are seated together or wait together, and a waiting job says why. Everything that changed since the last
pass is taken together, so a thousand jobs that come at once are a few passes.
"""

import logging
from datetime import timedelta
from typing import Literal, NamedTuple

import anyio

from fullrank.api.annotations import DEVICES, PREEMPTED_BY
from fullrank.api.devices import cards_of, written_devices
from fullrank.api.meta import (
    Json,
    annotations_of,
    controller_of,
    is_terminating,
    name_of,
    namespace_of,
    stamp,
    uid_of,
)
from fullrank.api.scheme import POD, Kind
from fullrank.client.events import EventRecorder
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controllers.claims import Claims, Rules, bearing
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.news import News
from fullrank.controllers.queue_status import QueueReporter
from fullrank.controllers.workqueue import WorkQueue
from fullrank.errors import Conflict, FullrankError, NotFound
from fullrank.scheduling.amounts import amounts_of
from fullrank.scheduling.floor import Floor
from fullrank.scheduling.gang import Admit, Decision, Gang, Preempt, Resume, Wait
from fullrank.scheduling.rooms import Seat

log = logging.getLogger(__name__)

AT_ONCE = 64  # requests on the way: many share a commit, and nobody else waits long for the next one
COMPONENT = "fullrank-scheduler"


class Signed(NamedTuple):
    """A kind of object that the scheduler tells of, in its own name."""

    kind: Kind
    controller: str = COMPONENT


class Owner(NamedTuple):
    """Whose pods a gang is made of: a job, or a pod of its own."""

    key: Key
    uid: str


class Binder:
    """`cpu_overcommit` stretches the cores."""

    def __init__(self, client: Client, lookout: Lookout, clock: Clock, *, cpu_overcommit: float) -> None:
        self._client = client
        self._lookout = lookout
        self._clock = clock
        self._cpu_overcommit = cpu_overcommit
        self._events = EventRecorder(client, COMPONENT, clock)
        self._rules = Rules(client)
        self._floor = Floor()
        self._claims = Claims(self._rules)
        self._owners: dict[str, Owner] = {}
        self._changed: dict[str, Owner] = {}
        self._rules_changed = False
        self._queues: set[str] = set()
        self._queue: WorkQueue[Literal["floor"]] = WorkQueue()
        self._news = News(client, clock, (Signed(POD),), self._queue.rest)
        self._reporter = QueueReporter(client, self._rules, self._floor, clock)
        lookout.pods.listen(self._pod_changed)
        lookout.nodes.listen(self._node_changed)
        for cache in lookout.jobs.values():
            cache.listen(self._job_changed)
        self._rules.listen(self._note_rules)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for cache in self._rules.caches:
                tasks.start_soon(cache.run)
            await self._lookout.synced()
            for cache in self._rules.caches:
                await cache.synced()
            tasks.start_soon(self._reporter.run)
            tasks.start_soon(self._news.run)
            await self._queue.run(self.reconcile, workers=1)

    # -- what changed ----------------------------------------------------------------------------------------------

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        same = old and new and uid_of(old) == uid_of(new)
        if old and not same:
            self._claims.forget_pod(old)
        if old and new and same and bearing(old) == bearing(new):
            return
        for pod in (old, new):
            if pod:
                self._note(self._owner_of(pod))

    def _job_changed(self, old: Json | None, new: Json | None) -> None:
        for job in (old, new):
            if job and (kind := self._lookout.job_kind(job)):
                self._note(Owner(Key.of(kind.kind, job), uid_of(job)))

    def _node_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None:
            self._floor.close(name_of(old or {"metadata": {}}))
        elif old is None or _offer(old) != _offer(new):
            self._floor.furnish(
                name_of(new), self._stretched(_capacity(new)), cards_of(new), is_open=_is_open(new)
            )
        else:
            return
        self._queue.add("floor")

    def _stretched(self, capacity: dict[str, int]) -> dict[str, int]:
        return capacity | {"cpu": int(capacity.get("cpu", 0) * self._cpu_overcommit)}

    def _note_rules(self) -> None:
        self._rules_changed = True
        self._queue.add("floor")

    def _note(self, owner: Owner) -> None:
        self._changed[owner.uid] = owner
        self._queue.add("floor")

    def _owner_of(self, pod: Json) -> Owner:
        reference = controller_of(pod)
        job = self._lookout.job_key(reference, namespace_of(pod))
        return Owner(job, reference["uid"]) if job and reference else Owner(Key.of(POD, pod), uid_of(pod))

    # -- look, decide, act -----------------------------------------------------------------------------------------

    async def reconcile(self, _floor: str) -> timedelta | None:
        if self._rules_changed:
            self._read_rules()
        changed, self._changed = self._changed, {}
        for owner in changed.values():
            self._see(owner)
        decisions = self._floor.decide()
        self._reporter.note()
        await self._act_on_all(decisions)
        for owner in changed.values():
            await self._take_off_mark(owner)
        return None

    def _read_rules(self) -> None:
        self._rules_changed = False
        policies = self._rules.policies()
        for gone in self._queues - policies.keys():
            self._floor.close_queue(gone)
        for name, policy in policies.items():
            self._floor.open_queue(name, policy)
        self._queues = set(policies)
        self._changed |= self._owners
        for uid in self._owners:
            self._claims.forget_job(uid)

    def _see(self, owner: Owner) -> None:
        gang = self._gang(owner)
        if gang is None:
            self._owners.pop(owner.uid, None)
            self._claims.forget_job(owner.uid)
            self._floor.forget(owner.uid)
        else:
            self._owners[owner.uid] = owner
            self._floor.see(gang)

    def _gang(self, owner: Owner) -> Gang | None:
        obj, key = self._object(owner), owner.key
        if key.kind == POD:
            return self._claims.of_pod(obj) if obj else None
        pods = self._lookout.pods.owned_by(owner.uid)
        if obj is None:
            title = f"{key.namespace}/{key.name}"
            return self._claims.of_leftovers(owner.uid, title, pods) if pods else None
        job_kind = self._lookout.job_kinds[(key.kind.api_version, key.kind.kind)]
        return self._claims.of_job(job_kind, obj, pods)

    def _object(self, owner: Owner) -> Json | None:
        cache = self._lookout.pods if owner.key.kind == POD else self._lookout.jobs[owner.key.kind]
        found = cache.get(owner.key)
        return found if found and uid_of(found) == owner.uid else None

    def _pods(self, owner: Owner) -> list[Json]:
        if owner.key.kind == POD:
            pod = self._object(owner)
            return [pod] if pod else []
        return self._lookout.pods.owned_by(owner.uid)

    async def _act_on_all(self, decisions: list[Decision]) -> None:
        """Everything that can be done is done; then the first thing that went wrong is told."""
        limiter, failures = anyio.CapacityLimiter(AT_ONCE), list[FullrankError]()

        async def act(decision: Decision) -> None:
            try:
                await self._act(decision, limiter)
            except FullrankError as error:
                failures.append(error)
                self._floor.untold(decision.uid)
                self._changed[decision.uid] = self._owners[decision.uid]

        async with anyio.create_task_group() as tasks:
            for decision in decisions:
                tasks.start_soon(act, decision)
        if failures:
            raise failures[0]

    async def _act(self, decision: Decision, limiter: anyio.CapacityLimiter) -> None:
        owner = self._owners[decision.uid]
        match decision:
            case Admit(_, seats):
                async with anyio.create_task_group() as tasks:
                    for pod in self._pods(owner):
                        if seat := seats.get(name_of(pod)):
                            tasks.start_soon(self._bind, pod, seat, limiter)
            case Wait(_, reason):
                await self._wait(owner, reason, limiter)
            case Preempt():
                async with limiter:
                    await self._preempt(owner, decision)
            case Resume():
                async with limiter:
                    await self._resume(owner)

    async def _bind(self, pod: Json, seat: Seat, limiter: anyio.CapacityLimiter) -> None:
        key = Key.of(POD, pod)
        async with limiter:
            try:
                if seat.cards:
                    devices = {DEVICES: written_devices(seat.cards)}
                    await self._client.patch(key, {"metadata": {"annotations": devices}})
                await self._client.bind(key, seat.node, uid=uid_of(pod))
                self._lookout.pods.learn(await self._client.get(key))
            except (Conflict, NotFound):
                return  # seated already, or gone: the watch tells
        text = f"Successfully assigned {key.namespace}/{key.name} to {seat.node}"
        self._news.tell(pod, "Normal", "Scheduled", text)

    async def _wait(self, owner: Owner, reason: str, limiter: anyio.CapacityLimiter) -> None:
        obj = self._object(owner)
        waiting = [pod for pod in self._pods(owner) if _is_unseated(pod)]
        if obj is None or (waiting and all(_says(pod, reason) for pod in waiting)):
            return  # also after a restart nothing is said twice
        log.info("%s waits: %s", owner.key, reason)
        async with limiter:
            await self._events.emit(obj, "Warning", "FailedScheduling", reason)
        async with anyio.create_task_group() as tasks:
            for pod in waiting:
                tasks.start_soon(self._mark, pod, reason, limiter)

    async def _mark(self, pod: Json, reason: str, limiter: anyio.CapacityLimiter) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": reason,
            "lastProbeTime": None,
            "lastTransitionTime": stamp(self._clock.now()),
        }
        patch = {"status": {"conditions": [condition]}}
        async with limiter:
            try:
                self._lookout.pods.learn(
                    await self._client.patch(Key.of(POD, pod), patch, subresource="status")
                )
            except NotFound:
                return

    # -- making room -----------------------------------------------------------------------------------------------

    async def _preempt(self, owner: Owner, decision: Preempt) -> None:
        job, by = self._object(owner), self._owners[decision.by]
        rival = self._object(by)
        if job is None or rival is None:
            return
        log.info("%s: %s", owner.key, decision.why)
        mark = f"{by.key.namespace}/{by.key.name}"
        job = await self._suspend(owner, job, mark)
        await self._events.emit(job, "Warning", "Preempted", decision.why)
        await self._events.emit(rival, "Normal", "Preempting", decision.news)

    async def _resume(self, owner: Owner) -> None:
        job = self._object(owner)
        if job is None:
            return
        text = f"There is room again after {annotations_of(job).get(PREEMPTED_BY, 'another job')} had it: goes on"
        job = await self._suspend(owner, job, None)
        log.info("%s: %s", owner.key, text)
        await self._events.emit(job, "Normal", "Readmitted", text)

    async def _suspend(self, owner: Owner, job: Json, by: str | None) -> Json:
        """Suspends the job and says for whom; without anybody, takes both back. Whoever wrote first is heard first."""
        dialect = self._lookout.job_kinds[(owner.key.kind.api_version, owner.key.kind.kind)].dialect
        metadata = {"annotations": {PREEMPTED_BY: by}, "resourceVersion": job["metadata"]["resourceVersion"]}
        patch = dialect.suspension(by is not None) | {"metadata": metadata}
        written = await self._client.patch(owner.key, patch)
        self._lookout.jobs[owner.key.kind].learn(written)
        return written

    async def _take_off_mark(self, owner: Owner) -> None:
        """A job that somebody else resumed is his again: should he suspend it, it stays suspended."""
        job = self._object(owner)
        if owner.key.kind == POD or job is None or PREEMPTED_BY not in annotations_of(job):
            return
        job_kind = self._lookout.job_kinds[(owner.key.kind.api_version, owner.key.kind.kind)]
        if not job_kind.read(job).run_policy.suspend:
            metadata = {
                "annotations": {PREEMPTED_BY: None},
                "resourceVersion": job["metadata"]["resourceVersion"],
            }
            written = await self._client.patch(owner.key, {"metadata": metadata})
            self._lookout.jobs[owner.key.kind].learn(written)


def _is_unseated(pod: Json) -> bool:
    return not pod["spec"].get("nodeName") and not is_terminating(pod)


def _says(pod: Json, reason: str) -> bool:
    conditions: list[Json] = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "PodScheduled" and one.get("message") == reason for one in conditions)


def _offer(node: Json) -> tuple[dict[str, int], dict[str, int] | None, bool]:
    return _capacity(node), cards_of(node), _is_open(node)


def _capacity(node: Json) -> dict[str, int]:
    return amounts_of((node.get("status") or {}).get("allocatable"))


def _is_open(node: Json) -> bool:
    """Whether the node is well and takes pods: `kubectl cordon` makes it take none."""
    conditions: list[Json] = (node.get("status") or {}).get("conditions") or []
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return ready and not (node.get("spec") or {}).get("unschedulable")
