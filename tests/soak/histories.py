"""A server killed again and again in the middle of heavy writing: what was answered is there, all saw one history."""

import sys
import tempfile
from pathlib import Path

import anyio

from tests.histories.checker import complaints
from tests.histories.living import Told, alone, file_complaints, lived

KILLS = 10  # in the life of one home
KEEPS = (10_000, 150)  # history that is long, and history that is compacted all the time


def killed_while_writing(kills: int, first_seed: int) -> list[str]:
    """Complaints, each with the seed that leads to it again."""
    found: list[str] = []
    for seed in range(first_seed, first_seed + max(1, kills // KILLS)):
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            keep, home = KEEPS[seed % len(KEEPS)], Path(folder)
            server = alone(home, keep)
            told = anyio.run(_lived, home, seed, keep)
            problems = complaints(told.history) + file_complaints(home)
            problems += ["there is a traceback in the log"] if "Traceback" in server.log else []
        found += [f"seed {seed}: {problem}" for problem in problems]
        answered = sum(each.outcome == "ok" for each in told.history.asked)
        lost = sum(each.outcome == "unknown" for each in told.history.asked)
        sys.stdout.write(
            f"seed {seed}: {KILLS} kills, {answered} answers, {lost} questions without one, {told.gone} times 410, "
            f"slowest start {max(told.births):.2f} s, {len(problems)} complaints\n"
        )
        sys.stdout.flush()
    return found


async def _lived(home: Path, seed: int, keep: int) -> Told:
    return await lived(alone(home, keep), seed, kills=KILLS, seconds=1.0)
