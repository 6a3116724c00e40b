"""What probes and hooks do: pages fetched, connections opened, programs run, each within its time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from fullrank.agent.handlers import Patient, perform
from fullrank.agent.runtime import Attempt, Execution
from fullrank.clock import ManualClock
from tests.doubles.runtime import PretendedRuntime

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def a_program() -> AsyncIterator[tuple[Patient, PretendedRuntime]]:
    """Something that listens on its port `web`, well at `/well` and unwell elsewhere."""

    async def answer(request: web.BaseRequest) -> web.Response:
        fine = request.path == "/well" and request.headers.get("X-Who") == "probe"
        return web.Response(status=204 if fine else 500)

    runner = web.ServerRunner(web.Server(answer))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    runtime = PretendedRuntime(ManualClock())
    spec = {"ports": [{"name": "web", "containerPort": runner.addresses[0][1]}]}
    try:
        yield Patient(runtime, Attempt("u1", "main", 0), spec, "127.0.0.1"), runtime
    finally:
        await runner.cleanup()


WELL = {"path": "/well", "httpHeaders": [{"name": "X-Who", "value": "probe"}]}
ACTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "a page that is well": ({"httpGet": {"port": "web", **WELL}}, ""),
    "a page that is not": ({"httpGet": {"port": "web"}}, "HTTP probe failed with statuscode: 500"),
    "a page of nobody": ({"httpGet": {"port": 1, "path": "/"}}, 'Get "http://127.0.0.1:1/": '),
    "a port that is open": ({"tcpSocket": {"port": "web"}}, ""),
    "a port that is not": ({"tcpSocket": {"port": 1}}, "dial tcp 127.0.0.1:1: "),
    "a program that succeeds": ({"exec": {"command": ["true"]}}, ""),
    "a program that fails": ({"exec": {"command": ["false"]}}, "command 'false' exited with 1"),
    "a rest": ({"sleep": {"seconds": 0}}, ""),
}


@pytest.mark.parametrize("case", ACTIONS)
async def test_a_deed_tells_why_it_failed(case: str) -> None:
    action, why = ACTIONS[case]
    async with a_program() as (patient, runtime):
        runtime.outcomes["false",] = Execution(1)
        said = await perform(action, patient, 5)
    assert said.startswith(why) if why else said == ""


async def test_no_deed_takes_longer_than_it_may() -> None:
    patient = Patient(PretendedRuntime(ManualClock()), Attempt("u1", "main", 0), {}, "127.0.0.1")
    assert await perform({"sleep": {"seconds": 60}}, patient, 0.01) == "timed out after 0.01s"
