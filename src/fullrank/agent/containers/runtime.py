"""A Runtime over Podman or Docker: each pod's network is held by a container of its own, which its containers join.

What is known of an attempt is in its folder as with processes, and the nursery's keeper is its parent; the container
itself is the engine's. Should a keeper be gone without a word, another one takes over.
"""

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import anyio

from fullrank.agent.alive import Alive
from fullrank.agent.attempts import EPOCH, TRIES, Attempts, Nursery, make_fifos, read_record, write_record
from fullrank.agent.containers.arguments import (
    HOME_LABEL,
    container_name,
    container_words,
    holder_name,
    holder_words,
    pod_of,
    split,
)
from fullrank.agent.containers.engine import Engine
from fullrank.agent.control_groups import groups_of, usage
from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt, Execution, Exit, Launch, Limits, Run, Usage
from fullrank.clock import Clock
from fullrank.errors import Unavailable

RETRY = 1.0  # seconds
AT_ONCE = 8  # containers that are started together: engines are slower than processes
GONE = "no such"


class ContainerRuntime:
    """Use it as an async context manager, whose end leaves the containers running."""

    def __init__(self, home: Path, clock: Clock, engine: Engine) -> None:
        self._places = Places(home)
        self._engine = engine
        self._nursery = Nursery(home, ())
        self._attempts = Attempts(self._places, clock, self._nursery, engine.ways.engine)
        self._starts = anyio.Semaphore(AT_ONCE)
        self._holding: dict[str, anyio.Lock] = {}
        self._raising: dict[Attempt, anyio.Lock] = {}

    @property
    def engine(self) -> str:
        return self._engine.ways.engine

    async def __aenter__(self) -> "ContainerRuntime":
        await self._engine.open()
        await self._nursery.ensure_open()
        await self._sweep()
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.CancelScope(shield=True):
            await self._nursery.close()
            await self._let_go()
            await self._engine.close()

    async def start(self, launch: Launch) -> datetime:
        folder = self._attempts.folder(launch.attempt)
        for _ in range(TRIES):
            if (run := await self._settled(launch.attempt)) is not None:
                return run.started_at
            async with self._starts:
                await self._hold(launch)
                await self._create(launch, folder)
                await self._raise_keeper(launch.attempt)
        self._attempts.record_exit(
            launch.attempt, 128, "StartError", "failed to create container: its keeper would not start"
        )
        return EPOCH

    async def wait(self, attempt: Attempt) -> Exit:
        while True:
            with Alive(self._attempts.folder(attempt) / "alive") as alive:
                await alive.end()
            if (ended := self._attempts.exit_of(attempt)) is not None:
                return ended
            await anyio.sleep(RETRY)
            await self._raise_keeper(attempt)

    async def stop(self, attempt: Attempt, grace: float) -> None:
        await self._raise_keeper(attempt)
        await self._attempts.stop(attempt, grace)

    async def runs(self, pod_uid: str) -> tuple[Run, ...]:
        found = [await self._settled(attempt) for attempt in self._attempts.of_pod(pod_uid)]
        return tuple(run for run in found if run is not None)

    def pods(self) -> tuple[str, ...]:
        return self._attempts.pods()

    async def forget(self, pod_uid: str) -> None:
        attempts = self._attempts.of_pod(pod_uid)
        await self._remove(pod_uid, [container_name(attempt) for attempt in attempts])
        shutil.rmtree(self._places.pod(pod_uid), ignore_errors=True)
        self._holding.pop(pod_uid, None)
        for attempt in attempts:
            self._raising.pop(attempt, None)

    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution:
        terminal = ["--tty"] if os.isatty(streams[0]) else []
        words = [*self._engine.ways.tool, "exec", "--interactive", *terminal, container_name(attempt), *argv]
        return await self._attempts.visit(attempt, words, streams)

    def usage(self, attempt: Attempt) -> Usage | None:
        started = read_record(self._attempts.folder(attempt) / "started.json") or {}
        return usage(groups_of(started.get("container", 0)))

    def unenforced(self, _limits: Limits) -> str:
        return ""

    async def shortcomings(self) -> str:
        if self._engine.subnet is not None:
            return ""
        return (
            f"{self.engine} makes no network for pods on this machine, they share the machine's own: "
            f"{self._engine.why_no_network}"
        )

    async def _settled(self, attempt: Attempt) -> Run | None:
        return await self._attempts.settled(attempt, self._raise_keeper)

    async def _raise_keeper(self, attempt: Attempt) -> None:
        """Unless it has one, or needs none any more."""
        folder = self._attempts.folder(attempt)
        async with self._raising.setdefault(attempt, anyio.Lock()):
            with Alive(folder / "alive") as alive:
                if alive.at_end() and self._attempts.exit_of(attempt) is None:
                    await self._nursery.raise_attempt(folder, "container")
                    await alive.word()

    async def _hold(self, launch: Launch) -> None:
        """Sees that the pod's network is there and is held."""
        pod_uid = launch.attempt.pod_uid
        if not (launch.address and self._engine.ways.network):
            return
        async with self._holding.setdefault(pod_uid, anyio.Lock()):
            name = holder_name(pod_uid)
            state = await self._engine.ask("inspect", "--type=container", "--format={{.State.Running}}", name)
            if state.text.strip() == "true":
                return
            words = holder_words(self._engine.ways, pod_uid, launch.hostname, launch.address, launch.aliases)
            held = await self._engine.ask(*(("start", name) if state.code == 0 else words))
            if held.code != 0:
                await self._engine.ask("rm", "--force", name)
                raise Unavailable(f"failed to create pod sandbox: {held.end}")

    async def _let_go(self) -> None:
        """Holders of pods that were stopped go with the server: only their endings are left to be told."""
        async with anyio.create_task_group() as tasks:
            for pod_uid in self.pods():
                attempts = self._attempts.of_pod(pod_uid)
                if all(self._attempts.exit_of(attempt) for attempt in attempts):
                    tasks.start_soon(self._remove, pod_uid, [container_name(one) for one in attempts])

    async def _create(self, launch: Launch, folder: Path) -> None:
        make_fifos(folder)
        launch.log.parent.mkdir(parents=True, exist_ok=True)
        name = container_name(launch.attempt)
        write_record(folder / "launch.json", {
            "tool": list(self._engine.ways.tool), "env": {**self._engine.environ, "TZ": "UTC"}, "name": name,
            "follows": self.engine == "docker",
            "log": str(launch.log), "stop_signal": launch.stop_signal,
            "working_dir": "/", "user": None, "group": None, "groups": [], "control_groups": [],
        })  # fmt: skip
        variables = folder / "variables"
        text, others = split(launch.env)
        try:
            variables.touch(mode=0o600)
            variables.write_text(text, encoding="utf-8", errors="surrogateescape")
            words = container_words(self._engine.ways, launch, variables)
            made = await self._engine.ask(*words, variables=others)
            if made.code != 0 and made.says("in use"):  # by one that a server made and never came to start
                await self._engine.ask("rm", "--force", name)
                made = await self._engine.ask(*words, variables=others)
        finally:
            variables.unlink(missing_ok=True)
        if made.code != 0:
            raise Unavailable(f"failed to create container: {made.end}")

    async def _remove(self, pod_uid: str, names: Sequence[str]) -> None:
        """Keepers remove what has ended: mostly only the holder is left, which others must not depend on."""
        holder = holder_name(pod_uid)
        done = await self._engine.ask("rm", "--force", "--volumes", holder)
        if done.code != 0 and not done.says(GONE):
            await self._engine.ask("rm", "--force", "--volumes", *names)
            await self._engine.ask("rm", "--force", "--volumes", holder)

    async def _sweep(self) -> None:
        """Removes what is left of pods of which nothing is kept any more."""
        mine = f"label={HOME_LABEL}={self._engine.ways.home}"
        found = await self._engine.ask("ps", "--all", f"--filter={mine}", "--format={{.Names}}")
        left: dict[str, list[str]] = {}
        for name in found.text.split() if found.code == 0 else ():
            left.setdefault(pod_of(name), []).append(name)
        for pod_uid in left.keys() - {*self.pods(), ""}:
            with suppress(OSError):
                await self._remove(pod_uid, [name for name in left[pod_uid] if name != holder_name(pod_uid)])
