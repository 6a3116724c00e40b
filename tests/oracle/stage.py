"""Both operators on one cluster, each with a namespace of its own, and the same cases played to both."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass

import anyio

from fullrank.api.meta import Json, is_terminating, name_of
from fullrank.api.scheme import CONFIG_MAP, EVENT, POD, SERVICE, SERVICE_ACCOUNT, Kind
from fullrank.client.cache import Cache
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection
from fullrank.client.port import Client, Key
from fullrank.controllers.companions import companion_kinds
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import NotFound
from tests.oracle.cases import Case, Deed, Delete, Edit, End, Evict, Restart, Scale, Unseen, Wait
from tests.oracle.compare import Difference, differences, view
from tests.oracle.expected import unexpected

THEIRS, OURS = "theirs", "ours"
KINDS = {one.kind.kind: one.kind for one in JOB_KINDS if one.kind.group == "kubeflow.org"}
COMPANIONS = companion_kinds(one for one in JOB_KINDS if one.kind.kind in KINDS)
PLAIN = {kind.kind: kind for kind in (POD, SERVICE, CONFIG_MAP, SERVICE_ACCOUNT)}
QUIET, PATIENCE = (
    1.0,
    12.0,
)  # seconds without news that count as the end of a step, and those to wait for agreement
A_SECOND = 1.1  # pods tell in whole seconds when they ended
AT_ONCE = 8
MOST_EVENTS = 25  # of one job that v1 keeps


class Side:
    """One namespace, and everything in it as it is at the moment."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        kinds = (*KINDS.values(), POD, SERVICE, *COMPANIONS, EVENT)
        self.caches = {kind: Cache(client, kind, namespace) for kind in kinds}
        self.changed: dict[str, float] = {}
        for cache in self.caches.values():
            cache.listen(self._note)

    def _note(self, old: Json | None, new: Json | None) -> None:
        one = new or old or {}
        owners = one["metadata"].get("ownerReferences") or [one.get("involvedObject") or {}]
        for name in (name_of(one), *(owner.get("name", "") for owner in owners)):
            self.changed[name] = anyio.current_time()

    def view(self, kind: Kind, name: str) -> Json:
        job = self.caches[kind].get(Key(kind, self.namespace, name))
        return view(job, self._owned(kind, name), self._events(kind, name), self.namespace)

    def _owned(self, kind: Kind, name: str) -> Iterator[Json]:
        for place in (POD, SERVICE, *COMPANIONS):
            for one in self.caches[place].all():
                owners = one["metadata"].get("ownerReferences") or ()
                if any((owner["kind"], owner["name"]) == (kind.kind, name) for owner in owners):
                    yield one

    def _events(self, kind: Kind, name: str) -> Iterator[Json]:
        for one in self.caches[EVENT].all():
            about = one["involvedObject"]
            if (about["kind"], about["name"]) == (kind.kind, name):
                yield one

    def told(self, kind: Kind, name: str) -> int:
        return sum(one.get("count") or 1 for one in self._events(kind, name))

    def pods(self, job: str) -> list[str]:
        mine = (one for one in self.caches[POD].all() if name_of(one).startswith(f"{job}-"))
        return [name_of(one) for one in mine if _is_running(one)]

    async def do(self, kind: Kind, job: str, deed: Deed) -> None:
        name = f"{job}-{deed.pod}" if isinstance(deed, Restart | Evict) else ""
        match deed:
            case End(code, pods):
                await self._end(self.pods(job) if pods == ("*",) else [f"{job}-{one}" for one in pods], code)
            case Restart(times, _):
                await self._annotate(name, {"pretend/restarts": str(times)})
            case Evict():
                end = {"status": {"phase": "Failed", "reason": "Evicted", "containerStatuses": None}}
                await self.client.patch(Key(POD, self.namespace, name), end, subresource="status")
            case Edit(patch):
                await self.client.patch(Key(kind, self.namespace, job), patch)
            case Scale(replicas):
                key = Key(kind, self.namespace, job)
                await self.client.patch(key, {"spec": {"replicas": replicas}}, subresource="scale")
            case Delete(word, rest):
                await self.client.delete(Key(PLAIN[word], self.namespace, f"{job}-{rest}"))
            case Wait(seconds):
                await anyio.sleep(seconds)
            case Unseen(deeds):
                await self._end_one_by_one(job, deeds)

    async def _end(self, pods: Iterable[str], code: int) -> None:
        for pod in pods:
            await self._annotate(pod, {"pretend/exit-code": str(code)})

    async def _end_one_by_one(self, job: str, deeds: Iterable[End]) -> None:
        for each in deeds:
            pods = [f"{job}-{one}" for one in each.pods]
            await self._end(pods, each.code)
            for pod in pods:
                await self._ended(pod)
            await anyio.sleep(A_SECOND)

    async def _annotate(self, pod: str, notes: Json) -> None:
        """Tells a pod what to do once it runs: the one before it may still be going."""
        key = Key(POD, self.namespace, pod)
        with anyio.move_on_after(PATIENCE):
            while not _is_running(self.caches[POD].get(key)):  # noqa: ASYNC110
                await anyio.sleep(0.05)
        try:
            await self.client.patch(key, {"metadata": {"annotations": notes}})
        except NotFound:
            return  # cleaned up already

    async def _ended(self, pod: str) -> None:
        with anyio.move_on_after(PATIENCE):
            while _is_running(self.caches[POD].get(Key(POD, self.namespace, pod))):  # noqa: ASYNC110
                await anyio.sleep(0.05)

    async def settled(self, job: str) -> None:
        """Until nothing happens any more; some jobs of v1 never come to rest."""
        with anyio.move_on_after(PATIENCE):
            while (left := self.changed.get(job, 0.0) + QUIET - anyio.current_time()) > 0:  # noqa: ASYNC110
                await anyio.sleep(left)

    async def remove(self, kind: Kind, job: str) -> None:
        try:
            await self.client.delete(Key(kind, self.namespace, job))
        except NotFound:
            return


