"""Containers as processes of this machine, each below a small parent that outlives the server."""

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import psutil

from fullrank.agent.alive import Alive
from fullrank.agent.attempts import (
    EPOCH,
    TRIES,
    Attempts,
    Nursery,
    folders_in,
    make_fifos,
    read_record,
    write_record,
)
from fullrank.agent.control_groups import ControlGroups, out_of_memory_records, remove, usage
from fullrank.agent.places import Places
from fullrank.agent.plain import without_namespaces
from fullrank.agent.runtime import Attempt, Execution, Exit, Launch, Limits, Run, Usage
from fullrank.api.meta import Json
from fullrank.clock import Clock

ISOLATION = ("root", "user")
LOST = "The container could not be located when the pod was terminated"


class ProcessRuntime:
    """A Runtime; use it as an async context manager, whose end closes the nursery and leaves the attempts running."""

    engine = "process"

    def __init__(self, home: Path, clock: Clock, *, isolation: tuple[str, ...] = ISOLATION) -> None:
        """`isolation`: the levels that may be used, the best first; which of them can be, is found out by trying."""
        self._places = Places(home)
        self._nursery = Nursery(home, isolation)
        self._attempts = Attempts(self._places, clock, self._nursery)
        self._groups = ControlGroups.of_this_machine(home)

    async def __aenter__(self) -> "ProcessRuntime":
        await self._nursery.ensure_open()
        self._groups.sweep()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._nursery.close()
        self._groups.sweep()

    async def start(self, launch: Launch) -> datetime:
        folder = self._places.attempt(launch.attempt)
        for _ in range(TRIES):
            if (run := await self._settled(launch.attempt)) is not None:
                return run.started_at
            groups = self._groups.make(launch.attempt, launch.limits)
            _prepare(folder, self._adapted(launch, folder), groups)
            with Alive(folder / "alive") as alive:
                await self._nursery.raise_attempt(folder)
                await alive.word()
        self._attempts.record_exit(
            launch.attempt,
            128,
            "StartError",
            "failed to create container: its parent process would not start",
        )
        return EPOCH

    async def wait(self, attempt: Attempt) -> Exit:
        with Alive(self._places.attempt(attempt) / "alive") as alive:
            await alive.end()
        return self._attempts.exit_of(attempt) or self._attempts.record_exit(
            attempt, 137, "ContainerStatusUnknown", LOST
        )

    async def stop(self, attempt: Attempt, grace: float) -> None:
        await self._attempts.stop(attempt, grace)

    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution:
        return await self._attempts.visit(attempt, argv, streams)

    async def runs(self, pod_uid: str) -> tuple[Run, ...]:
        found = [await self._settled(attempt) for attempt in self._attempts.of_pod(pod_uid)]
        return tuple(run for run in found if run is not None)

    def pods(self) -> tuple[str, ...]:
        return self._attempts.pods()

    async def forget(self, pod_uid: str) -> None:
        folder = self._places.pod(pod_uid)
        groups = [
            group
            for container in folders_in(folder)
            for run in folders_in(container)
            for group in _groups(run)
        ]
        shutil.rmtree(folder, ignore_errors=True)
        remove(groups)

    def usage(self, attempt: Attempt) -> Usage | None:
        folder = self._places.attempt(attempt)
        return usage(_groups(folder)) or _usage_of_tree(read_record(folder / "started.json") or {})

    async def shortcomings(self) -> str:
        if self._nursery.isolation != "none":
            return ""
        return (
            "this machine allows no namespaces: paths of volumes and image files in command, workingDir and env were "
            "replaced by the folders behind them, and names of services in env by addresses"
        )

    def unenforced(self, limits: Limits) -> str:
        told = []
        if limits.memory is not None and not self._groups.limit("memory"):
            watched = "watched by us instead: a container that uses more is killed as OOMKilled"
            told.append(f"the memory limit is {watched if sys.platform == 'linux' else 'not enforced'}")
        if limits.cpu is not None and not self._groups.limit("cpu"):
            told.append("the CPU limit is not enforced")
        return f"this machine has no control groups that we may use: {'; '.join(told)}" if told else ""

    def _adapted(self, launch: Launch, folder: Path) -> Launch:
        if self._nursery.isolation != "none":
            return launch
        plain = without_namespaces(launch)
        if os.path.isdir(plain.working_dir):
            return plain
        return replace(plain, working_dir=str(folder / "work"))

    async def _settled(self, attempt: Attempt) -> Run | None:
        return await self._attempts.settled(attempt, self._lost)

    async def _lost(self, attempt: Attempt) -> None:
        self._attempts.record_exit(attempt, 137, "ContainerStatusUnknown", LOST)


def _prepare(folder: Path, launch: Launch, groups: tuple[Path, ...]) -> None:
    make_fifos(folder)
    mounts = [[str(mount.source), mount.target, mount.read_only] for mount in launch.mounts]
    write_record(folder / "launch.json", {
        "argv": list(launch.argv), "env": dict(launch.env), "log": str(launch.log), "hostname": launch.hostname,
        "working_dir": launch.working_dir, "user": launch.user, "group": launch.group, "mounts": mounts,
        "folders": [str(folder) for folder in launch.folders], "groups": list(launch.groups),
        "read_only": launch.read_only, "control_groups": [str(group) for group in groups],
        "out_of_memory": [str(record) for record in out_of_memory_records(groups)],
        "watched_memory": None if out_of_memory_records(groups) else launch.limits.memory,
        "names": str(launch.names) if launch.names else None,
    })  # fmt: skip


def _usage_of_tree(started: Json) -> Usage | None:
    """What a container's processes use, where no control group counts for us."""
    try:
        first = psutil.Process(started["container"])
        tree = [first, *first.children(recursive=True)]
        times = [process.cpu_times() for process in tree]
        memory = sum(process.memory_info().rss for process in tree)
    except (KeyError, psutil.Error):
        return None
    return Usage(sum(time.user + time.system for time in times), memory)


def _groups(folder: Path) -> list[Path]:
    """Of an attempt, whichever server started it."""
    launch = read_record(folder / "launch.json") or {}
    return [Path(group) for group in launch.get("control_groups", ())]
