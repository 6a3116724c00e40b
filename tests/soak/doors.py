"""Objects of all kinds with one thing wrong in them, thousands of them, sent every way there is: none is a 5xx."""

import sys
import tempfile
from pathlib import Path

import anyio

from tests.contract.hostile import house_with_a_door, mutations

ROUNDS = 3000


def assaulted(seed: int, rounds: int = ROUNDS) -> list[str]:
    found = anyio.run(_assaulted, seed, rounds)
    sys.stdout.write(f"seed {seed}: {rounds} wrong objects, {len(found)} complaints\n")
    return found


async def _assaulted(seed: int, rounds: int) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        async with house_with_a_door(Path(folder)) as door:
            return await mutations(door, seed, rounds)
