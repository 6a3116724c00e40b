"""Environments are really built here, by uv, from a package that each test writes itself: no index is asked."""

import fcntl
import os
import shutil
import sys
import zipfile
from pathlib import Path

import anyio
import pytest

from fullrank.images.entries import Recipe
from fullrank.images.environments import Environments, ImageFailed

pytestmark = pytest.mark.anyio

HELLO = Recipe(("hello==1.0",))


class Told(list[str]):
    async def __call__(self, line: str) -> None:
        self.append(line)


def write_wheel(folder: Path, name: str = "hello", version: str = "1.0") -> None:
    """The smallest package there is, with a command."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        f"{name}.py": f"def main():\n    print('{name} {version}')\n",
        f"{name}-{version}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{name}-{version}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}-{version}.dist-info/entry_points.txt": f"[console_scripts]\n{name} = {name}:main\n",
    }
    record = f"{name}-{version}.dist-info/RECORD"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
        wheel.writestr(record, "".join(f"{path},,\n" for path in [*files, record]))


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    write_wheel(tmp_path / "wheels")
    return tmp_path / "wheels"


@pytest.fixture
def environments(tmp_path: Path, wheels: Path) -> Environments:
    return at(tmp_path, wheels)


def at(home: Path, wheels: Path, *, gpu: bool = False) -> Environments:
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(home), "UV_CACHE_DIR": str(home / "cache"),
        "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels),
    }  # fmt: skip
    return Environments(home / "environments", environ=environ, gpu=gpu)


async def said_by(*command: str | Path) -> str:
    return (await anyio.run_process(command)).stdout.decode()


def left(home: Path) -> list[str]:
    folder = home / "environments"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


async def test_an_environment_is_built_and_its_commands_work(
    tmp_path: Path, environments: Environments
) -> None:
    told = Told()
    built = await environments.build(HELLO, told)
    assert left(tmp_path) == [built.name]
    assert await said_by(built / "bin" / "hello") == "hello 1.0\n"
    assert await said_by(built / "bin" / "python", "-c", "import hello; hello.main()") == "hello 1.0\n"
    assert [*built.rglob("hello.*.pyc")]
    assert told == [
        "resolved 1 package",
        "fetched 1 package, installing",
        "installed 1 package, compiling",
        *told[3:],
    ]


async def test_what_is_there_is_not_built_again(environments: Environments) -> None:
    first = await environments.build(HELLO, Told())
    told = Told()
    assert await environments.build(Recipe((" hello==1.0",)), told) == first
    assert told == []


async def test_an_environment_is_known_by_its_content(tmp_path: Path, wheels: Path) -> None:
    here = at(tmp_path, wheels)
    assert here.key(Recipe(("a", "b"))) == here.key(Recipe(("b", "a", "a")))
    other = [Recipe(("a",)), Recipe(("a", "b"), "3.99"), Recipe(("a==1", "b"))]
    assert len({here.key(recipe) for recipe in [Recipe(("a", "b")), *other]}) == 4


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is but one PyTorch")
async def test_a_machine_with_a_gpu_has_environments_of_its_own(tmp_path: Path, wheels: Path) -> None:
    assert at(tmp_path, wheels).key(HELLO) != at(tmp_path, wheels, gpu=True).key(HELLO)


async def test_many_who_ask_at_once_share_one_build(tmp_path: Path, environments: Environments) -> None:
    told = [Told() for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        for each in told:
            tasks.start_soon(environments.build, HELLO, each)
    assert len(left(tmp_path)) == 1
    assert {each.count("resolved 1 package") for each in told} == {1}


async def test_many_who_ask_at_once_share_one_failure(tmp_path: Path, environments: Environments) -> None:
    failures: list[str] = []

    async def ask() -> None:
        with pytest.raises(ImageFailed) as failure:
            await environments.build(Recipe(("hello==2.0",)), Told())
        failures.append(str(failure.value))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(ask)
    assert len(failures) == 5
    assert len(set(failures)) == 1
    assert left(tmp_path) == []


async def test_a_failed_build_says_why_and_leaves_nothing_and_may_be_tried_again(
    tmp_path: Path, wheels: Path, environments: Environments
) -> None:
    later = Recipe(("hello==2.0",))
    with pytest.raises(ImageFailed, match=r"(?s)the packages cannot be installed:.*hello==2\.0"):
        await environments.build(later, Told())
    assert left(tmp_path) == []
    write_wheel(wheels, version="2.0")
    built = await environments.build(later, Told())
    assert await said_by(built / "bin" / "hello") == "hello 2.0\n"


async def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path, environments: Environments) -> None:
    with pytest.raises(ImageFailed, match=r"(?s)no environment of Python 3\.99 can be made:.*3\.99"):
        await environments.build(Recipe((), "3.99"), Told())
    assert left(tmp_path) == []


async def test_a_cancelled_build_leaves_nothing(tmp_path: Path, environments: Environments) -> None:
    with anyio.CancelScope() as scope:

        async def give_up(_line: str) -> None:
            scope.cancel()

        await environments.build(HELLO, give_up)
    assert scope.cancelled_caught
    assert left(tmp_path) == []


async def test_who_waits_takes_over_when_the_builder_is_cancelled(
    tmp_path: Path, environments: Environments
) -> None:
    builder = anyio.CancelScope()

    async def give_up(_line: str) -> None:
        builder.cancel()

    async def build_until_cancelled() -> None:
        with builder:
            await environments.build(HELLO, give_up)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(build_until_cancelled)
        tasks.start_soon(environments.build, HELLO, Told())
    assert builder.cancelled_caught
    assert left(tmp_path) == [environments.key(HELLO)]


async def test_another_process_that_builds_is_waited_for(tmp_path: Path, environments: Environments) -> None:
    theirs = tmp_path / "environments" / f"{environments.key(HELLO)}.building"
    (theirs / "environment").mkdir(parents=True)
    lock = os.open(theirs, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    waiting = anyio.Event()

    async def notice(line: str) -> None:
        if "waiting for another process" in line:
            waiting.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(environments.build, HELLO, notice)
        await waiting.wait()
        assert left(tmp_path) == [theirs.name]
        shutil.rmtree(theirs)
        os.close(lock)
    assert left(tmp_path) == [environments.key(HELLO)]


async def test_what_a_killed_process_left_is_swept_away(tmp_path: Path, environments: Environments) -> None:
    half_made = tmp_path / "environments" / f"{environments.key(HELLO)}.building" / "environment" / "bin"
    half_made.mkdir(parents=True)
    (half_made / "python").symlink_to("/gone")
    built = await environments.build(HELLO, Told())
    assert left(tmp_path) == [built.name]


async def test_an_environment_whose_interpreter_is_gone_is_built_again(environments: Environments) -> None:
    built = await environments.build(HELLO, Told())
    (built / "bin" / "python").unlink()
    (built / "bin" / "python").symlink_to("/gone")
    assert await environments.build(HELLO, Told()) == built
    assert await said_by(built / "bin" / "hello") == "hello 1.0\n"


async def test_an_extra_index_that_lacks_a_package_does_no_harm(tmp_path: Path, wheels: Path) -> None:
    (tmp_path / "extra").mkdir()
    page = tmp_path / "simple" / "hello" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text(f"<a href='file://{wheels}/hello-1.0-py3-none-any.whl'>hello-1.0-py3-none-any.whl</a>")
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "UV_CACHE_DIR": str(tmp_path / "cache"),
        "PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": f"file://{tmp_path}/simple",
        "PIP_EXTRA_INDEX_URL": f"file://{tmp_path}/extra file:///gone/simple",
    }  # fmt: skip
    built = await Environments(tmp_path / "environments", environ=environ, gpu=False).build(HELLO, Told())
    assert await said_by(built / "bin" / "hello") == "hello 1.0\n"


async def test_a_place_where_nothing_can_be_written_is_a_failure_with_a_reason(
    tmp_path: Path, wheels: Path
) -> None:
    (tmp_path / "environments").write_text("not a folder")
    with pytest.raises(ImageFailed, match="the environment cannot be made in"):
        await at(tmp_path, wheels).build(HELLO, Told())
