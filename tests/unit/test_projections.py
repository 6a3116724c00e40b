"""Folders made from objects: changed in one step, and laid out as programs that watch them expect."""

import os
from pathlib import Path

import pytest

from fullrank.agent.environment import Surroundings
from fullrank.agent.projections import File, files_of, project
from fullrank.agent.sources import Unprepared

AROUND = Surroundings("here", "127.0.0.1", "127.64.0.1", token="secret")


def shown(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("..")
    }


def test_a_folder_shows_its_files_through_one_link(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    project(folder, [File("a", b"1", 0o400), File("in/b", b"2", 0o644)])
    assert {path.name for path in folder.iterdir()} == {"..1", "..data", "a", "in"}
    assert os.readlink(folder / "a") == "..data/a"
    assert ((folder / "a").read_bytes(), (folder / "in/b").read_bytes()) == (b"1", b"2")
    assert (folder / "a").stat().st_mode & 0o777 == 0o400


def test_a_change_replaces_all_and_leaves_nothing_behind(tmp_path: Path) -> None:
    project(tmp_path, [File("a", b"1", 0o644), File("b", b"2", 0o644)])
    project(tmp_path, [File("a", b"3", 0o644), File("c", b"4", 0o644)])
    assert shown(tmp_path) == {"a": "3", "c": "4"}
    assert {path.name for path in tmp_path.iterdir()} == {"..2", "..data", "a", "c"}


def test_nothing_is_written_when_nothing_has_changed(tmp_path: Path) -> None:
    files = [File("a", b"1", 0o644)]
    project(tmp_path, files)
    before = (tmp_path / "a").stat().st_ino
    project(tmp_path, files)
    assert (tmp_path / "a").stat().st_ino == before


def test_what_a_crash_left_half_done_is_done_again(tmp_path: Path) -> None:
    project(tmp_path, [File("a", b"1", 0o644), File("b", b"2", 0o644)])
    (tmp_path / "b").unlink()
    project(tmp_path, [File("a", b"1", 0o644), File("b", b"2", 0o644)])
    assert shown(tmp_path) == {"a": "1", "b": "2"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_group_may_read_what_was_made_for_it(tmp_path: Path) -> None:
    project(tmp_path, [File("a", b"1", 0o400)], group=1001)
    status = (tmp_path / "a").stat()
    assert (status.st_gid, status.st_mode & 0o777) == (1001, 0o440)


def test_a_token_is_a_file_where_the_manifest_wants_it() -> None:
    sources = [{"serviceAccountToken": {"path": "vault/token", "audience": "vault"}}]
    volume = {"name": "t", "projected": {"sources": sources, "defaultMode": 0o600}}
    assert files_of({}, volume, {}, AROUND) == [File("vault/token", b"secret", 0o600)]


def test_no_file_lands_outside_its_volume() -> None:
    for path in ("../x", "/x", "..data", "a/../../x"):
        volume = {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"path": path}}]}}
        with pytest.raises(Unprepared, match="leads out of the volume"):
            files_of({}, volume, {}, AROUND)
