from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def environments(pytestconfig: pytest.Config) -> Path:
    """Built environments, kept with pytest's cache from one run to the next: a gigabyte is not built for each test."""
    assert pytestconfig.cache is not None
    folder = pytestconfig.cache.mkdir("fullrank-home") / "environments"
    folder.mkdir(exist_ok=True)
    return folder
