import os
from pathlib import Path

import pytest

from fullrank.errors import Conflict
from fullrank.home import Running, announced, find_running, holder_of, locked

HERE = Running(pid=os.getpid(), version="1", api="https://127.0.0.1:1")


def test_a_home_has_one_control_plane_and_says_which(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert holder_of(tmp_path) == os.getpid()
        with (
            pytest.raises(Conflict, match=f"in use by the control plane with pid {os.getpid()}"),
            locked(tmp_path),
        ):
            pass
    assert holder_of(tmp_path) is None


def test_a_control_plane_is_found_while_it_is_up_and_not_after(tmp_path: Path) -> None:
    assert find_running(tmp_path) is None
    with locked(tmp_path):
        assert find_running(tmp_path) is None
        with announced(tmp_path, HERE):
            assert find_running(tmp_path) == HERE
        assert find_running(tmp_path) is None


def test_the_note_of_a_dead_one_does_not_count(tmp_path: Path) -> None:
    with locked(tmp_path), announced(tmp_path, HERE):
        left = (tmp_path / "server.json").read_bytes()
    (tmp_path / "server.json").write_bytes(left)
    assert find_running(tmp_path) is None


def test_nobody_else_can_look_into_a_home(tmp_path: Path) -> None:
    with locked(tmp_path / "home"):
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
