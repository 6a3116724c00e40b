"""Environments by name, and a disk that is freed: beside a server, and without one."""

import json
import os
from pathlib import Path

import pytest

from tests.e2e.house import House
from tests.e2e.test_run import a_manifest

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def own(house: House) -> House:
    """With environments of its own: others' must not be pruned."""
    (house.home / "environments").unlink()
    return house


def grow_old(home: Path) -> None:
    """As if nobody had asked for anything for a day."""
    for folder in (*(home / "environments").iterdir(), *(home / "environments" / "files").glob("*")):
        os.utime(folder, (1, 1), follow_symlinks=False)


def pruned(house: House, *words: str) -> list[tuple[str, str]]:
    found = json.loads(house.fullrank("prune", "-o", "json", *words).stdout)
    return sorted((one["kind"], one["what"]) for one in found)


def test_a_job_runs_in_a_named_environment_and_what_it_uses_is_not_pruned(own: House, tmp_path: Path) -> None:
    own.fullrank("env", "create", "plain")
    (named,) = json.loads(own.fullrank("env", "list", "-o", "json").stdout)
    assert (named["name"], named["requirements"]) == ("plain", [])
    own.up()
    file = a_manifest(tmp_path, "command -v python; exec sleep 600")
    own.fullrank("run", file, "--runtime-env", "plain", "--detach")
    own.wait_for(
        lambda: own.fullrank("logs", "small", check=False).stdout.count(f"{named['path']}/bin/python") == 2
    )
    used = json.loads(own.wait_for(lambda: own.fullrank("top", "small", "-o", "json").stdout))
    assert [(row["job"], row["pod"], row["gpus"]) for row in used] == [
        ("small", "small-worker-0", None),
        ("small", "small-worker-1", None),
    ]
    assert own.fullrank("env", "delete", "plain").stdout == "environment plain deleted\n"
    grow_old(own.home)
    assert pruned(own, "--all", "-y") == []
    own.fullrank("down")
    grow_old(own.home)
    assert pruned(own, "--dry-run") == [], "an entry of the catalogue, python:3*, leads to it"
    assert pruned(own, "--all", "-y") == [("environment", "Python 3.11")]
    assert pruned(own, "--all", "-y") == []
    assert own.fullrank("logs", "small").stdout, "the job exists, and so do its logs"


def test_logs_of_a_deleted_job_stay_until_they_are_pruned(own: House, tmp_path: Path, kubectl: str) -> None:
    own.up()
    own.fullrank("run", a_manifest(tmp_path, "echo here"))
    assert pruned(own, "--dry-run") == []
    own.run(kubectl, "delete", "pytorchjob", "small", "--cascade=foreground")
    assert own.fullrank("logs", "small").stdout.splitlines() == ["worker-0 │ here", "worker-1 │ here"]
    assert pruned(own, "-y", "--older-than", "1h") == []
    assert pruned(own, "-y") == [("logs", "PyTorchJob small, deleted")] * 2
    done = own.fullrank("logs", "small", check=False)
    assert (done.returncode, "no logs of one are kept" in done.stderr) == (1, True)


def test_what_cannot_be_done_with_environments_is_told(own: House, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("no-such-package-at-all==1\n")
    file = a_manifest(tmp_path, "true")
    own.fullrank("env", "create", "taken")
    wrong = {
        ("env", "create", "../x"): (2, "is not a name"),
        ("env", "create", "x", "-r", str(tmp_path / "r.txt")): (1, "the packages cannot be installed"),
        ("env", "create", "taken", "--python", "3.1x"): (2, "is not a version"),
        ("env", "create", "taken", "-r", str(tmp_path / "r.txt")): (
            1,
            "exists with another content (Python 3.11)",
        ),
        ("env", "show", "x"): (1, "no environment 'x'; there are: taken"),
        ("images", "show", "example/none:1"): (1, "is not in the catalogue"),
        ("run", file, "--runtime-env", "x"): (2, "there is no environment 'x' (there are taken)"),
        ("prune",): (2, "this is no terminal to ask on"),
        ("prune", "--dry-run", "--older-than", "soon"): (2, "--older-than: must be a number"),
        ("top",): (3, "no control plane is up"),
    }
    for words, (code, message) in wrong.items():
        done = own.fullrank(*words, check=False, stdin="")
        assert (done.returncode, message in done.stderr) == (code, True), (words, done.stderr)
