"""Local copies of what the controllers look at, each kept once however many controllers look."""

import anyio

from fullrank.api.meta import Json
from fullrank.api.scheme import NODE, POD, SERVICE
from fullrank.client.cache import Cache
from fullrank.client.port import Key, Reader
from fullrank.dialects.contract import JobKind


class Lookout:
    def __init__(self, client: Reader, job_kinds: tuple[JobKind, ...]) -> None:
        self.job_kinds = {(one.kind.api_version, one.kind.kind): one for one in job_kinds}
        self.jobs = {one.kind: Cache(client, one.kind) for one in job_kinds}
        self.pods = Cache(client, POD)
        self.services = Cache(client, SERVICE)
        self.nodes = Cache(client, NODE)

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            for cache in self._all():
                tasks.start_soon(cache.run)

    async def synced(self) -> None:
        for cache in self._all():
            await cache.synced()

    def _all(self) -> list[Cache]:
        return [*self.jobs.values(), self.pods, self.services, self.nodes]

    def job_kind(self, owner: Json) -> JobKind | None:
        """The kind of job an owner reference (or an object) is of, if it is one of ours."""
        return self.job_kinds.get((owner["apiVersion"], owner["kind"]))

    def job_key(self, owner: Json | None, namespace: str) -> Key | None:
        job_kind = self.job_kind(owner) if owner else None
        return Key(job_kind.kind, namespace, owner["name"]) if owner and job_kind else None
