"""Watching jobs to their end: what their members write, merged, and what keeps them waiting meanwhile."""

from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from fullrank.api.meta import Json, controller_of, name_of, namespace_of, uid_of
from fullrank.api.scheme import EVENT, POD
from fullrank.cli.jobs import OVER, STOPPED, member_of, state_of
from fullrank.client.cache import Cache
from fullrank.client.http import HttpClient, path_of
from fullrank.client.port import Key
from fullrank.errors import BadRequest, NotFound

LAST_WORDS = 5.0  # seconds that members of a finished job have to end

Say = Callable[[str, str], None]  # who, what


class Follower:
    """One job. `line` is called for every line a member writes, `news` for everything worth knowing in between."""

    def __init__(self, client: HttpClient, key: Key, job: Json, *, line: Say, news: Say) -> None:
        self._client = client
        self._key = key
        self._uid = uid_of(job)
        self._line = line
        self._news = news
        self._jobs = Cache(client, key.kind, key.namespace)
        self._pods = Cache(client, POD, key.namespace)
        self._events = Cache(client, EVENT, key.namespace)
        self._heard: set[tuple[str, str, int]] = set()
        self._said: dict[str, str] = {}
        self._ended = anyio.Event()
        self._all_over = anyio.Event()
        self._state = ""
        self.ends_when_suspended = False  # once somebody has asked the job to stop

    async def run(self) -> None:
        """Returns when the job has ended, or is gone, and everything its members wrote has been told."""
        async with anyio.create_task_group() as watching:
            async with anyio.create_task_group() as tails:
                self._jobs.listen(self._job_changed)
                self._pods.listen(lambda _old, new: self._pod_changed(new, tails))
                self._events.listen(lambda _old, new: self._event_seen(new))
                for cache in (self._jobs, self._pods, self._events):
                    watching.start_soon(cache.run)
                await self._jobs.synced()
                if self._jobs.get(self._key) is None:
                    self._ended.set()
                    self._all_over.set()
                await self._ended.wait()
                tails.cancel_scope.deadline = anyio.current_time() + LAST_WORDS
                await self._all_over.wait()
            watching.cancel_scope.cancel()

    def pods(self) -> list[Json]:
        return [pod for pod in self._pods.all() if self._is_mine(pod)]

    def job(self) -> Json | None:
        return self._jobs.get(self._key)

    def _is_mine(self, pod: Json) -> bool:
        return (controller_of(pod) or {}).get("uid") == self._uid

    def _job_changed(self, old: Json | None, new: Json | None) -> None:
        if new is None or uid_of(new) != self._uid:
            if old is not None and uid_of(old) == self._uid:
                self._ended.set()
                self._all_over.set()
            return
        state = state_of(new)
        if state and state != self._state:
            self._state = state
            self._news("", state)
        if state in OVER or (state in STOPPED and self.ends_when_suspended):
            self._ended.set()
            self._look_for_the_end()

    def _look_for_the_end(self) -> None:
        phases = {(pod.get("status") or {}).get("phase") for pod in self.pods()}
        if self._ended.is_set() and phases <= {*OVER}:
            self._all_over.set()

    def _pod_changed(self, pod: Json | None, tails: TaskGroup) -> None:
        self._look_for_the_end()
        if pod is None or not self._is_mine(pod):
            return
        status: Json = pod.get("status") or {}
        for one in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
            state: Json = one.get("state") or {}
            waiting: Json = state.get("waiting") or {}
            if message := waiting.get("message"):
                self._tell_once(f"{uid_of(pod)}/{one['name']}", self._member(pod), message)
        for one in status.get("containerStatuses") or ():
            run = (uid_of(pod), one["name"], one.get("restartCount", 0))
            if run not in self._heard and not (one.get("state") or {}).get("waiting"):
                self._heard.add(run)
                tails.start_soon(self._tail, pod, one["name"])

    def _tell_once(self, about: str, who: str, what: str) -> None:
        if self._said.get(about) != what:
            self._said[about] = what
            self._news(who, what)

    def _event_seen(self, event: Json | None) -> None:
        about: Json = (event or {}).get("involvedObject") or {}
        told_already = event is not None and event.get("reason") == "Unschedulable"  # by the scheduler itself
        if event and event.get("type") == "Warning" and about.get("uid") == self._uid and not told_already:
            self._tell_once(f"event {name_of(event)}", "", str(event.get("message", "")))

    def _member(self, pod: Json) -> str:
        return member_of(self._key.name, name_of(pod))

    async def _tail(self, pod: Json, container: str) -> None:
        path = path_of(POD, namespace_of(pod), name_of(pod), "log")
        try:
            async with self._client.stream(path, {"container": container, "follow": "true"}) as lines:
                async for line in lines:
                    self._line(self._member(pod), line.decode(errors="replace").rstrip("\n"))
        except (NotFound, BadRequest):
            return  # the pod went, or its container never wrote
