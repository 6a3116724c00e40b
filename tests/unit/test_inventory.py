"""What lies below `environments`: names, who has use for it, and what may go; and files of requirements."""

import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from fullrank.agent.in_use import folders_in_use
from fullrank.errors import BadRequest
from fullrank.images.catalogue import Images
from fullrank.images.entries import Recipe
from fullrank.images.environments import RECIPE
from fullrank.images.inventory import (
    environments,
    give_name,
    is_idle,
    layouts,
    packages_in,
    size_of,
    take_name,
)
from fullrank.images.requirements import requirements_in

pytestmark = pytest.mark.anyio


def images(home: Path) -> Images:
    return Images(home, environ={"PATH": "/bin"}, gpu=False)


def an_environment(
    home: Path, key: str, recipe: str = '{"python": "3.11", "requirements": ["a", "b"]}'
) -> Path:
    folder = home / "environments" / key
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys.executable)
    (folder / RECIPE).write_text(recipe)
    return folder


def test_an_environment_is_known_by_its_content_its_names_and_the_entries_that_lead_to_it(
    tmp_path: Path,
) -> None:
    known = images(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "mine.yaml").write_text(
        "images: [example/x:*]\nenvironment: {requirements: [x]}\n"
    )
    key = known.environments.key(Recipe(("x",)))
    for folder in (an_environment(tmp_path, key), an_environment(tmp_path, "other", "not JSON")):
        give_name(known.root, f"name-of-{folder.name}", folder)
    give_name(known.root, "second", known.root / key)
    (tmp_path / "environments" / "half.building").mkdir()
    found = {one.key: (one.names, len(one.entries), one.title) for one in environments(known)}
    assert found == {
        key: ((f"name-of-{key}", "second"), 1, "a and 1 more"),
        "other": (("name-of-other",), 0, "?"),
    }


def test_a_name_that_is_taken_away_leaves_what_it_meant(tmp_path: Path) -> None:
    known, folder = images(tmp_path), an_environment(tmp_path, "one")
    give_name(known.root, "a", folder)
    assert known.named("a") == folder
    assert take_name(known.root, "a")
    assert folder.is_dir()
    (known.root / "named" / "own").mkdir()
    assert not take_name(known.root, "own")


async def test_only_what_nobody_uses_and_nobody_asked_for_just_now_may_go(tmp_path: Path) -> None:
    known, folder = images(tmp_path), an_environment(tmp_path, "one")
    now = datetime.now(UTC)  # noqa: TID251  # files have the machine's time
    long_ago = (now - timedelta(hours=1)).timestamp()
    assert not is_idle(folder, (), now)
    os.utime(folder, (long_ago, long_ago))
    assert is_idle(folder, (), now)
    attempt = tmp_path / "pods" / "uid" / "main" / "0"
    attempt.mkdir(parents=True)
    (attempt / "launch.json").write_text(f'{{"folders": ["{folder}"]}}')
    assert folders_in_use(tmp_path) == {folder}
    assert not is_idle(folder, folders_in_use(tmp_path), now)
    (attempt / "exit.json").write_text("{}")
    assert folders_in_use(tmp_path) == set()
    assert not await known.environments.discard("one", lambda _: False)
    assert folder.is_dir()
    assert await known.environments.discard("one", lambda _: True)
    assert not await known.environments.discard("one", lambda _: True)
    assert [*known.root.iterdir()] == []


async def test_what_a_killed_builder_left_is_swept(tmp_path: Path) -> None:
    left = tmp_path / "environments" / "half.building"
    left.mkdir(parents=True)
    images(tmp_path).environments.sweep()
    assert not left.exists()


def test_what_is_installed_and_how_large_it_is(tmp_path: Path) -> None:
    folder = an_environment(tmp_path, "one")
    (folder / "lib/python3.11/site-packages/torch_geometric-2.6.1.dist-info").mkdir(parents=True)
    assert packages_in(folder) == [("torch_geometric", "2.6.1")]
    before = size_of(folder)
    (folder / "file").write_bytes(b"x" * 100)
    (folder / "again").hardlink_to(folder / "file")
    assert size_of(folder) == before + 100


def test_files_of_images_are_found_also_when_no_entry_has_them_any_more(tmp_path: Path) -> None:
    known = images(tmp_path)
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.py").write_text("one")
    (tmp_path / "images" / "a.yaml").write_text("images: [example/a:1]\nfiles: {/opt/a.py: a.py}\n")
    entry = known.find("example/a:1")
    assert entry is not None
    assert [folder.name for folder in layouts(known)] == []
    assert known.layout(entry).name == known.layout_name(entry)
    (tmp_path / "images" / "a.yaml").unlink()
    assert len(layouts(known)) == 1


def test_requirements_are_read_as_pip_reads_them(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "base.txt").write_text("./wheel\n")
    (tmp_path / "all.txt").write_text(
        "# all\ntorch==2.13.0  # the one\n\nnumpy \\\n  >=2\n-r more/base.txt\nx @ https://e.org/x.whl#sha256=1\n"
    )
    assert [*requirements_in(tmp_path / "all.txt")] == [
        "torch==2.13.0",
        "numpy >=2",
        str(tmp_path / "more" / "wheel"),
        "x @ https://e.org/x.whl#sha256=1",
    ]


WRONG = {
    "an option": ("six\n--index-url https://e.org\n", r"all\.txt:2: --index-url is not taken here"),
    "a file that is not there": ("-r none.txt\n", r"none\.txt: No such file"),
    "a file that includes itself": ("--requirement all.txt\n", "is included by itself"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_requirements_that_cannot_be_taken(tmp_path: Path, wrong: str) -> None:
    text, message = WRONG[wrong]
    (tmp_path / "all.txt").write_text(text)
    with pytest.raises(BadRequest, match=message):
        [*requirements_in(tmp_path / "all.txt")]
