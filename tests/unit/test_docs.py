"""Papers that say what the program does."""

import re
from pathlib import Path

from fullrank.cli import COMMANDS
from fullrank.settings import READERS

ROOT = Path(__file__).parents[2]


def test_every_setting_is_in_the_docs() -> None:
    text = (ROOT / "docs/settings.md").read_text()
    missing = [
        name for name in READERS if f"`FULLRANK_{name.upper()}`" not in text or f"`{name}`" not in text
    ]
    assert missing == []


def test_every_command_is_in_the_readme() -> None:
    text = (ROOT / "README.md").read_text()
    assert [name for name in COMMANDS if f"`{name}" not in text and f"`fullrank {name}" not in text] == []


def test_the_readme_shows_two_commands_by_line_20() -> None:
    head = (ROOT / "README.md").read_text().splitlines()[:20]
    assert [
        command for command in ("make run", "make test") if not any(command in line for line in head)
    ] == []


ITEMS = {"MXNet": 33, "MPI": 25, "Paddle": 19, "TensorFlow": 30, "PyTorch": 27}


def test_every_item_of_the_tutorials_has_its_row() -> None:
    text = (ROOT / "docs/tutorials.md").read_text()
    sections = {part.split("\n", 1)[0]: part for part in text.split("\n## ")[1:]}
    rows = {
        name: re.findall(r"^\| (\d+) \| .+ \| .+ \|$", part, re.MULTILINE) for name, part in sections.items()
    }
    assert rows == {name: [str(number) for number in range(1, count + 1)] for name, count in ITEMS.items()}


def test_every_test_that_the_tutorials_page_names_is_there() -> None:
    named = set(re.findall(r"`(test_\w+)`", (ROOT / "docs/tutorials.md").read_text()))
    written = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)", file.read_text())
    }
    assert sorted(named - written) == []
