"""Asking a JupyterLab how it is: when somebody last did something in it, and whether a kernel is at work."""

from datetime import datetime
from typing import Any

import aiohttp

from fullrank.api.meta import moment_of
from fullrank.planning.apps import Use

PATIENCE = aiohttp.ClientTimeout(total=5)
UNNOTICED = {"no_track_activity": "1"}  # or else our question would itself count as use


async def ask_jupyter(url: str, token: str) -> Use | None:
    """What it says, or None if it does not: then nobody knows, and nothing follows."""
    headers = {"Authorization": f"token {token}"}
    try:
        async with aiohttp.ClientSession(headers=headers, timeout=PATIENCE, raise_for_status=True) as session:
            status = await _get(session, f"{url}api/status")
            kernels = await _get(session, f"{url}api/kernels")
        busy = any(kernel.get("execution_state") == "busy" for kernel in kernels)
        return Use(_moment(status["last_activity"]), busy)
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, AttributeError, TypeError):
        return None


async def _get(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(url, params=UNNOTICED, allow_redirects=False) as answer:
        return await answer.json()


def _moment(text: str) -> datetime:
    found = moment_of(text)
    if found.tzinfo is None:
        raise ValueError(text)
    return found
