"""What was answered is on disk: a writer is killed in the middle of its work, and nothing it was told is lost."""

import subprocess
import sys
from pathlib import Path

from fullrank.controlplane.store import Store

WRITER = """
import sys
import anyio
from fullrank.controlplane.store import Place, Store

async def write(store, writer):
    for number in range(10_000):
        name = f"{writer}-{number}"
        record = await store.put(Place("things", "", name), {"metadata": {"name": name}})
        sys.stdout.write(f"{record.revision} {name}\\n")
        sys.stdout.flush()

async def main():
    store = Store(sys.argv[1])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        for writer in range(20):
            tasks.start_soon(write, store, writer)

anyio.run(main)
"""


def test_no_answered_write_is_lost_when_the_writer_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    argv = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        answered = [writer.stdout.readline() for _ in range(300)]
        writer.kill()
        answered += [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    store = Store(path)
    held = {f"{record.revision} {place.name}\n" for place, record in store.select("things")}
    store.close()
    assert len(answered) >= 300
    assert set(answered) <= held
