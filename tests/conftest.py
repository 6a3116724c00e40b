import os
import shutil
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


@pytest.fixture(scope="session")
def kubectl() -> str:
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    found = shutil.which("kubectl", path=f"{assets}{os.pathsep}{os.environ['PATH']}" if assets else None)
    if found is None:
        pytest.skip("kubectl is not installed")
    return found
