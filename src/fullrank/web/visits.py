"""When somebody last used a program, written on its object, so that who looks after it can tell that it is idle."""

import logging
from datetime import datetime, timedelta

import anyio

from fullrank.api.annotations import LAST_VISIT
from fullrank.api.meta import stamp
from fullrank.client.port import Key, Writer
from fullrank.clock import Clock
from fullrank.errors import FullrankError

EVERY = timedelta(minutes=1)

log = logging.getLogger(__name__)


class Visits:
    def __init__(self, client: Writer, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._noted: dict[Key, datetime] = {}
        self._due, self._to_write = anyio.create_memory_object_stream[tuple[Key, datetime]](1024)

    def note(self, key: Key) -> None:
        """Takes note of a use; costs next to nothing, and is written at most once a minute."""
        now = self._clock.now()
        if (last := self._noted.get(key)) is not None and now - last < EVERY:
            return
        self._noted = {one: when for one, when in self._noted.items() if now - when < EVERY} | {key: now}
        try:
            self._due.send_nowait((key, now))
        except anyio.WouldBlock:  # the server does not take writes now: the next minute's use will tell
            log.debug("the last visit of %s is not written: too many wait", key)

    async def run(self) -> None:
        """Writes what was noted. A visit that cannot be written is still a visit."""
        with self._due, self._to_write:
            async for key, when in self._to_write:
                patch = {"metadata": {"annotations": {LAST_VISIT: stamp(when)}}}
                try:
                    await self._client.patch(key, patch)
                except FullrankError as error:
                    log.debug("the last visit of %s is not written: %s", key, error)
