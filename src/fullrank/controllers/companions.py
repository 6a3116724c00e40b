"""What a job has beside pods and services: files for its launcher, an account and what it may do, an autoscaler."""

from collections.abc import Iterable, Mapping

from fullrank.api.meta import Json, controller_of, labels_of, name_of, owner_reference, uid_of
from fullrank.api.scheme import Kind
from fullrank.client.cache import Cache
from fullrank.client.port import Client, Key
from fullrank.controllers.news import News
from fullrank.dialects.contract import JobKind
from fullrank.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound
from fullrank.frameworks.contract import Companion
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

    def of(self, job_kind: JobKind, uid: str) -> list[Json]:
        """Those that a job has."""
        kinds = (kind for kind in job_kind.framework.companion_kinds if kind in self._caches)
        return [one for kind in kinds for one in self._caches[kind].owned_by(uid)]

    async def keep(self, scene: Scene, job: Json, news: News, *, idle: bool) -> None:
        """Makes what is missing, mends what differs (not of an `idle` job), removes what is not wanted any more."""
        kinds = [kind for kind in scene.job_kind.framework.companion_kinds if kind in self._caches]
        if not kinds:
            return
        running = {member for member, seat in scene.seats.items() if seat.active}
        wanted = companions_for(scene.gang, running, owner_reference(job))
        names = set[tuple[Kind, str]]()
        for companion, whole in (one for one in wanted if one[0].kind in kinds):
            names.add((companion.kind, companion.name))
            if not idle:
                await self._keep_one(companion, whole, job, news)
        for kind in kinds:
            for found in self._caches[kind].owned_by(uid_of(job)):
                if (kind, name_of(found)) not in names:
                    await self._remove(kind, found)

    async def _keep_one(self, companion: Companion, wanted: Json, job: Json, news: News) -> None:
        try:
            await self._ensure(companion, wanted, job, news)
        except (NotFound, Invalid, Forbidden) as error:
            if not companion.optional:
                raise
            news.tell(job, "Warning", f"Failed{companion.kind.kind}", str(error))

    async def _ensure(self, companion: Companion, wanted: Json, job: Json, news: News) -> None:
        kind = companion.kind
        known = self._caches[kind].get(Key.of(kind, wanted))
        if known is not None and not says_otherwise(known, _respecting(companion, known, wanted)):
            return
        found = await self._made_or_found(kind, wanted)
        wanted = _respecting(companion, found, wanted)
        if not says_otherwise(found, wanted):
            return
        if (controller_of(found) or {}).get("uid") != uid_of(job):
            word, what = job["kind"], f'Resource "{name_of(found)}" of {job["kind"]}Kind "{kind.kind}"'
            text = f"{what} already exists and is not managed by {word}"
            news.tell(job, "Warning", "ErrResourceExists", text)
            raise AlreadyExists(text)
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


def _respecting(companion: Companion, found: Json, wanted: Json) -> Json:
    """What we want of it, but for what others may have changed in it."""
    if not companion.own:
        return wanted
    theirs = {name: found["spec"][name] for name in companion.own if name in found["spec"]}
    ours = {name: value for name, value in wanted["spec"].items() if name not in companion.own}
    return wanted | {"spec": ours | theirs}


def _mended(found: Json, wanted: Json) -> Json:
    """The object with what we say in it; what others added to its metadata stays."""
    labels = {**labels_of(found), **labels_of(wanted)}
    metadata = found["metadata"] | ({"labels": labels} if labels else {})
    return found | wanted | {"metadata": metadata}
