"""Papers that say what the program does."""

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
