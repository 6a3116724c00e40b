"""How the command line tells where the Job Center is, and to whom it shows the way in."""

import json
import os
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from fullrank.cli import fullrank
from fullrank.home import Running, announced, locked, login_link

TOKEN = "a-token"
HERE = Running(os.getpid(), "1", "https://127.0.0.1:1", "http://127.0.0.1:2")
LINK = f"http://127.0.0.1:2/login?token={TOKEN}"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with locked(tmp_path), announced(tmp_path, HERE):
        (tmp_path / "pki" / "token").write_text(f"{TOKEN}\n")
        yield tmp_path


def said(home: Path, *words: str) -> str:
    return CliRunner().invoke(fullrank, [*words, "--home", str(home)], catch_exceptions=False).output


def test_status_tells_the_address_and_keeps_the_token_to_itself(home: Path) -> None:
    assert json.loads(said(home, "status", "-o", "json"))["ui"] == HERE.ui
    text = said(home, "status")
    assert f"Job Center: {HERE.ui}" in text
    assert TOKEN not in text


def test_the_link_is_printed_when_asked_for_or_where_there_is_no_browser(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said(home, "open", "--print") == f"{LINK}\n"

    def nothing_there(_using: str | None = None) -> webbrowser.BaseBrowser:
        raise webbrowser.Error("no browser")

    monkeypatch.setattr(webbrowser, "get", nothing_there)
    assert said(home, "open") == f"{LINK}\n"
    assert not (home / "login.html").exists()


def test_a_browser_gets_the_link_in_a_file_that_only_its_owner_reads(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = tmp_path / "seen"
    monkeypatch.setattr(
        webbrowser, "get", lambda: webbrowser.GenericBrowser(["sh", "-c", f"echo $0 > {seen}", "%s"])
    )
    text = said(home, "open")
    assert (HERE.ui in text, TOKEN in text) == (True, False)
    assert seen.read_text().strip() == (home / "login.html").as_uri()
    assert (home / "login.html").stat().st_mode & 0o777 == 0o600
    assert f"url={LINK}" in (home / "login.html").read_text()


def test_a_server_for_all_addresses_is_opened_at_one(home: Path) -> None:
    everywhere = Running(1, "1", "https://0.0.0.0:1", "http://0.0.0.0:2")
    assert login_link(home, everywhere) == LINK
