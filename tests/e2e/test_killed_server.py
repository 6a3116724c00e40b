"""The server is killed again and again while jobs of all sorts run: nothing is lost, and nothing happens twice.

A failure names its seed; `python -m tests.soak jobs --kills 5 --seed N` repeats it, and `make soak` goes on for longer.
"""

from pathlib import Path

import pytest

from tests.soak.jobs import COURSES, trained_through

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


async def test_jobs_end_as_they_ought_to_though_the_server_dies_at_random_moments(tmp_path: Path) -> None:
    assert await trained_through(tmp_path, jobs=len(COURSES), kills=5, seed=7) == []
