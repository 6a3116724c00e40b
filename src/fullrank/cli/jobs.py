"""Jobs as the command line speaks of them."""

import re

from fullrank.api.meta import Json
from fullrank.client.port import Key, Reader, Writer
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import NotFound

OVER = ("Succeeded", "Failed")
STOPPED = ("Suspended", "Paused")


def state_of(job: Json) -> str:
    """What a job says of itself in one word, as TensorStack's do; else the last thing that became true of it."""
    status: Json = job.get("status") or {}
    if phase := status.get("phase"):
        return str(phase)
    conditions: list[Json] = status.get("conditions") or []
    return next((one["type"] for one in reversed(conditions) if one["status"] == "True"), "")


def member_of(job: str, pod: str) -> str:
    """A member as people call it: its pod's name without the job's, and without the mark that may come between."""
    return re.sub(r"^[0-9a-f]{5}-(?=.+-\d)", "", pod.removeprefix(f"{job}-"))


async def stop(client: Writer, key: Key) -> None:
    """Asks a job to give everything back; it can be resumed."""
    dialect = next(one.dialect for one in JOB_KINDS if one.kind == key.kind)
    await client.patch(key, dialect.suspension(True))


async def find_job(client: Reader, namespace: str, name: str) -> tuple[Key, Json]:
    """The job of that name, of whatever kind."""
    for one in JOB_KINDS:
        key = Key(one.kind, namespace, name)
        try:
            return key, await client.get(key)
        except NotFound:
            continue
    raise NotFound(f'no job "{name}" in namespace "{namespace}"')
