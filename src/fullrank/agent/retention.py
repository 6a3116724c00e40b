"""Kept logs go when their job is deleted and nobody has written to them for as long as the home keeps them."""

import logging
import shutil
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.to_thread

from fullrank.agent.kept_logs import KeptPod, kept_pods
from fullrank.agent.places import Places
from fullrank.api.meta import uid_of
from fullrank.api.scheme import POD, Kind
from fullrank.client.port import Reader
from fullrank.clock import Clock
from fullrank.errors import Unavailable

logger = logging.getLogger(__name__)

EVERY = timedelta(hours=1)


class Retention:
    """`kinds` are those whose objects own pods; logs of a pod that something else owns are left alone."""

    def __init__(
        self, home: Path, reader: Reader, kinds: Iterable[Kind], clock: Clock, keep: timedelta
    ) -> None:
        self._home = home
        self._reader = reader
        self._kinds = tuple(kinds)
        self._clock = clock
        self._keep = keep

    async def run(self) -> None:
        while True:
            try:
                await self.sweep()
            except (OSError, Unavailable) as problem:
                logger.warning("logs of deleted jobs were not swept, trying again later: %s", problem)
            await anyio.sleep(EVERY.total_seconds())

    async def sweep(self) -> None:
        before = self._clock.now() - self._keep
        for pod in await forsaken(self._home, self._reader, self._kinds):
            if last_written(pod) < before:
                logger.info("the logs of %s/%s are given up: its job is gone", pod.namespace, pod.name)
                await anyio.to_thread.run_sync(remove_logs, pod)


async def forsaken(home: Path, reader: Reader, kinds: Iterable[Kind]) -> list[KeptPod]:
    """The pods with kept logs that are gone, as are the jobs they belonged to."""
    kept = await anyio.to_thread.run_sync(
        kept_pods, home
    )  # before looking who lives: nobody comes to life later
    owners = {pod.owner_kind for pod in kept}
    wanted = [kind for kind in (POD, *kinds) if kind is POD or kind.kind in owners]
    living = {uid_of(obj) for kind in wanted for obj in (await reader.select(kind)).items}
    known = {"", *(kind.kind for kind in wanted)}
    return [pod for pod in kept if pod.owner_kind in known and not _lives(pod, living, Places(home))]


def _lives(pod: KeptPod, living: Collection[str], places: Places) -> bool:
    return pod.uid in living or pod.owner_uid in living or places.pod(pod.uid).exists()


def last_written(pod: KeptPod) -> datetime:
    times = [path.stat().st_mtime for path in pod.folder.rglob("*") if path.is_file()]
    return datetime.fromtimestamp(max(times, default=0.0), UTC)


def remove_logs(pod: KeptPod) -> None:
    """The record goes last: what is half removed is still found the next time."""
    for folder in {run.file.parent for run in pod.runs}:
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(pod.folder, ignore_errors=True)
    with suppress(OSError):  # others of the namespace have logs there
        pod.folder.parent.rmdir()
