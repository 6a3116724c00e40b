"""The job controller: gather what there is, let `planning` decide, say it in the status, then do it.

The status is written before anything is done. That write compares and sets, so whatever follows was decided on the
newest version of the job, and a decision that ends a job is on record before its pods go.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial

import anyio
import msgspec

from fullrank.api.annotations import PORTS, STOP
from fullrank.api.meta import (
    Json,
    controller_of,
    is_terminating,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from fullrank.api.scheme import POD, SERVICE, Kind
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controllers.companions import Companions
from fullrank.controllers.counters import Counters
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.news import News
from fullrank.controllers.ports import PortBook
from fullrank.controllers.workqueue import WorkQueue
from fullrank.dialects.contract import JobKind, Obstacle
from fullrank.errors import AlreadyExists, Cause, Conflict, FullrankError, NotFound, Unavailable
from fullrank.planning.desired import overwrites_restart_policy, pod_for, service_for
from fullrank.planning.plan import (
    Action,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeleteService,
    Plan,
    StopPod,
)
from fullrank.planning.rules import plan
from fullrank.planning.scene import Scene, scene_of
from fullrank.planning.troubles import troubles

log = logging.getLogger(__name__)

POLICY_OVERWRITTEN = "Restart policy in pod template will be overwritten by restart policy in replica spec"
AT_ONCE = 16  # requests on the way for one job
WORKERS, WORKERS_AT_HOME = 8, 32  # jobs that are looked at together; at home many writes share a commit
A_TURN, LONGEST_WAIT = timedelta(seconds=0.1), timedelta(seconds=5)  # in which services wait for others' pods


class JobController:
    """All kinds of jobs; `ports` is given where all pods share one machine, which is ours to free."""

    def __init__(
        self,
        client: Client,
        lookout: Lookout,
        clock: Clock,
        ports: PortBook | None = None,
        counters: Counters | None = None,
    ) -> None:
        self._client = client
        self._lookout = lookout
        self._clock = clock
        self._ports = ports
        self._counters = counters or Counters()
        self._companions = Companions(client, lookout.companions)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._refusals: dict[str, Obstacle] = {}  # job's uid → what could not be made for it
        self._patient: dict[str, datetime] = {}  # job's uid → since when its services wait
        self._news = News(client, clock, lookout.job_kinds.values(), self._queue.rest)
        for cache in lookout.jobs.values():
            cache.listen(self._job_changed)
        for cache in (lookout.pods, lookout.services, *lookout.companions.values()):
            cache.listen(self._dependent_changed)
        lookout.pods.listen(self._tell_of_trouble)

    async def run(self) -> None:
        await self._lookout.synced()
        self._remember_ports()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._news.run)
            await self._queue.run(self.reconcile, workers=WORKERS_AT_HOME if self._ports else WORKERS)

    def _job_changed(self, old: Json | None, new: Json | None) -> None:
        job = new or old
        if job and (kind := self._lookout.job_kind(job)):
            self._queue.add(Key(kind.kind, namespace_of(job), name_of(job)))
            if new is None:
                self._refusals.pop(uid_of(job), None)
                self._patient.pop(uid_of(job), None)
                if self._ports:
                    self._ports.release(uid_of(job))

    def _dependent_changed(self, old: Json | None, new: Json | None) -> None:
        for one in (old, new):
            if one and (key := self._lookout.job_key(controller_of(one), namespace_of(one))):
                self._queue.add(key)

    def _tell_of_trouble(self, old: Json | None, new: Json | None) -> None:
        """What goes wrong in a pod, in an event on its job, when it shows for the first time."""
        if (
            old is None
            or new is None
            or not (key := self._lookout.job_key(controller_of(new), namespace_of(new)))
        ):
            return
        known = troubles(old)
        for reason, message in troubles(new):
            job = self._lookout.jobs[key.kind].get(key)
            if job is not None and (reason, message) not in known:
                self._news.tell(job, "Warning", reason, message)

    # -- look ------------------------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> timedelta | None:
        job = self._lookout.jobs[key.kind].get(key)
        if job is None or is_terminating(job):
            return None
        job_kind = self._lookout.job_kinds[(key.kind.api_version, key.kind.kind)]
        scene = self._gather(job_kind, job)
        if scene.job.managed_elsewhere:
            return None
        if not (self._ports or scene.job.status.finished) and (wrong := job_kind.complaints(job)):
            await self._refuse(key, job, wrong)
            return None
        if self._ports and not scene.job.status.finished and not scene.job.run_policy.suspend:
            job = await self._with_ports(scene, job)
            scene = self._gather(job_kind, job)
        return await self._carry_out(scene, job, plan(scene))

    def _gather(self, job_kind: JobKind, job: Json) -> Scene:
        pods, services = (
            self._lookout.pods.owned_by(uid_of(job)),
            self._lookout.services.owned_by(uid_of(job)),
        )
        companions = self._companions.of(job_kind, uid_of(job))
        refusal = self._refusals.get(uid_of(job))
        return scene_of(job_kind, job, pods, services, self._clock.now(), refusal, companions)

    async def _with_ports(self, scene: Scene, job: Json) -> Json:
        """The job with a port for every member that opens one, recorded on it where it is not the manifest's own."""
        assert self._ports
        given = self._ports.assign(scene.gang)
        if given == scene.job.ports:
            return job
        text = msgspec.json.encode(given).decode() if given else None
        patch = {
            "metadata": {"annotations": {PORTS: text}, "resourceVersion": job["metadata"]["resourceVersion"]}
        }
        return await self._learnt(
            scene.job_kind.kind, self._client.patch(Key.of(scene.job_kind.kind, job), patch)
        )

    async def _refuse(self, key: Key, job: Json, wrong: list[Cause]) -> None:
        """A job that nobody checked when it came in, as on clusters, and that cannot be run as it is."""
        word, listed = key.kind.kind, "; ".join(str(cause) for cause in wrong)
        log.warning("%s is invalid: %s", key, listed)
        text = f"{word} failed validation because {listed}"
        self._news.tell(job, "Warning", f"{word}FailedValidation", text)

    def _remember_ports(self) -> None:
        if not self._ports:
            return
        for cache in self._lookout.jobs.values():
            for job in cache.all():
                scene = self._gather(self._lookout.job_kinds[(job["apiVersion"], job["kind"])], job)
                if scene.seats and not scene.job.status.finished:
                    self._ports.hold(scene.gang)

    # -- act -------------------------------------------------------------------------------------------------------

    async def _carry_out(self, scene: Scene, job: Json, decision: Plan) -> timedelta | None:
        before: Json = job.get("status") or {}
        status = decision.status(scene, before)
        kind = scene.job_kind.kind
        if status != before:
            written = self._client.replace(kind, job | {"status": status}, subresource="status")
            job = await self._learnt(kind, written)
            _log_changes(Key.of(kind, job), before, status)
            self._counters.reported(
                scene.job.status, decision.report, scene.job.namespace, scene.job_kind.framework.counted_as
            )
            for news in decision.announcements:
                self._news.tell(job, news.type, news.reason, news.message)
        if self._ports and scene.job.status.finished:
            self._ports.release(scene.job.uid)
        idle = scene.job.run_policy.suspend or decision.report.completed_at is not None
        self._refusals.pop(scene.job.uid, None)
        try:
            await self._companions.keep(scene, job, self._news, idle=idle)
        except AlreadyExists as error:
            self._refusals[scene.job.uid] = Obstacle("ErrResourceExists", str(error))
            raise
        # On a cluster the machines are not ours: what a finished job leaves running is its own affair.
        mine = [one for one in decision.actions if self._ports or not isinstance(one, StopPod)]
        now, later = self._in_turn(scene.job.uid, mine)
        try:
            await self._act_on_all(scene, job, now)
        except FullrankError:
            await self._act_on_all(scene, job, later)
            raise
        is_told = decision.report.obstacle is scene.refusal is not None  # and it is so no longer
        return A_TURN if later else timedelta(0) if is_told else decision.wake_after

    def _in_turn(self, uid: str, actions: list[Action]) -> tuple[list[Action], list[Action]]:
        """What is done now, and what in a later pass: services, while there are pods to make or other jobs wait.

        Pods take a while to come up, and a cluster has much to do for each service: no job's pods wait for another's.
        At home services cost nothing, and programs start at once.
        """
        services: list[Action] = [one for one in actions if isinstance(one, CreateService)]
        if self._ports or not services:
            self._patient.pop(uid, None)
            return actions, []
        now = self._clock.now()
        waited = now - self._patient.setdefault(uid, now)
        makes_pods = any(isinstance(one, CreatePod) for one in actions)
        if waited >= LONGEST_WAIT or not (makes_pods or self._queue.crowded):
            return actions, []
        return [one for one in actions if not isinstance(one, CreateService)], services

    async def _act_on_all(self, scene: Scene, job: Json, actions: list[Action]) -> None:
        """Everything that can be done is done, several at once; then the first thing that went wrong is told."""
        due, failures = iter(actions), list[FullrankError]()

        async def act() -> None:
            for action in due:
                try:
                    await self._act(scene, job, action)
                except FullrankError as error:
                    failures.append(error)

        async with anyio.create_task_group() as tasks:
            for _ in actions[:AT_ONCE]:
                tasks.start_soon(act)
        if failures:
            raise failures[0]

    async def _act(self, scene: Scene, job: Json, action: Action) -> None:
        owner = owner_reference(job)
        match action:
            case CreatePod(member):
                word = scene.job_kind.framework.policy_warning(member)
                if word and overwrites_restart_policy(scene.gang, member):
                    self._news.tell(job, "Warning", word, POLICY_OVERWRITTEN)
                pod = pod_for(scene.job_kind, scene.gang, member, owner)
                news = scene.job_kind.framework.made(member, name_of(pod))
                await self._create(job, POD, self._lookout.pods, pod, news)
            case CreateService(member):
                service = service_for(scene.job_kind, scene.gang, member, owner)
                news = "SuccessfulCreateService", f"Created service: {name_of(service)}"
                await self._create(job, SERVICE, self._lookout.services, service, news)
            case DeletePod(name, uid):
                news = "SuccessfulDeletePod", f"Deleted pod: {name}"
                await self._delete(job, Key(POD, scene.job.namespace, name), uid, news)
            case DeleteService(name, uid):
                news = "SuccessfulDeleteService", f"Deleted service: {name}"
                await self._delete(job, Key(SERVICE, scene.job.namespace, name), uid, news)
            case StopPod(name, _):
                stop = {"metadata": {"annotations": {STOP: "the job has finished"}}}
                patched = partial(self._client.patch, Key(POD, scene.job.namespace, name), stop)
                await self._learnt_if_there(self._lookout.pods, patched)
            case DeleteJob():
                news = scene.job_kind.framework.deletion_told_as, f"Deleted job: {scene.job.name}"
                await self._delete(job, Key.of(scene.job_kind.kind, job), uid_of(job), news)
                self._counters.deleted(scene.job.namespace, scene.job_kind.framework.counted_as)

    async def _create(self, job: Json, kind: Kind, cache: Cache, obj: Json, news: tuple[str, str]) -> None:
        try:
            cache.learn(await self._client.create(kind, obj))
        except AlreadyExists:
            # Ours, from a pass whose answer we never saw; or somebody else's, and then we wait until it is gone.
            found = await self._client.get(Key.of(kind, obj))
            if (controller_of(found) or {}).get("uid") != uid_of(job):
                self._refused(job, kind, f'{kind.plural} "{name_of(obj)}" already exists')
                raise
            cache.learn(found)
        except FullrankError as error:
            self._refused(job, kind, str(error), passing=isinstance(error, Unavailable))
            raise
        else:
            self._news.tell(job, "Normal", *news)

    def _refused(self, job: Json, kind: Kind, why: str, *, passing: bool = False) -> None:
        """An event tells it now, and a condition from the next pass on, until it can be made."""
        refusal = Obstacle(f"FailedCreate{kind.kind}", f"Error creating: {why}")
        self._news.tell(job, "Warning", refusal.reason, refusal.message)
        if not passing:
            # Of several always the same one, whichever answer came first: a status that changes wakes the job.
            known = self._refusals.get(uid_of(job), refusal)
            self._refusals[uid_of(job)] = min(known, refusal, key=lambda one: one.message)

    async def _delete(self, job: Json, key: Key, uid: str, news: tuple[str, str]) -> None:
        try:
            await self._client.delete(key, uid=uid)
        except (NotFound, Conflict):
            return  # gone, or another of the same name: not the one we meant
        self._news.tell(job, "Normal", *news)

    async def _learnt(self, kind: Kind, written: Awaitable[Json]) -> Json:
        obj = await written
        self._lookout.jobs[kind].learn(obj)
        return obj

    async def _learnt_if_there(self, cache: Cache, write: Callable[[], Awaitable[Json]]) -> None:
        try:
            cache.learn(await write())
        except NotFound:
            return


def _log_changes(key: Key, before: Json, status: Json) -> None:
    """One line for each condition that is new."""
    known = before.get("conditions") or ()
    for one in status.get("conditions") or ():
        if one not in known:
            log.info("%s: %s=%s: %s", key, one.get("type"), one.get("status"), one.get("message"))
