"""What a job has beside pods and services: files for its launcher, an account and what it may do, an autoscaler."""

from collections.abc import Iterable, Mapping

from fullrank.api.meta import Json, controller_of, labels_of, name_of, owner_reference, uid_of
from fullrank.api.scheme import Kind
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key
from fullrank.controllers.news import News
from fullrank.dialects.contract import JobKind
from fullrank.errors import AlreadyExists, Conflict, NotFound
from fullrank.planning.desired import companions_for, says_otherwise
from fullrank.planning.scene import Scene


def companion_kinds(job_kinds: Iterable[JobKind]) -> tuple[Kind, ...]:
    """The kinds of companions that any of these jobs may have, each once."""
    return tuple(dict.fromkeys(kind for one in job_kinds for kind in one.framework.companion_kinds))


class Companions:
    """Keeps them as the framework says, as far as the home serves their kinds."""

    def __init__(self, client: Client, caches: Mapping[Kind, Cache]) -> None:
        self._client = client
        self._caches = caches

    async def keep(self, scene: Scene, job: Json, news: News, *, idle: bool) -> None:
        """Makes what is missing, mends what differs (not of an `idle` job), removes what is not wanted any more."""
        kinds = [kind for kind in scene.job_kind.framework.companion_kinds if kind in self._caches]
        if not kinds:
            return
        running = {member for member, seat in scene.seats.items() if seat.active}
        wanted = companions_for(scene.gang, running, owner_reference(job))
        names = set[tuple[Kind, str]]()
        for kind, one in ((kind, one) for one in wanted for kind in kinds if _is_of(kind, one)):
            names.add((kind, name_of(one)))
            if not idle:
                await self._ensure(kind, one, job, news)
        for kind in kinds:
            for found in self._caches[kind].owned_by(uid_of(job)):
                if (kind, name_of(found)) not in names:
                    await self._remove(kind, found)

    async def _ensure(self, kind: Kind, wanted: Json, job: Json, news: News) -> None:
        known = self._caches[kind].get(Key.of(kind, wanted))
        if known is not None and not says_otherwise(known, wanted):
            return
        found = await self._made_or_found(kind, wanted)
        if not says_otherwise(found, wanted):
            return
        if (controller_of(found) or {}).get("uid") != uid_of(job):
            word, what = job["kind"], f'Resource "{name_of(found)}" of {job["kind"]}Kind "{kind.kind}"'
            text = f"{what} already exists and is not managed by {word}"
            news.tell(job, "Warning", "ErrResourceExists", text)
            raise Conflict(text)
        self._caches[kind].learn(await self._client.replace(kind, _mended(found, wanted)))

    async def _made_or_found(self, kind: Kind, wanted: Json) -> Json:
        key, cache = Key.of(kind, wanted), self._caches[kind]
        if cache.get(key) is not None:
            return await self._client.get(key)
        try:
            found = await self._client.create(kind, wanted)
        except AlreadyExists:
            found = await self._client.get(key)
        cache.learn(found)
        return found

    async def _remove(self, kind: Kind, found: Json) -> None:
        try:
            await self._client.delete(Key.of(kind, found), uid=uid_of(found))
        except (NotFound, Conflict):
            return  # gone, or another of the same name: not the one we meant


def _is_of(kind: Kind, obj: Json) -> bool:
    return (kind.api_version, kind.kind) == (obj["apiVersion"], obj["kind"])


def _mended(found: Json, wanted: Json) -> Json:
    """The object with what we say in it; what others added to its metadata stays."""
    labels = {**labels_of(found), **labels_of(wanted)}
    metadata = found["metadata"] | ({"labels": labels} if labels else {})
    return found | wanted | {"metadata": metadata}
