"""The controller of web programs: TensorBoards and notebooks, in either home."""

import logging
from base64 import b64decode
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

import anyio

from fullrank.api.annotations import APP
from fullrank.api.apps import PORT_NAME, TOKEN_KEY
from fullrank.api.meta import Json, controller_of, is_terminating, labels_of, name_of, namespace_of, uid_of
from fullrank.api.scheme import DEPLOYMENT, POD, SECRET, SERVICE, Kind
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controllers.news import News
from fullrank.controllers.ports import PortBook
from fullrank.controllers.workqueue import WorkQueue
from fullrank.dialects.apps import AppKind
from fullrank.errors import AlreadyExists, Conflict, FullrankError, NotFound
from fullrank.planning.apps import (
    Action,
    AppPlan,
    Create,
    Delete,
    Replace,
    Sight,
    Use,
    decide,
    secret_of,
    to_be_asked,
)
from fullrank.planning.troubles import troubles

log = logging.getLogger(__name__)

WORKERS = 4
Ask: TypeAlias = Callable[[str, str], Awaitable[Use | None]]  # by address and token
Place: TypeAlias = tuple[str, str]  # a namespace, and what everything of one program is called in it


class AppController:
    """Without `ports` programs run in Deployments, as on a cluster; else each in a pod of its own on this machine.

    Where images are not pulled (`pulls`), the built-in catalogue stands for them.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        kinds: Iterable[AppKind],
        *,
        new_token: Callable[[], str],
        ask: Ask,
        ports: PortBook | None = None,
        pulls: bool = True,
        namespace: str = "",
    ) -> None:
        self._client = client
        self._clock = clock
        self._new_token = new_token
        self._ask = ask
        self._ports = ports
        self._pulls = pulls
        self._kinds = {one.kind: one for one in kinds}
        self._apps = {kind: Cache(client, kind, namespace) for kind in self._kinds}
        children = (POD, SERVICE) if ports else (POD, SERVICE, DEPLOYMENT)
        self._children = {kind: Cache(client, kind, namespace, labels=APP) for kind in children}
        self._owners: dict[Place, Key] = {}
        self._pods: defaultdict[Place, dict[str, Json]] = defaultdict(dict)
        self._queue: WorkQueue[Key] = WorkQueue()
        self._news = News(client, clock, self._kinds.values())
        for kind, cache in self._apps.items():
            cache.listen(self._listener(self._kinds[kind]))
        self._children[POD].listen(self._pod_changed)
        self._children[POD].listen(self._tell_of_trouble)
        for cache in self._children.values():
            cache.listen(self._child_changed)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            caches = (*self._apps.values(), *self._children.values())
            for cache in caches:
                tasks.start_soon(cache.run)
            for cache in caches:
                await cache.synced()
            self._remember_ports()
            tasks.start_soon(self._news.run)
            await self._queue.run(self.reconcile, workers=WORKERS)

    def _listener(self, kind: AppKind) -> Callable[[Json | None, Json | None], None]:
        def changed(old: Json | None, new: Json | None) -> None:
            if one := new or old:
                place, key = (namespace_of(one), kind.service(one)), Key.of(kind.kind, one)
                self._owners[place] = key
                if new is None:
                    del self._owners[place]
                    if self._ports:
                        self._ports.release(uid_of(one))
                self._queue.add(key)

        return changed

    def _child_changed(self, old: Json | None, new: Json | None) -> None:
        for one in (old, new):
            if one and (key := self._owners.get(_place(one))):
                self._queue.add(key)

    def _pod_changed(self, old: Json | None, new: Json | None) -> None:
        """On a cluster a program's pods are owned by what its Deployment made: their label says whose they are."""
        if old and (known := self._pods.get(_place(old))) is not None:
            known.pop(name_of(old), None)
            if not known:
                del self._pods[_place(old)]
        if new:
            self._pods[_place(new)][name_of(new)] = new

    def _tell_of_trouble(self, old: Json | None, new: Json | None) -> None:
        """What goes wrong in a pod, in an event on its program's object, when it shows for the first time."""
        if old is None or new is None or not (key := self._owners.get(_place(new))):
            return
        known = troubles(old)
        for reason, message in troubles(new):
            app = self._apps[key.kind].get(key)
            if app is not None and (reason, message) not in known:
                self._news.tell(app, "Warning", reason, message)

    def _remember_ports(self) -> None:
        for pod in self._children[POD].all() if self._ports else ():
            if self._ports and (owner := controller_of(pod)):
                self._ports.note(owner["uid"], _port(pod))

    # -- look ------------------------------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> timedelta | None:
        obj = self._apps[key.kind].get(key)
        if obj is None or is_terminating(obj):
            return None
        sight = self._see(self._kinds[key.kind], obj)
        if self._ports and not sight.pods and not sight.kind.is_stopped(obj):
            sight = replace(sight, port=self._ports.lend(uid_of(obj), sight.kind.port))
        if pod := to_be_asked(sight):
            sight = replace(sight, use=await self._asked(sight, pod), now=self._clock.now())
        return await self._carry_out(sight, key, decide(sight))

    def _see(self, kind: AppKind, obj: Json) -> Sight:
        deploys, uid = self._ports is None, uid_of(obj)
        pods = self._pods.get((namespace_of(obj), kind.service(obj)), {}).values()
        return Sight(
            kind,
            obj,
            self._clock.now(),
            pods=tuple(pod for pod in pods if deploys or (controller_of(pod) or {}).get("uid") == uid),
            service=next(iter(self._children[SERVICE].owned_by(uid)), None),
            pulls=self._pulls,
            deploys=deploys,
            deployment=next(iter(self._children[DEPLOYMENT].owned_by(uid)), None) if deploys else None,
        )

    async def _asked(self, sight: Sight, pod: Json) -> Use | None:
        try:
            secret = await self._client.get(Key(SECRET, namespace_of(pod), sight.name))
        except NotFound:
            return None
        address: str = (pod.get("status") or {}).get("podIP") or ""
        host = f"[{address}]" if ":" in address else address
        token = b64decode((secret.get("data") or {}).get(TOKEN_KEY) or "").decode(errors="replace")
        return await self._ask(f"http://{host}:{_port(pod)}{sight.kind.url(sight.obj)}", token)

    # -- act -------------------------------------------------------------------------------------------------------

    async def _carry_out(self, sight: Sight, key: Key, plan: AppPlan) -> timedelta | None:
        obj = sight.obj
        if plan.status != sight.before:
            written = obj | {"status": plan.status}
            obj = await self._client.replace(key.kind, written, subresource="status")
            self._apps[key.kind].learn(obj)
            log.info("%s: %s", key, plan.status["phase"])
        for action in plan.actions:
            await self._act(sight, action)
        if plan.switch_off:
            version = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}}
            obj = await self._client.patch(key, sight.kind.switched(on=False) | version)
            self._apps[key.kind].learn(obj)
        for news in plan.announcements:
            self._news.tell(obj, news.type, news.reason, news.message)
        return plan.wake_after

    async def _act(self, sight: Sight, action: Action) -> None:
        match action:
            case Create(kind, obj):
                if kind != SERVICE and sight.kind.app.has_token:
                    await self._create(sight, SECRET, secret_of(sight, self._new_token()))
                self._children[kind].learn(await self._create(sight, kind, obj))
            case Replace(kind, obj):
                self._children[kind].learn(await self._client.replace(kind, obj))
            case Delete(kind, obj):
                with suppress(NotFound, Conflict):  # gone, or another of the same name: not the one we meant
                    await self._client.delete(Key.of(kind, obj), uid=uid_of(obj))

    async def _create(self, sight: Sight, kind: Kind, obj: Json) -> Json:
        try:
            made = await self._client.create(kind, obj)
        except AlreadyExists:
            # Ours, from a pass whose answer we never saw; else of a program of this name that is just going; else
            # somebody else's, and then we wait until it is gone.
            found = await self._client.get(Key.of(kind, obj))
            owner = controller_of(found) or {}
            if owner.get("uid") == uid_of(sight.obj):
                return found
            if owner.get("name") != name_of(sight.obj):
                self._complain(sight, kind, f'{kind.plural} "{name_of(obj)}" already exists')
            raise
        except FullrankError as error:
            self._complain(sight, kind, str(error))
            raise
        if kind not in (SECRET, SERVICE):
            self._news.tell(sight.obj, "Normal", "Created", f"Created {kind.singular}: {name_of(made)}")
        return made

    def _complain(self, sight: Sight, kind: Kind, why: str) -> None:
        self._news.tell(sight.obj, "Warning", f"FailedCreate{kind.kind}", f"Error creating: {why}")


def _port(pod: Json) -> int:
    ports = [port for one in pod["spec"]["containers"] for port in one.get("ports") or ()]
    return next((port["containerPort"] for port in ports if port.get("name") == PORT_NAME), 0)


def _place(child: Json) -> Place:
    return namespace_of(child), labels_of(child).get(APP, "")
