"""What queues say of themselves in the embedded home: who waits, who runs, what they use; in the words of Kueue."""

import logging
from collections.abc import Mapping
from typing import NamedTuple

import anyio

from fullrank.api.meta import Json, name_of, namespace_of, stamp
from fullrank.api.quantity import milli
from fullrank.api.queues import CLUSTER_QUEUE, LOCAL_QUEUE
from fullrank.api.scheme import Kind
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.controllers.claims import Rules, shares_of
from fullrank.errors import Conflict, NotFound, Unavailable
from fullrank.scheduling.amounts import shown
from fullrank.scheduling.floor import Floor
from fullrank.scheduling.gang import Tally

log = logging.getLogger(__name__)

GATHERING = 0.2  # seconds in which changes are gathered into one writing
NOBODY = Tally()


class Words(NamedTuple):
    """What differs between the two kinds of queues."""

    usage: str
    ready: str


WORDS = {
    CLUSTER_QUEUE: Words("flavorsUsage", "Can admit new workloads"),
    LOCAL_QUEUE: Words("flavorUsage", "Can submit new workloads to clusterQueue"),
}


class QueueReporter:
    def __init__(self, client: Client, rules: Rules, floor: Floor, clock: Clock) -> None:
        self._client = client
        self._rules = rules
        self._floor = floor
        self._clock = clock
        self._changed = anyio.Event()

    def note(self) -> None:
        """Something was decided, or a queue has changed."""
        self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(GATHERING)
            self._changed = anyio.Event()
            if self._rules.cluster_queues.all() or self._rules.local_queues.all():
                await self.report()

    async def report(self) -> None:
        by_queue, by_local = self._floor.tallies()
        shares: dict[str, list[tuple[str, Json]]] = {}
        for queue in self._rules.cluster_queues.all():
            name = name_of(queue)
            shares[name] = shares_of(queue)
            why = self._rules.hindrance_of(name)
            await self._write(CLUSTER_QUEUE, queue, by_queue.get(name, NOBODY), shares[name], why)
        for queue in self._rules.local_queues.all():
            place = namespace_of(queue), name_of(queue)
            named, why = (
                shares.get(queue["spec"]["clusterQueue"], []),
                self._rules.membership(*place).hindrance,
            )
            await self._write(LOCAL_QUEUE, queue, by_local.get("/".join(place), NOBODY), named, why)

    async def _write(
        self, kind: Kind, queue: Json, tally: Tally, shares: list[tuple[str, Json]], why_not: str
    ) -> None:
        before: Json = queue.get("status") or {}
        condition = _active(before, WORDS[kind].ready, why_not, stamp(self._clock.now()))
        status = {
            "pendingWorkloads": tally.pending,
            "reservingWorkloads": tally.admitted,
            "admittedWorkloads": tally.admitted,
            "conditions": [condition],
            WORDS[kind].usage: _usage(shares, tally.used),
        }
        if status == before:
            return
        try:
            await self._client.patch(Key.of(kind, queue), {"status": status}, subresource="status")
        except (NotFound, Conflict):
            return  # gone, or changed meanwhile: then it is looked at again
        except Unavailable as problem:
            log.warning("the status of %s was not written: %s", Key.of(kind, queue), problem)


def _active(before: Json, ready: str, why_not: str, now: str) -> Json:
    old: Json = next((one for one in before.get("conditions") or () if one["type"] == "Active"), {})
    status = "False" if why_not else "True"
    return {
        "type": "Active",
        "status": status,
        "reason": "Inactive" if why_not else "Ready",
        "message": why_not or ready,
        "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == status else now,
    }


def _usage(shares: list[tuple[str, Json]], used: Mapping[str, int]) -> list[Json]:
    """By flavor: quotas of several flavors add up, and what is used fills them in their order."""
    left, flavors = dict(used), dict[str, list[Json]]()
    last = {share["name"]: flavor for flavor, share in shares}
    for flavor, share in shares:
        name = share["name"]
        quota = milli(share["nominalQuota"])
        here = left.get(name, 0) if last[name] == flavor else min(left.get(name, 0), quota)
        left[name] = left.get(name, 0) - here
        flavors.setdefault(flavor, []).append({"name": name, "total": shown(name, here)})
    return [{"name": flavor, "resources": resources} for flavor, resources in flavors.items()]
