"""A program may run as anybody: it sees the folders it is made of, and nothing else of the private ones above them."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fullrank.agent.processes import ProcessRuntime
from fullrank.agent.runtime import Attempt, Launch
from fullrank.clock import SystemClock

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(
        sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux: other users"
    ),
]

STRANGER = 54321


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(tmp_path / "home", SystemClock()) as runtime:
        yield runtime


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder closed to all but root, with an environment in it and a secret beside that."""
    private = tmp_path / "private"
    (private / "environments" / "one" / "bin").mkdir(parents=True)
    tool = private / "environments" / "one" / "bin" / "tool"
    tool.write_text("#!/bin/sh\necho works\n")
    tool.chmod(0o755)
    (private / "secret").write_text("token")
    private.chmod(0o700)
    return private


async def said(
    runtime: ProcessRuntime, home: Path, script: str, *folders: Path, user: int | None
) -> list[str]:
    launch = Launch(
        Attempt(f"uid-{user}", "main", 0),
        argv=("/bin/sh", "-c", script),
        env={"PATH": "/usr/bin:/bin"},
        log=home / f"{user}.log",
        hostname="pod-0",
        user=user,
        folders=folders,
    )
    await runtime.start(launch)
    await runtime.wait(launch.attempt)
    return [line.split(" ", 3)[3] for line in launch.log.read_text().splitlines()]


async def test_a_stranger_runs_what_lies_below_a_private_folder(
    runtime: ProcessRuntime, tmp_path: Path, private: Path
) -> None:
    environment = private / "environments" / "one"
    script = f"{environment}/bin/tool; ls {private}; ls {private}/environments; touch {environment}/x 2>&- || id -u"
    told = await said(runtime, tmp_path, script, environment, user=STRANGER)
    assert told[:3] == ["works", "environments", "one"]
    assert told[-1] == str(STRANGER)
    assert sorted(os.listdir(private)) == ["environments", "secret"]
    assert not (environment / "x").exists()


async def test_a_stranger_finds_it_behind_a_link_too(
    runtime: ProcessRuntime, tmp_path: Path, private: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(private / "environments")
    told = await said(
        runtime,
        tmp_path,
        f"{link}/one/bin/tool; cat {private}/secret 2>&- || echo no",
        link / "one",
        user=STRANGER,
    )
    assert told[0] == "works"
    assert told[-1] == "no"


async def test_root_sees_everything_as_it_is(runtime: ProcessRuntime, tmp_path: Path, private: Path) -> None:
    environment = private / "environments" / "one"
    told = await said(
        runtime, tmp_path, f"{environment}/bin/tool; cat {private}/secret", environment, user=None
    )
    assert told == ["works", "token"]
