"""The little deeds that probes and lifecycle hooks ask for: run a program, fetch a page, open a connection, wait."""

import os
import ssl
from dataclasses import dataclass

import aiohttp
import anyio

from fullrank.agent.runtime import Attempt, Runtime
from fullrank.api.meta import Json

LONGEST_ANSWER = 1 << 10


@dataclass(frozen=True, slots=True)
class Patient:
    """The container that it is done to."""

    runtime: Runtime
    attempt: Attempt
    spec: Json
    pod_ip: str


async def perform(action: Json, patient: Patient, seconds: float) -> str:
    """Does what the action says within so many seconds; why it failed, or nothing."""
    try:
        with anyio.fail_after(seconds):
            if "exec" in action:
                return await _run(action["exec"].get("command") or [], patient)
            if "httpGet" in action:
                return await _fetch(action["httpGet"], patient)
            if "tcpSocket" in action:
                return await _connect(action["tcpSocket"], patient)
            await anyio.sleep((action.get("sleep") or {}).get("seconds", 0))
    except TimeoutError:
        return f"timed out after {seconds:g}s"
    return ""


async def _run(command: list[str], patient: Patient) -> str:
    output, end = os.pipe()
    os.set_blocking(output, False)
    try:
        streams = (os.open(os.devnull, os.O_RDONLY), end, os.dup(end))
        done = await patient.runtime.execute(patient.attempt, command, streams)
        try:
            said = os.read(output, LONGEST_ANSWER).decode(errors="replace")
        except BlockingIOError:
            said = ""
    finally:
        os.close(output)
    if done.code == 0 and not done.message:
        return ""
    return done.message or f"command '{' '.join(command)}' exited with {done.code}: {said.strip()}"


async def _fetch(asked: Json, patient: Patient) -> str:
    scheme = str(asked.get("scheme") or "HTTP").lower()
    host, port = asked.get("host") or patient.pod_ip, _port(asked["port"], patient.spec)
    headers = [(one["name"], one.get("value", "")) for one in asked.get("httpHeaders") or []]
    url = f"{scheme}://{host}:{port}/{str(asked.get('path') or '').removeprefix('/')}"
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trusting)) as session,
            session.get(url, headers=headers, allow_redirects=False) as answer,
        ):
            fine = 200 <= answer.status < 400
            return "" if fine else f"HTTP probe failed with statuscode: {answer.status}"
    except (aiohttp.ClientError, OSError, ValueError) as problem:
        return f'Get "{url}": {problem}'


async def _connect(asked: Json, patient: Patient) -> str:
    host, port = asked.get("host") or patient.pod_ip, _port(asked["port"], patient.spec)
    try:
        async with await anyio.connect_tcp(host, port):
            return ""
    except OSError as problem:
        return f"dial tcp {host}:{port}: {problem}"


def _port(wanted: int | str, spec: Json) -> int:
    named = {one.get("name"): one["containerPort"] for one in spec.get("ports") or []}
    return int(named.get(wanted, wanted))
