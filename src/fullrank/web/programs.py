"""A program with pages of its own, as far as one can get to it: where it answers, or why it does not."""

import base64
import binascii
from dataclasses import dataclass

from fullrank.api.apps import PORT_NAME, TOKEN_KEY
from fullrank.api.meta import Json, is_terminating
from fullrank.api.scheme import POD, SECRET
from fullrank.client.port import Key, Reader
from fullrank.dialects.apps import AppKind
from fullrank.errors import NotFound
from fullrank.planning.apps import answers


@dataclass(frozen=True, slots=True)
class Open:
    address: str  # host and port
    token: str = ""  # that the program wants to see


@dataclass(frozen=True, slots=True)
class Starting:
    """It will answer by and by."""


@dataclass(frozen=True, slots=True)
class Stopped:
    resumption: str  # the command that brings it back


@dataclass(frozen=True, slots=True)
class Failed:
    why: str


async def find(client: Reader, kind: AppKind, key: Key) -> Open | Starting | Stopped | Failed:
    """NotFound if there is no such program at all."""
    program = await client.get(key)
    status: Json = program.get("status") or {}
    if kind.is_stopped(program):
        return Stopped(kind.resumption(program))
    if status.get("phase") == "Failed":
        return Failed("; ".join(str(one.get("message", "")) for one in status.get("conditions") or ()))
    pod = await _pod(client, key.namespace, status)
    if pod is None or not (address := address_of(pod)):
        return Starting()
    wants_token = kind.app.has_token
    return Open(
        address,
        await _token(client, Key(SECRET, key.namespace, kind.service(program))) if wants_token else "",
    )


def address_of(pod: Json) -> str:
    """Where the pod's page is; empty as long as nothing can be there."""
    status: Json = pod.get("status") or {}
    ip = status.get("podIP")
    ports = (port for one in pod["spec"]["containers"] for port in one.get("ports") or ())
    port = next((one["containerPort"] for one in ports if one.get("name") == PORT_NAME), None)
    if not ip or port is None or is_terminating(pod) or not answers(pod):
        return ""  # whoever else may answer at its address, for it is this machine's, must not be shown the token
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


async def _pod(client: Reader, namespace: str, status: Json) -> Json | None:
    name = ((status.get("pod") or {}).get("reference") or {}).get("name")
    if not name:
        return None
    try:
        return await client.get(Key(POD, namespace, name))
    except NotFound:
        return None


async def _token(client: Reader, where: Key) -> str:
    """Read anew each time, so that it is never an old one."""
    try:
        secret = await client.get(where)
        return base64.b64decode((secret.get("data") or {}).get(TOKEN_KEY) or "").decode("ascii")
    except (NotFound, binascii.Error, UnicodeDecodeError):
        return ""
