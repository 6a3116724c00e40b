"""Probes: asking a container again and again how it is, and saying so only when enough answers in a row agree."""

from collections.abc import Callable
from typing import Literal

import anyio

from fullrank.agent.handlers import Patient, perform
from fullrank.api.meta import Json

Health = Literal["startup", "liveness", "readiness"]


async def probe(
    wanted: Json, patient: Patient, *, settle: Callable[[bool], None], complain: Callable[[str], None]
) -> None:
    """Until it is cancelled: `settle` hears every verdict as it changes, `complain` every failure."""
    period, seconds = wanted.get("periodSeconds") or 10, wanted.get("timeoutSeconds") or 1
    thresholds = {True: wanted.get("successThreshold") or 1, False: wanted.get("failureThreshold") or 3}
    await anyio.sleep(wanted.get("initialDelaySeconds") or 0)
    verdict: bool | None = None
    in_a_row, last = 0, True
    while True:
        why = await perform(wanted, patient, seconds)
        if why:
            complain(why)
        fine = not why
        in_a_row = in_a_row + 1 if fine == last else 1
        last = fine
        if in_a_row >= thresholds[fine] and verdict is not fine:
            verdict = fine
            settle(fine)
        await anyio.sleep(period)


def probe_of(spec: Json, health: Health) -> Json | None:
    found: Json | None = spec.get(f"{health}Probe")
    return found
