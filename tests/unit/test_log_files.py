"""Logs in several files, logs that outlive their pods, and logs of a disk that was full."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from fullrank.agent.kept_logs import attempts_of, pods_of_job, pods_of_last_job, remember
from fullrank.agent.logs import PodLogReader
from fullrank.agent.nursery.container_log import ContainerLog
from fullrank.agent.places import Places
from fullrank.api.meta import Json

pytestmark = pytest.mark.anyio


def a_pod(name: str = "train-worker-0", uid: str = "u1", *, created: str = "2026-01-01T00:00:00Z") -> Json:
    owner = {"kind": "PyTorchJob", "name": "train", "uid": "j1", "controller": True}
    status = {"name": "main", "restartCount": 0, "state": {"terminated": {}}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": uid,
            "creationTimestamp": created,
            "labels": {"role": "worker"},
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "main"}]},
        "status": {"containerStatuses": [status]},
    }


def write(home: Path, pod: Json, lines: range, *, number: int = 0, largest: int = 1 << 20) -> Path:
    path = Places(home).log(pod, "main", number)
    log = ContainerLog(str(path), largest)
    for line in lines:
        log.take("stdout", f"line {line}\n".encode())
    log.finish()
    log.close()
    return path


async def text_of(pieces: AsyncIterator[bytes]) -> list[int]:
    text = b"".join([piece async for piece in pieces])
    return [int(line.split()[1]) for line in text.splitlines()]


async def test_a_log_in_many_files_reads_as_one(tmp_path: Path) -> None:
    path = write(tmp_path, a_pod(), range(100), largest=200)
    assert len(list(path.parent.iterdir())) > 10
    reader = PodLogReader(tmp_path)
    assert await text_of(reader.read(a_pod(), "main")) == [*range(100)]
    for tail in (1, 3, 4, 5, 50, 99, 100, 1000):
        assert await text_of(reader.read(a_pod(), "main", tail_lines=tail)) == [*range(100)][-tail:]
    assert await text_of(reader.read(a_pod(), "main", tail_lines=0)) == []


async def test_who_does_not_follow_sees_what_there_was_when_he_asked(tmp_path: Path) -> None:
    write(tmp_path, a_pod(), range(3))
    pieces = PodLogReader(tmp_path).read(a_pod(), "main", tail_lines=1)
    assert await anext(pieces) == b"line 2\n"
    write(tmp_path, a_pod(), range(3, 5))
    assert await text_of(pieces) == []


async def test_who_follows_a_log_does_not_notice_that_files_change(tmp_path: Path) -> None:
    pod = a_pod()
    log = ContainerLog(str(Places(tmp_path).log(pod, "main", 0)), 100)
    folder = tmp_path / "pods" / "u1" / "main" / "0"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "alive")
    holder = os.open(folder / "alive", os.O_RDWR)
    seen: list[int] = []

    async def follow() -> None:
        async for piece in PodLogReader(tmp_path).read(pod, "main", follow=True):
            seen.extend(int(line.split()[1]) for line in piece.splitlines())

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            for number in range(30):
                log.take("stdout", f"line {number}\n".encode())
                await anyio.lowlevel.checkpoint()
            os.close(holder)
    log.close()
    assert seen == [*range(30)]


def test_what_a_full_disk_took_is_told_when_there_is_room(tmp_path: Path) -> None:
    log = ContainerLog(str(tmp_path / "log"))
    room, log._file = log._file, os.open("/dev/full", os.O_WRONLY)
    log.take("stdout", b"lost\n")
    log._file = room
    log.close()
    (told,) = (tmp_path / "log").read_text().splitlines()
    assert "bytes of this log were lost: the disk was full" in told


async def test_the_logs_of_a_job_are_found_when_its_pods_are_gone(tmp_path: Path) -> None:
    places = Places(tmp_path)
    first, second = a_pod(uid="u1"), a_pod(uid="u2", created="2026-01-01T00:01:00Z")
    other = a_pod(uid="u3")
    other["metadata"]["ownerReferences"][0]["name"] = "other"
    for pod in (second, first, other):
        remember(pod, places)
        write(tmp_path, pod, range(2))
    write(tmp_path, first, range(3), number=1)
    pods = pods_of_job(tmp_path, "default", "PyTorchJob", "train")
    assert [(pod.uid, pod.labels, pod.owner_uid) for pod in pods] == [
        ("u1", {"role": "worker"}, "j1"),
        ("u2", {"role": "worker"}, "j1"),
    ]
    attempts = attempts_of(pods, "train-worker-0")
    assert {number: [(run.pod_uid, run.number) for run in runs] for number, runs in attempts.items()} == {
        1: [("u1", 0)],
        2: [("u1", 1)],
        3: [("u2", 0)],
    }
    (again,) = attempts[2]
    assert await text_of(PodLogReader(tmp_path).read_attempt(again.file, again.attempt)) == [0, 1, 2]
    assert pods_of_job(tmp_path, "elsewhere", "PyTorchJob", "train") == []


async def test_a_job_that_restarts_as_one_counts_its_own_attempts(tmp_path: Path) -> None:
    """A member that never began in the first attempt begins in the second."""
    for uid, attempt, runs in (("u2", "2", 2), ("u3", "3", 1)):
        pod = a_pod(uid=uid, created=f"2026-01-01T00:0{attempt}:00Z")
        pod["metadata"]["labels"] = {"fullrank.dev/attempt": attempt}
        remember(pod, Places(tmp_path))
        for number in range(runs):
            write(tmp_path, pod, range(1), number=number)
    attempts = attempts_of(pods_of_job(tmp_path, "default", "PyTorchJob", "train"), "train-worker-0")
    assert {number: [run.number for run in runs] for number, runs in attempts.items()} == {2: [0, 1], 3: [0]}


async def test_a_name_that_was_used_again_means_the_last_job_that_had_it(tmp_path: Path) -> None:
    for uid, owner in (("u1", "j1"), ("u2", "j2")):
        pod = a_pod(uid=uid)
        pod["metadata"]["ownerReferences"][0]["uid"] = owner
        remember(pod, Places(tmp_path))
    assert [pod.uid for pod in pods_of_last_job(tmp_path, "default", "train")] == ["u2"]
    assert pods_of_last_job(tmp_path, "default", "nobody") == []
