"""What there is to tell of jobs and web programs, written beside the work: no deed waits until its event is stored."""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple, Protocol

import anyio
import anyio.lowlevel

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.client.events import EventRecorder
from fullrank.client.port import Client
from fullrank.clock import Clock

WRITERS = 4
LONGEST_WAIT = 0.2  # seconds that each writer lets more urgent work go first
LAST_WORDS = 2.0  # seconds to write what is left when the controller stops


class Told(Protocol):
    """A kind of object that there is something to tell of, and who tells it."""

    @property
    def kind(self) -> Kind: ...

    @property
    def controller(self) -> str: ...


class Item(NamedTuple):
    obj: Json
    type: str
    reason: str
    message: str


class News:
    """Each kind's events are signed by its own controller. `urgent` returns when there is nothing more urgent to do."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        kinds: Iterable[Told],
        urgent: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        self._urgent = urgent
        self._recorders = {
            (one.kind.api_version, one.kind.kind): EventRecorder(client, one.controller, clock)
            for one in kinds
        }
        self._waiting: deque[Item] = deque()
        self._more = anyio.Event()

    def tell(self, obj: Json, type: str, reason: str, message: str) -> None:  # noqa: A002
        self._waiting.append(Item(obj, type, reason, message))
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
            await self._write_waiting(patiently=True)
            if self._more.is_set():
                self._more = anyio.Event()
            await self._more.wait()

    async def _write_waiting(self, *, patiently: bool = False) -> None:
        while self._waiting:
            if patiently:
                with anyio.move_on_after(LONGEST_WAIT):
                    await self._urgent()
                if not self._waiting:
                    return
            item = self._waiting.popleft()
            recorder = self._recorders[item.obj["apiVersion"], item.obj["kind"]]
            await recorder.emit(item.obj, item.type, item.reason, item.message)
