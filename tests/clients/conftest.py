"""A home that is up, and the clients others wrote, each in an environment of its own, kept in pytest's cache."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.e2e.house import House

Python = Callable[..., str]


@pytest.fixture(scope="session")
def cache(pytestconfig: pytest.Config) -> Path:
    assert pytestconfig.cache is not None
    return pytestconfig.cache.mkdir("clients")


@pytest.fixture(scope="session")
def python_with(cache: Path) -> Python:
    """The path of an interpreter that has these packages."""

    def built(*packages: str) -> str:
        folder = cache / sha256("\n".join(packages).encode()).hexdigest()[:12]
        interpreter = folder / "bin" / "python"
        if not (folder / "complete").exists():
            _run_or_skip("uv", "venv", "--quiet", "--clear", str(folder))
            _run_or_skip("uv", "pip", "install", "--quiet", "--python", str(interpreter), *packages)
            (folder / "complete").touch()
        return str(interpreter)

    return built


@pytest.fixture(scope="session")
def node_modules(cache: Path) -> Path:
    """A folder in which Node finds the Kubernetes client."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = cache / "npm"
    if not (folder / "complete").exists():
        folder.mkdir(exist_ok=True)
        quiet = ("--silent", "--no-audit", "--no-fund")
        # Its second version wants Node 22, which few distributions have.
        _run_or_skip("npm", "install", *quiet, "--prefix", str(folder), "@kubernetes/client-node@^1")
        (folder / "complete").touch()
    return folder


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, environments: Path) -> Iterator[House]:
    home = tmp_path_factory.mktemp("clients") / "home"
    home.mkdir(mode=0o700)
    (home / "environments").symlink_to(environments)
    house = House(home)
    house.up()
    yield house
    house.fullrank("down", check=False)


def _run_or_skip(*words: str) -> None:
    found = shutil.which(words[0], path=str(Path(sys.executable).parent)) or shutil.which(words[0])
    if found is None:
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([found, *words[1:]], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(words[:3])} cannot get its packages: {done.stderr.strip()[-300:]}")
