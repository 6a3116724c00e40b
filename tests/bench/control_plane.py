"""The embedded control plane, measured from outside over TLS: durable writes, crowds of clients and watchers, start.

`python -m tests.bench.control_plane` prints each figure beside what is to be reached.
"""

import json
import ssl
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter

import anyio
import psutil
from aiohttp import ClientSession, ClientTimeout, TCPConnector

from fullrank.controlplane.store import Place, Store
from tests.histories.living import MAPS, Server

OBJECTS = 5_000
MANY_OBJECTS = 10_000
RATE = 200  # writes a second
SECONDS = 15
CROWD = 1_000


def a_home(folder: Path) -> Server:
    return Server(folder, [sys.executable, "-m", "fullrank", "up", f"--home={folder}", "--gpus=none"])


def filled(folder: Path, objects: int) -> None:
    """A state file with so many ConfigMaps in it."""
    store = Store(folder / "state.db", inline=True)
    store._database.execute("PRAGMA synchronous=OFF")
    for number in range(objects):
        name = f"old-{number}"
        metadata = {
            "name": name,
            "namespace": "old",
            "uid": name,
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        whole = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": "x" * 500}}
        store.put(Place("configmaps", "old", name), whole)
    store.close()


def session_of(server: Server) -> ClientSession:
    tls = ssl.create_default_context(cafile=str(server.keys.ca))
    return ClientSession(
        connector=TCPConnector(ssl=tls, limit=0),
        headers={"Authorization": f"Bearer {server.keys.token}", "Content-Type": "application/json"},
        timeout=ClientTimeout(total=120),
        base_url=server.url,
    )


async def create(session: ClientSession, name: str) -> None:
    made = {"metadata": {"name": name}, "data": {"text": "x" * 500}}
    async with session.post(MAPS, data=json.dumps(made)) as answer:
        await answer.read()
        if answer.status != 201:
            raise RuntimeError(await answer.text())


async def timed(
    deed: Callable[[], Awaitable[None]], since: float, times: list[float], failures: list[str]
) -> None:
    try:
        await deed()
    except (OSError, RuntimeError) as problem:
        failures.append(str(problem))
    times.append(perf_counter() - since)


def spread(times: list[float]) -> str:
    ordered = sorted(times)
    return f"{statistics.median(ordered) * 1000:.1f} / {ordered[int(len(ordered) * 0.99)] * 1000:.1f} ms"


async def steady_writes(session: ClientSession, server: Server) -> str:
    """Each at its moment, whether those before are answered or not: a client that waits would hide the queue."""
    times: list[float] = []
    failures: list[str] = []
    for number in range(RATE):  # a home that has just come up is still looking around
        await create(session, f"first-{number}")
    process = psutil.Process(server.pid)
    before, begun = sum(process.cpu_times()[:2]), perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(RATE * SECONDS):
            moment = begun + number / RATE
            await anyio.sleep(max(0.0, moment - perf_counter()))
            tasks.start_soon(
                timed, lambda name=f"steady-{number}": create(session, name), moment, times, failures
            )
    effort = (sum(process.cpu_times()[:2]) - before) / len(times)
    return f"{spread(times)} ({effort * 1000:.1f} ms CPU), {len(failures)} errors"


async def crowd_of_clients(session: ClientSession) -> str:
    """A thousand connections that write at the same moment, twice: the first time they are opened."""
    for life in ("cold", "warm"):
        times: list[float] = []
        failures: list[str] = []
        begun = perf_counter()
        async with anyio.create_task_group() as tasks:
            for number in range(CROWD):
                tasks.start_soon(
                    timed, lambda name=f"{life}-{number}": create(session, name), begun, times, failures
                )
    return f"all in {max(times):.2f} s, {len(failures)} errors"


async def crowd_of_watchers(session: ClientSession) -> str:
    fed: list[float] = []
    watching, ready = 0, anyio.Event()

    async def follow() -> None:
        nonlocal watching
        async with session.get(f"{MAPS}?watch=1&sendInitialEvents=false") as answer:
            watching += 1
            if watching == CROWD:
                ready.set()
            async for _ in answer.content:
                fed.append(perf_counter())
                return

    async with anyio.create_task_group() as tasks:
        for _ in range(CROWD):
            tasks.start_soon(follow)
        await ready.wait()
        begun = perf_counter()
        await create(session, "for-all")
    return f"{len(fed)} fed in {(max(fed) - begun) * 1000:.0f} ms"


async def measured() -> list[tuple[str, str, str]]:
    rows = []
    for objects in (0, MANY_OBJECTS):
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            filled(Path(folder), objects)
            server = a_home(Path(folder))
            for _ in range(3):
                await server.start()
                await server.stop()
            rows.append((f"start with {objects:,} objects", f"{min(server.births):.2f} s", "≤ 1.0 s"))
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        filled(Path(folder), OBJECTS)
        server = a_home(Path(folder))
        await server.start()
        async with session_of(server) as session:
            words = f"durable writes, {RATE}/s, {OBJECTS:,} objects: median / p99"
            rows.append((words, await steady_writes(session, server), "p99 ≤ 50 ms"))
            rows.append((f"{CROWD:,} clients write at once", await crowd_of_clients(session), "no errors"))
            rows.append((f"{CROWD:,} watchers, one write", await crowd_of_watchers(session), "all fed"))
        await server.stop()
    return rows


def main() -> None:
    for what, found, reach in anyio.run(measured):
        sys.stdout.write(f"{what:55} {found:>44}   {reach}\n")


if __name__ == "__main__":
    main()
