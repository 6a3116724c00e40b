"""A thousand at once, over real TLS: all watchers are fed, all counters count, and who never reads holds up nobody."""

import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import anyio
import anyio.to_thread
import pytest
from aiohttp import ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from fullrank.api.meta import Json
from tests.histories.living import MAPS, Server, alone

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(90)]

CROWD = 1000


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    server = alone(tmp_path, keep=50)
    await server.start()
    yield server
    await server.kill()
    assert "Traceback" not in server.log


def session_of(server: Server) -> ClientSession:
    tls = ssl.create_default_context(cafile=str(server.keys.ca))
    return ClientSession(
        connector=TCPConnector(ssl=tls, limit=0),
        headers={"Authorization": f"Bearer {server.keys.token}", "Content-Type": "application/json"},
        timeout=ClientTimeout(total=120),
        base_url=server.url,
    )


async def write(session: ClientSession, name: str, data: str = "") -> Json:
    made = {"metadata": {"name": name, "labels": {"it": "yes"}}, "data": {"it": data}}
    async with session.post(MAPS, data=json.dumps(made)) as answer:
        assert answer.status == 201, await answer.text()
        created: Json = await answer.json()
        return created


async def test_a_thousand_watchers_are_all_fed(server: Server) -> None:
    seen: list[list[str]] = [[] for _ in range(CROWD)]
    ready = anyio.Event()
    waiting = CROWD

    async def follow(session: ClientSession, heard: list[str]) -> None:
        nonlocal waiting
        async with session.get(f"{MAPS}?watch=1&sendInitialEvents=false&labelSelector=it%3Dyes") as answer:
            assert answer.status == 200
            waiting -= 1
            if not waiting:
                ready.set()
            async for line in answer.content:
                event = json.loads(line)
                heard.append(event["object"]["metadata"]["name"])
                if len(heard) == 20:
                    return

    async with session_of(server) as session, anyio.create_task_group() as tasks:
        for heard in seen:
            tasks.start_soon(follow, session, heard)
        await ready.wait()
        for number in range(20):
            await write(session, f"m{number}")
    assert seen == [[f"m{number}" for number in range(20)]] * CROWD


async def test_a_thousand_who_count_together_count_to_a_thousand(server: Server) -> None:
    left, chance = CROWD, Random(1)

    async def increment(session: ClientSession) -> None:
        """Tries until nobody was faster, as every client does; the more there are, the longer it waits."""
        nonlocal left
        while True:
            await anyio.sleep(chance.uniform(0, left * 0.008))
            async with session.get(f"{MAPS}/counter") as answer:
                counter = await answer.json()
            counter["data"]["it"] = str(int(counter["data"]["it"]) + 1)
            async with session.put(f"{MAPS}/counter", data=json.dumps(counter)) as answer:
                if answer.status == 200:
                    left -= 1
                    return
                assert answer.status == 409, await answer.text()

    async with session_of(server) as session:
        await write(session, "counter", "0")
        async with anyio.create_task_group() as tasks:
            for _ in range(CROWD):
                tasks.start_soon(increment, session)
        async with session.get(f"{MAPS}/counter") as answer:
            assert (await answer.json())["data"]["it"] == str(CROWD)


async def test_a_watcher_who_never_reads_is_cut_off_and_holds_up_nobody(server: Server) -> None:
    url = URL(server.url)
    tls = ssl.create_default_context(cafile=str(server.keys.ca))
    plain = socket.create_connection((url.host or "", url.port or 0))
    with tls.wrap_socket(plain, server_hostname=url.host) as deaf:
        deaf.sendall(
            f"GET {MAPS}?watch=1&sendInitialEvents=false HTTP/1.1\r\nHost: x\r\n"
            f"Authorization: Bearer {server.keys.token}\r\n\r\n".encode()
        )
        assert deaf.recv(12) == b"HTTP/1.1 200"
        async with session_of(server) as session:
            await write(session, "big")
            with anyio.fail_after(60):
                for number in range(200):  # more than history keeps, and more than sockets hold
                    patch = json.dumps({"data": {"it": str(number) + "x" * 100_000}})
                    media = {"Content-Type": "application/merge-patch+json"}
                    async with session.patch(f"{MAPS}/big", data=patch, headers=media) as answer:
                        assert answer.status == 200
            deaf.settimeout(30)
            told = bytearray()
            while piece := await anyio.to_thread.run_sync(deaf.recv, 1 << 16):
                told += piece
                if b"too old resource version" in told[-4096:]:
                    break
    assert b'"type":"ERROR"' in told[-4096:]
    assert b'"code":410' in told[-4096:]
