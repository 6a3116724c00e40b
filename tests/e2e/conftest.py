"""A real home in a folder of its own, seen from outside: the program, kubectl, and the process table."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.house import House


@pytest.fixture
def house(tmp_path: Path, environments: Path) -> Iterator[House]:
    """A home that is not up yet; whatever was started in it is stopped afterwards."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    (home / "environments").symlink_to(environments)
    house = House(home)
    yield house
    house.fullrank("down", check=False)