@dataclass
class Stage:
    theirs: Side
    ours: Side
    operators: tuple[int, ...] = ()  # their processes
    away: int = 0  # how many cases want them to look away now

    async def play(self, title: str, name: str, case: Case) -> list[Difference]:
        """Everything that differed after some step. Events are told late and in part: they count at the end."""
        kind = KINDS[case.manifest["kind"]]
        name = case.manifest["metadata"].get("name") or name
        for side in (self.theirs, self.ours):
            for one in case.beside:
                await side.client.create(PLAIN[one["kind"]], _placed(one, side.namespace, name_of(one)))
            await side.client.create(kind, _placed(case.manifest, side.namespace, name))
        found = []
        steps: Iterable[tuple[str, Deed]] = (("created", Wait(0)), *case.steps.items())
        last = ("created", *case.steps)[-1]
        for step, deed in steps:
            away = self._looking_away() if isinstance(deed, Unseen) else nullcontext()
            with away:
                await self._done(kind, name, deed)
            found += await self._compared(title, kind, name, step, events=step == last)
        for side in (self.theirs, self.ours):
            await side.remove(kind, name)  # some would go on for ever
        return found

    async def _done(self, kind: Kind, name: str, deed: Deed) -> None:
        async with anyio.create_task_group() as tasks:
            for side in (self.theirs, self.ours):
                tasks.start_soon(side.do, kind, name, deed)

    @contextmanager
    def _looking_away(self) -> Iterator[None]:
        """Neither operator does anything as long as any case needs that."""
        self._signal(signal.SIGSTOP)
        self.away += 1
        try:
            yield
        finally:
            self.away -= 1
            if not self.away:
                self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for pid in self.operators:
            os.kill(pid, number)

    async def _compared(
        self, title: str, kind: Kind, name: str, step: str, *, events: bool
    ) -> list[Difference]:
        """The differences that stay: what one does a little later than the other is none."""
        deadline = anyio.current_time() + PATIENCE
        for side in (self.theirs, self.ours):
            side.changed[name] = anyio.current_time()
        while True:
            for side in (self.theirs, self.ours):
                await side.settled(name)
            found = [
                Difference(title, kind.kind, step, *one, crowded=self.theirs.told(kind, name) >= MOST_EVENTS)
                for one in differences(self.theirs.view(kind, name), self.ours.view(kind, name))
                if events or not one[0].startswith("events.")
            ]
            if not unexpected(found) or anyio.current_time() > deadline:
                return found
            await anyio.sleep(0.5)

    async def play_all(
        self,
        cases: Iterable[tuple[str, Case]],
        tell: Callable[[str, list[Difference]], None] = lambda *_: None,
    ) -> list[Difference]:
        """Those last, and together, during which no operator looks: the others would wait for them."""
        limiter, found = anyio.CapacityLimiter(AT_ONCE), list[Difference]()

        async def one(index: int, title: str, case: Case) -> None:
            async with limiter:
                mine = await self.play(title, f"case-{index}", case)
                tell(title, mine)
                found.extend(mine)

        numbered = [(index, *pair) for index, pair in enumerate(cases)]
        for unseen in (False, True):
            async with anyio.create_task_group() as tasks:
                for each in numbered:
                    if any(isinstance(deed, Unseen) for deed in each[2].steps.values()) == unseen:
                        tasks.start_soon(one, *each)
        return sorted(found, key=lambda each: (each.case, each.step, each.path))


def _is_running(pod: Json | None) -> bool:
    return pod is not None and not is_terminating(pod) and pod["status"].get("phase") == "Running"


def _placed(obj: Json, namespace: str, name: str) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "name": name, "namespace": namespace}}


@asynccontextmanager
async def stage(connection: Connection, operators: tuple[int, ...] = ()) -> AsyncIterator[Stage]:
    """Both namespaces, watched; the operators are somebody else's to start."""
    async with HttpClient(connection) as client, anyio.create_task_group() as tasks:
        found = Stage(Side(client, THEIRS), Side(client, OURS), operators)
        for side in (found.theirs, found.ours):
            for cache in side.caches.values():
                tasks.start_soon(cache.run)
            for cache in side.caches.values():
                await cache.synced()
        yield found
        tasks.cancel_scope.cancel()
