"""One operator at a time: whoever holds a Lease leads, the others wait until it is given up or no longer renewed.

Clocks of different machines are not compared: a lease has run out when it has not changed for its whole duration by
the watch of the one who waits.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from fullrank.api.meta import Json, micro_stamp
from fullrank.api.scheme import LEASE
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.errors import Conflict, FullrankError, NotFound, Unavailable

log = logging.getLogger(__name__)

DURATION, RENEWAL, PAUSE = (
    15.0,
    10.0,
    2.0,
)  # seconds a lease holds, within which it must be renewed, between tries


class Leader:
    """`identity` is what this one is called in the lease."""

    def __init__(self, client: Client, clock: Clock, lease: Key, identity: str) -> None:
        self._client = client
        self._clock = clock
        self._lease = lease
        self._identity = identity
        self._seen: Json | None = None
        self._seen_at = 0.0

    @asynccontextmanager
    async def leading(self) -> AsyncIterator[None]:
        """Entered once we lead. Losing the lease is Unavailable; on leaving it is given up."""
        await self._until_taken()
        log.info("leading as %s", self._identity)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._keep)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
                with anyio.move_on_after(PAUSE, shield=True):
                    await self._give_up()

    async def _keep(self) -> None:
        while True:
            with anyio.move_on_after(RENEWAL) as late:
                await anyio.sleep(PAUSE)
                await self._until_taken()
            if late.cancelled_caught:
                raise Unavailable(
                    f"{self._lease} could not be renewed for {RENEWAL:.0f} s: another may lead now"
                )

    async def _until_taken(self) -> None:
        while not await self._took():  # noqa: ASYNC110  # the lease is others' too: there is nothing here to wait for
            await anyio.sleep(PAUSE)

    async def _took(self) -> bool:
        """One try to take or renew the lease."""
        try:
            return await self._write(await self._found())
        except FullrankError as error:
            log.debug("%s: %s", self._lease, error)
            return False

    async def _found(self) -> Json | None:
        try:
            found = await self._client.get(self._lease)
        except NotFound:
            return None
        if self._seen is None or found["spec"] != self._seen["spec"]:
            self._seen, self._seen_at = found, anyio.current_time()
        return found

    async def _write(self, found: Json | None) -> bool:
        now = micro_stamp(self._clock.now())
        mine: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(DURATION),
            "renewTime": now,
        }
        if found is None:
            fresh = mine | {"acquireTime": now, "leaseTransitions": 0}
            metadata = {"name": self._lease.name, "namespace": self._lease.namespace}
            await self._client.create(LEASE, {"metadata": metadata, "spec": fresh})
            return True
        spec: Json = found.get("spec") or {}
        if spec.get("holderIdentity") != self._identity:
            if spec.get("holderIdentity") and anyio.current_time() < self._seen_at + DURATION:
                return False
            mine |= {"acquireTime": now, "leaseTransitions": (spec.get("leaseTransitions") or 0) + 1}
        await self._client.replace(LEASE, found | {"spec": spec | mine})
        return True

    async def _give_up(self) -> None:
        try:
            found = await self._client.get(self._lease)
            if found["spec"].get("holderIdentity") == self._identity:
                await self._client.replace(LEASE, found | {"spec": found["spec"] | {"holderIdentity": ""}})
        except (NotFound, Conflict, Unavailable) as error:
            log.debug("%s was not given up: %s", self._lease, error)
