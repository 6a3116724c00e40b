"""Real clients of a real server, which dies and comes back: what they saw can have happened, all of it.

A failure names its seed; `python -m tests.soak histories --seed N` repeats it.
"""

from pathlib import Path

import pytest

from tests.histories.checker import complaints
from tests.histories.living import alone, file_complaints, lived

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_history_without_accidents_is_linearizable(tmp_path: Path, seed: int) -> None:
    told = await lived(alone(tmp_path), seed, seconds=1.5)
    assert complaints(told.history) == []
    assert len(told.history.asked) > 100


@pytest.mark.parametrize("seed", [3, 4])
async def test_watchers_who_fall_behind_list_again_and_miss_nothing(tmp_path: Path, seed: int) -> None:
    told = await lived(alone(tmp_path, keep=60), seed, behind=True)
    assert complaints(told.history) == []


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("seed", "keep"), [(5, 10_000), (6, 200)])
async def test_no_answered_write_is_lost_when_the_server_is_killed(
    tmp_path: Path, seed: int, keep: int
) -> None:
    server = alone(tmp_path, keep)
    told = await lived(server, seed, kills=6, seconds=0.5)
    assert complaints(told.history) == []
    assert file_complaints(tmp_path) == []
    assert "Traceback" not in server.log
