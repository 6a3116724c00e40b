"""What there is to tell of jobs, written beside the work: no deed waits until its event is stored."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import anyio

from fullrank.api.meta import Json
from fullrank.client.events import EventRecorder
from fullrank.client.port import Client
from fullrank.clock import Clock
from fullrank.dialects.contract import JobKind

WRITERS = 4
LAST_WORDS = 2.0  # seconds to write what is left when the controller stops


class Item(NamedTuple):
    job: Json
    type: str
    reason: str
    message: str


class News:
    """Each kind's events are signed by its own controller."""

    def __init__(self, client: Client, clock: Clock, job_kinds: Iterable[JobKind]) -> None:
        self._recorders = {
            (one.kind.api_version, one.kind.kind): EventRecorder(client, one.controller, clock)
            for one in job_kinds
        }
        self._waiting: deque[Item] = deque()
        self._more = anyio.Event()

    def tell(self, job: Json, type: str, reason: str, message: str) -> None:  # noqa: A002
        self._waiting.append(Item(job, type, reason, message))
        self._more.set()

    async def run(self) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(WRITERS):
                    tasks.start_soon(self._write_all)
        finally:
            with anyio.move_on_after(LAST_WORDS, shield=True):
                await self._write_waiting()

    async def _write_all(self) -> None:
        while True:
            await self._write_waiting()
            if self._more.is_set():
                self._more = anyio.Event()
            await self._more.wait()

    async def _write_waiting(self) -> None:
        while self._waiting:
            item = self._waiting.popleft()
            recorder = self._recorders[item.job["apiVersion"], item.job["kind"]]
            await recorder.emit(item.job, item.type, item.reason, item.message)
