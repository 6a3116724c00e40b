"""Local copies of what the controllers look at, each kept once however many controllers look."""

from collections.abc import Iterable

import anyio

from fullrank.api.meta import Json, controller_of
from fullrank.api.scheme import NODE, POD, SERVICE, Kind
from fullrank.client.cache import Cache
from fullrank.client.port import Key, Reader
from fullrank.dialects.contract import JobKind

KEPT = ("name", "namespace", "uid", "resourceVersion")  # of the metadata of objects that are no job's


class Lookout:
    """`companion_kinds` are those that the home serves. Without `nodes`, somebody else seats the pods, and of objects
    that belong to no job only their names are kept: a cluster has many."""

    def __init__(
        self,
        client: Reader,
        job_kinds: Iterable[JobKind],
        companion_kinds: Iterable[Kind] = (),
        *,
        namespace: str = "",
        nodes: bool = True,
    ) -> None:
        self.job_kinds = {(one.kind.api_version, one.kind.kind): one for one in job_kinds}
        self.jobs = {one.kind: Cache(client, one.kind, namespace) for one in self.job_kinds.values()}
        trim = _whole if nodes else self._trimmed
        self.pods = Cache(client, POD, namespace, trim=trim)
        self.services = Cache(client, SERVICE, namespace, trim=self._trimmed)
        self.companions = {
            kind: Cache(client, kind, namespace, trim=self._trimmed) for kind in companion_kinds
        }
        self.nodes = Cache(client, NODE)
        self._caches = [*self.jobs.values(), self.pods, self.services, *self.companions.values()]
        self._caches += [self.nodes] if nodes else []

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for cache in self._caches:
                tasks.start_soon(cache.run)

    async def synced(self) -> None:
        for cache in self._caches:
            await cache.synced()

    @property
    def complete(self) -> bool:
        """Whether everything that there is has been seen."""
        return all(cache.complete for cache in self._caches)

    def job_kind(self, owner: Json) -> JobKind | None:
        """The kind of job an owner reference (or an object) is of, if it is one of ours."""
        return self.job_kinds.get((owner["apiVersion"], owner["kind"]))

    def job_key(self, owner: Json | None, namespace: str) -> Key | None:
        job_kind = self.job_kind(owner) if owner else None
        return Key(job_kind.kind, namespace, owner["name"]) if owner and job_kind else None

    def _trimmed(self, obj: Json) -> Json:
        owner = controller_of(obj)
        if owner and self.job_kind(owner):
            return obj
        metadata = {name: obj["metadata"][name] for name in KEPT if name in obj["metadata"]}
        return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _whole(obj: Json) -> Json:
    return obj
