"""The reading end of an attempt's FIFO `alive`: it has a writer as long as the attempt runs or may still begin."""

import os
from pathlib import Path

import anyio


class Alive:
    def __init__(self, path: Path) -> None:
        self._end = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> "Alive":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)

    def at_end(self) -> bool:
        try:
            while os.read(self._end, 64):
                continue
        except BlockingIOError:
            return False
        return True

    async def word(self) -> bool:
        """Waits for a sign of life; False means the end."""
        while True:
            try:
                return bool(os.read(self._end, 64))
            except BlockingIOError:
                await anyio.wait_readable(self._end)

    async def end(self) -> None:
        while await self.word():
            continue
