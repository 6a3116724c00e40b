"""One pod on this node, from the moment it is bound until nothing is left of it: look, decide, act, report."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from fullrank.agent.api_access import FOLDER as API_FOLDER
from fullrank.agent.api_access import ApiAccess, wants_access
from fullrank.agent.care import Caretaker, is_well_at_once, starts_at_once
from fullrank.agent.environment import Surroundings, variables
from fullrank.agent.handlers import Patient
from fullrank.agent.kept_logs import remember
from fullrank.agent.last_words import message_path, prepare_message_file, with_last_words
from fullrank.agent.launching import launch_of
from fullrank.agent.network import Network
from fullrank.agent.places import Places
from fullrank.agent.pod_states import (
    DEFAULT_GRACE,
    Decision,
    Delay,
    PodRecord,
    Start,
    back_off,
    decide,
    init_names,
    title_of,
)
from fullrank.agent.pod_status import OVER, pod_status
from fullrank.agent.projections import File, project
from fullrank.agent.runtime import Attempt, Exit, Launch, Mount, Run, Runtime
from fullrank.agent.sources import Unprepared, gather
from fullrank.agent.volumes import (
    fs_group,
    mounts_of,
    prepare_volumes,
    read_only_volumes,
    refresh_volumes,
    release_volumes,
)
from fullrank.api.meta import (
    Json,
    annotations_of,
    is_terminating,
    labels_of,
    moment_of,
    name_of,
    namespace_of,
    revision_of,
    stamp,
    uid_of,
)
from fullrank.api.scheme import POD
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.errors import Conflict, NotFound, Unavailable
from fullrank.images.catalogue import Image, ImageFailed, Progress

logger = logging.getLogger(__name__)

RETRY = timedelta(seconds=1)
SLOWEST_RETRY = timedelta(seconds=30)
FIRST_PULL_RETRY = timedelta(seconds=10)
SLOWEST_PULL_RETRY = timedelta(minutes=5)
LAST_GRACE = 2.0  # seconds that remain after a preStop hook has used up its grace


@dataclass(frozen=True, slots=True)
class Story:
    """An event to be written by somebody who has time for it."""

    pod: Json
    type: str
    reason: str
    message: str
    field_path: str


class ImageSource(Protocol):
    async def present(self, container: Json) -> Image | None:
        """The image of a container, if nothing need be done to have it."""

    async def prepare(self, reference: str, annotations: Mapping[str, str], progress: Progress) -> Image:
        """The image, once it is there; or ImageFailed."""


@dataclass(frozen=True, slots=True)
class Node:
    """What all supervisors of a node share."""

    name: str
    address: str
    client: Client
    runtime: Runtime
    images: ImageSource
    clock: Clock
    places: Places
    network: Network
    tell: Callable[[Story], None]
    allocatable: Mapping[str, str]
    access: ApiAccess | None = None  # what programs in pods are given to reach the API

    def around(self, pod: Json, pod_ip: str) -> Surroundings:
        services: dict[str, str] = {}
        if pod["spec"].get("enableServiceLinks", True):
            services |= self.network.links(namespace_of(pod))
        if self.access is not None:
            services |= self.access.variables()
        token = self.access.token if self.access else ""
        return Surroundings(self.name, self.address, pod_ip, self.allocatable, services, token)


class PodSupervisor:
    def __init__(self, pod: Json, node: Node) -> None:
        self.pod = pod
        self._node = node
        self._key = Key(POD, namespace_of(pod), name_of(pod))
        self._record = PodRecord(node.clock.now())
        self._news = anyio.Event()
        self._is_gone = False
        self._starting: dict[str, anyio.CancelScope] = {}
        self._stopping: dict[str, tuple[float, anyio.CancelScope]] = {}
        self._failures: dict[str, int] = {}
        self._are_volumes_stale = False

    def learn(self, pod: Json) -> None:
        """The pod as the API now has it."""
        if revision_of(pod) > revision_of(self.pod):
            before, self.pod = self.pod, pod
            if (labels_of(before), annotations_of(before)) != (labels_of(pod), annotations_of(pod)):
                self.renew_volumes()
            self._news.set()

    def renew_volumes(self) -> None:
        """Something that the pod's files were made from has changed."""
        self._are_volumes_stale = True
        self._news.set()

    def lose(self) -> None:
        """The object is gone: nobody will read a status, and nothing may go on running."""
        self._is_gone = True
        self._news.set()

    def successor(self) -> "PodSupervisor":
        """Another one for the same pod, which begins with what is on disk."""
        heir = PodSupervisor(self.pod, self._node)
        heir._is_gone = self._is_gone
        return heir

    async def run(self) -> None:
        if self._phase not in OVER or is_terminating(self.pod):
            self._record = await self._adopt()
            await self._supervise()
        await self._clear()
        while not self._is_gone and not is_terminating(self.pod):
            await self._look(None)
        await self._leave()

    @property
    def _phase(self) -> str:
        phase: str = (self.pod.get("status") or {}).get("phase", "Pending")
        return phase

    async def _adopt(self) -> PodRecord:
        """What is on disk of this pod: nothing for a new one, its attempts after a restart of the agent."""
        status: Json = self.pod.get("status") or {}
        accepted = moment_of(status["startTime"]) if status.get("startTime") else self._node.clock.now()
        record = PodRecord(accepted, pod_ip=self._address(), host_ip=self._node.address)
        for run in await self._node.runtime.runs(uid_of(self.pod)):
            container = record.of(run.attempt.container)
            told = replace(run, exit=self._with_last_words(run.attempt, run.exit)) if run.exit else run
            record = record.having(run.attempt.container, replace(container, runs=(*container.runs, told)))
        return record

    def _address(self) -> str:
        host = self._node.address if self.pod["spec"].get("hostNetwork") else ""
        return self._node.network.seat(self.pod, host=host)

    async def _supervise(self) -> None:
        """Until nothing of the pod runs and nothing will."""
        async with anyio.create_task_group() as tasks:
            for name in self._record.running():
                self._watch(tasks, name)
            while True:
                over = self._decide().is_over and not self._starting
                reported = await self._report()
                if over and reported:
                    break
                decision = self._decide()  # while that was written, what had to be done may have been
                self._act(tasks, decision)
                if self._are_volumes_stale:
                    await self._refresh()
                await self._look(decision.wake_at if reported else self._node.clock.now() + RETRY)
            tasks.cancel_scope.cancel()

    def _decide(self) -> Decision:
        now = self._node.clock.now()
        if not self._is_gone:
            return decide(self.pod, self._record, now)
        # Its object is gone: whoever wants a pod of this name again is waiting for us.
        marks = {"deletionTimestamp": stamp(now), "deletionGracePeriodSeconds": 0}
        return decide({**self.pod, "metadata": {**self.pod["metadata"], **marks}}, self._record, now)

    def _act(self, tasks: TaskGroup, decision: Decision) -> None:
        if decision.stop or decision.is_over:
            for scope in self._starting.values():
                scope.cancel()
        for name in decision.stop:
            grace, scope = self._stopping.get(name, (float("inf"), anyio.CancelScope()))
            if decision.grace < grace:
                scope.cancel()
                self._stopping[name] = decision.grace, anyio.CancelScope()
                tasks.start_soon(self._stop, name, *self._stopping[name])
        for start in decision.start:
            if start.container not in self._starting:
                self._starting[start.container] = anyio.CancelScope()
                tasks.start_soon(self._start, tasks, start, self._starting[start.container])

    async def _look(self, wake_at: datetime | None) -> None:
        """Waits until something has happened or it is time."""
        timeout = None if wake_at is None else max(0.0, (wake_at - self._node.clock.now()).total_seconds())
        with anyio.move_on_after(timeout):
            await self._news.wait()
        self._news = anyio.Event()

    # -- starting

    async def _start(self, tasks: TaskGroup, start: Start, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                image = await self._pull(start)
                if image is not None:
                    launch = await self._prepare(start, image)
                    # A cancellation in between would leave a container running of which nobody knows yet.
                    with anyio.CancelScope(shield=True):
                        await self._launch(tasks, launch)
            except Unprepared as why:
                self._put_off(start.container, why)
            except (OSError, Unavailable, ValueError) as problem:
                # A full disk, a vanished volume, no process left to fork, a value of which nothing can be made.
                self._put_off(start.container, Unprepared(str(problem), reason="CreateContainerError"))
        del self._starting[start.container]
        self._news.set()

    async def _pull(self, start: Start) -> Image | None:
        container = self._spec(start.container)
        reference = container["image"]
        if (image := await self._node.images.present(container)) is not None:
            text = f'Container image "{reference}" already present on machine'
            self._tell("Normal", "Pulled", text, start.container)
            self._note(start.container, delay=Delay(), image_id=image.id)
            return image
        self._tell("Normal", "Pulling", f'Pulling image "{reference}"', start.container)

        remarks: list[str] = []

        async def progress(line: str) -> None:
            remarks[:] = [line]
            self._note(start.container, delay=Delay("ContainerCreating", line))

        try:
            image = await self._node.images.prepare(reference, annotations_of(self.pod), progress)
        except ImageFailed as failure:
            await self._pull_failed(start.container, reference, str(failure))
            return None
        self._failures.pop(start.container, None)
        pulled = ": ".join([f'Successfully pulled image "{reference}"', *remarks])
        self._tell("Normal", "Pulled", pulled, start.container)
        self._note(start.container, delay=Delay(), image_id=image.id or reference)
        return image

    async def _pull_failed(self, name: str, reference: str, why: str) -> None:
        """As kubelets show it: first the error, then that it will be tried again."""
        self._tell("Warning", "Failed", f'Failed to pull image "{reference}": {why}', name)
        self._tell("Warning", "Failed", "Error: ErrImagePull", name)
        until = self._node.clock.now() + self._growing(name, FIRST_PULL_RETRY, SLOWEST_PULL_RETRY)
        self._note(name, delay=Delay("ErrImagePull", why, until))
        await self._report()
        self._tell("Normal", "BackOff", f'Back-off pulling image "{reference}"', name)
        self._tell("Warning", "Failed", "Error: ImagePullBackOff", name)
        message = f'Back-off pulling image "{reference}": ErrImagePull: {why}'
        self._note(name, delay=Delay("ImagePullBackOff", message, until))

    def _put_off(self, name: str, why: Unprepared) -> None:
        until = self._node.clock.now() + self._growing(name, RETRY, SLOWEST_RETRY)
        if why.reason == "FailedMount":
            self._tell("Warning", "FailedMount", str(why))
            self._note(name, delay=Delay("", "", until))
        else:
            self._tell("Warning", "Failed", f"Error: {why}", name)
            self._note(name, delay=Delay(why.reason, str(why), until))

    def _growing(self, name: str, first: timedelta, most: timedelta) -> timedelta:
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        return min(first * (1 << min(failures, 16)), most)

    async def _prepare(self, start: Start, image: Image) -> Launch:
        node, pod, container = self._node, self.pod, self._spec(start.container)
        sources = await gather(node.client, pod)
        around = node.around(pod, self._record.pod_ip)
        values = variables(pod, container, sources, around)
        volumes = prepare_volumes(pod, sources, around, node.places)
        mounts = mounts_of(container, volumes, values, read_only_volumes(pod))
        attempt = Attempt(uid_of(pod), start.container, start.number)
        message = prepare_message_file(node.places.message(attempt))
        mounts += (*await self._access_mounts(mounts), Mount(message, message_path(container)))
        names = node.network.names(namespace_of(pod)) if await node.runtime.shortcomings() else {}
        launch = launch_of(
            pod,
            container,
            start.number,
            image=image,
            variables=values,
            mounts=mounts,
            places=node.places,
            addresses={name: addresses[0] for name, addresses in names.items()},
        )
        own = "" if pod["spec"].get("hostNetwork") else self._record.pod_ip
        return replace(
            launch,
            names=node.network.folder(pod),
            address=own,
            aliases=node.network.aliases(pod) if own else (),
        )

    async def _access_mounts(self, others: Sequence[Mount]) -> list[Mount]:
        node, pod = self._node, self.pod
        if node.access is None or any(mount.target == API_FOLDER for mount in others):
            return []
        if not await wants_access(node.client, pod):
            return []
        folder = node.places.volumes(uid_of(pod)) / ".api"
        files = [File(name, text.encode(), 0o644) for name, text in node.access.files(pod).items()]
        project(folder, files, fs_group(pod))
        return [Mount(folder, API_FOLDER, read_only=True)]

    async def _refresh(self) -> None:
        """Brings files that were made from objects up to date, also below containers that run."""
        self._are_volumes_stale = False
        if not self._record.running():
            return  # they are made anew before a container is started
        try:
            sources = await gather(self._node.client, self.pod)
            around = self._node.around(self.pod, self._record.pod_ip)
            refresh_volumes(self.pod, sources, around, self._node.places)
        except (OSError, Unavailable) as problem:
            logger.warning("the volumes of %s were not brought up to date: %s", self._key, problem)

    async def _launch(self, tasks: TaskGroup, launch: Launch) -> None:
        name = launch.attempt.container
        self._node.network.settle()
        if warning := await self._node.runtime.shortcomings():
            self._tell("Warning", "NotIsolated", warning, name)
        if warning := self._node.runtime.unenforced(launch.limits):
            self._tell("Warning", "LimitNotEnforced", warning, name)
        remember(self.pod, self._node.places)
        began = await self._node.runtime.start(launch)
        self._failures.pop(name, None)
        runs = (*self._record.of(name).runs, Run(launch.attempt, began, engine=self._node.runtime.engine))
        spec = self._spec(name)
        self._note(
            name, runs=runs, delay=Delay(), has_started=starts_at_once(spec), is_well=is_well_at_once(spec)
        )
        self._tell("Normal", "Created", f"Created container: {name}", name)
        self._tell("Normal", "Started", f"Started container {name}", name)
        self._watch(tasks, name)

    # -- running

    def _watch(self, tasks: TaskGroup, name: str) -> None:
        latest = self._record.of(name).latest
        if latest is not None:
            tasks.start_soon(self._attend, latest)

    async def _attend(self, run: Run) -> None:
        """Everything that is done about a container while it runs, and what is noted of its end."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(
                self._caretaker(run.attempt).run, self._record.of(run.attempt.container).has_started
            )
            ended = await self._wait(run.attempt)
            tasks.cancel_scope.cancel()
        ended = self._with_last_words(run.attempt, ended)
        name = run.attempt.container
        *earlier, _ = self._record.of(name).runs
        self._note(name, runs=(*earlier, replace(run, exit=ended)))
        if ended.reason == "StartError":
            self._tell("Warning", "Failed", f"Error: {ended.message}", name)
        if back_off(self._record.of(name).runs) and self._decide().wake_at:
            text = f"Back-off restarting failed container {name} in pod {title_of(self.pod)}"
            self._tell("Warning", "BackOff", text, name)

    def _with_last_words(self, attempt: Attempt, ended: Exit) -> Exit:
        log = self._node.places.log(self.pod, attempt.container, attempt.number)
        return with_last_words(ended, self._spec(attempt.container), self._node.places.message(attempt), log)

    # -- ending

    async def _wait(self, attempt: Attempt) -> Exit:
        while True:
            try:
                return await self._node.runtime.wait(attempt)
            except (
                OSError
            ) as problem:  # a full disk, too many open files: what happened is still there to be read
                logger.warning("the end of %s cannot be read, trying again: %s", attempt, problem)
                await anyio.sleep(RETRY.total_seconds())

    async def _stop(self, name: str, grace: float, scope: anyio.CancelScope) -> None:
        latest = self._record.of(name).latest
        if latest is None:
            return
        self._tell("Normal", "Killing", f"Stopping container {name}", name)
        with scope:
            began = self._node.clock.now()
            await self._caretaker(latest.attempt).say_goodbye(grace)
            spent = (self._node.clock.now() - began).total_seconds()
            await self._node.runtime.stop(latest.attempt, max(grace - spent, min(grace, LAST_GRACE)))

    def _caretaker(self, attempt: Attempt) -> Caretaker:
        name = attempt.container
        patient = Patient(self._node.runtime, attempt, self._spec(name), self._record.pod_ip)
        grace = self.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE)
        return Caretaker(
            patient, grace, note=partial(self._note, name), tell=partial(self._tell, container=name)
        )

    async def _clear(self) -> None:
        """Takes away everything but the logs: what the pod was is in its status now."""
        await self._node.runtime.forget(uid_of(self.pod))
        self._node.network.unseat(self.pod)
        release_volumes(uid_of(self.pod), self._node.places)

    async def _leave(self) -> None:
        while not self._is_gone:
            try:
                await self._node.client.delete(self._key, uid=uid_of(self.pod), grace=0)
            except (NotFound, Conflict):
                return
            except Unavailable:
                await anyio.sleep(RETRY.total_seconds())
            else:
                return

    # -- reporting

    async def _report(self) -> bool:
        """Writes the status if it changed; False if that must be tried again."""
        while not self._is_gone:
            old: Json = self.pod.get("status") or {}
            status = pod_status(self.pod, self._record, self._node.clock.now())
            if all(old.get(name) == value for name, value in status.items()):
                return True
            try:
                wanted = {**self.pod, "status": {**old, **status}}
                self.learn(await self._node.client.replace(POD, wanted, subresource="status"))
            except Conflict:
                await self._read_again()
            except NotFound:
                self._is_gone = True
            except Unavailable as problem:
                logger.warning("status of %s was not written, trying again: %s", self._key, problem)
                return False
            else:
                return True
        return True

    async def _read_again(self) -> None:
        try:
            found = await self._node.client.get(self._key)
        except NotFound:
            self._is_gone = True
            return
        if uid_of(found) != uid_of(self.pod):
            self._is_gone = True
        else:
            self.pod = found

    def _note(self, name: str, **changes: object) -> None:
        self._record = self._record.having(name, replace(self._record.of(name), **changes))  # type: ignore[arg-type]
        self._news.set()

    def _tell(self, kind: str, reason: str, message: str, container: str = "") -> None:
        section = "initContainers" if container in init_names(self.pod) else "containers"
        path = f"spec.{section}{{{container}}}" if container else ""
        self._node.tell(Story(self.pod, kind, reason, message, path))

    def _spec(self, name: str) -> Json:
        spec = self.pod["spec"]
        found: Json = next(
            one for one in [*(spec.get("initContainers") or []), *spec["containers"]] if one["name"] == name
        )
        return found
