"""Logs of jobs that are gone: who is gone, and how long their logs stay."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from fullrank.agent.kept_logs import kept_pods, remember
from fullrank.agent.places import Places
from fullrank.agent.retention import Retention, forsaken
from fullrank.api.meta import Json
from fullrank.api.scheme import POD
from fullrank.client.port import Key
from tests.build import a_job
from tests.unit.world import KINDS, a_world

pytestmark = pytest.mark.anyio

ALL = tuple(KINDS.values())


def stranger(owner: str) -> Json:
    reference = {"kind": owner, "name": "x", "uid": "nobody", "controller": True}
    metadata = {"name": "p", "namespace": "kubeflow", "uid": f"of-{owner}", "ownerReferences": [reference]}
    return {"metadata": metadata, "spec": {"containers": []}}


async def test_logs_are_forsaken_when_neither_their_pod_nor_its_job_is_there_any_more(tmp_path: Path) -> None:
    async with a_world() as world:
        key = await world.submit(a_job("PyTorchJob", {"Worker": 2}))
        await world.until_pods("demo-worker-0", "demo-worker-1")
        for pod in (await world.client.select(POD, "kubeflow")).items:
            remember(pod, Places(tmp_path))
        await world.client.delete(Key(POD, "kubeflow", "demo-worker-0"), grace=0)
        remember(stranger("ReplicaSet"), Places(tmp_path))
        assert await forsaken(tmp_path, world.client, ALL) == []
        await world.client.delete(key, propagation="Foreground")
        await world.until_pods()
        gone = await forsaken(tmp_path, world.client, ALL)
        assert sorted(pod.name for pod in gone) == ["demo-worker-0", "demo-worker-1"]
        Places(tmp_path).pod(gone[0].uid).mkdir(parents=True)  # its container has not ended yet
        assert await forsaken(tmp_path, world.client, ALL) == [gone[1]]


async def test_logs_of_a_deleted_job_go_when_nothing_was_added_for_long_enough(tmp_path: Path) -> None:
    async with a_world() as world:
        for kind, age in (("PyTorchJob", 31), ("TFJob", 29)):
            pod = stranger(kind)
            remember(pod, Places(tmp_path))
            then = (world.clock.now() - timedelta(days=age)).timestamp()
            os.utime(Places(tmp_path).logs(pod) / "pod.json", (then, then))
        await Retention(tmp_path, world.client, ALL, world.clock, timedelta(days=30)).sweep()
        assert [pod.owner_kind for pod in kept_pods(tmp_path)] == ["TFJob"]
        world.clock.advance(2 * 86400)
        await Retention(tmp_path, world.client, ALL, world.clock, timedelta(days=30)).sweep()
        assert [*(tmp_path / "logs").iterdir()] == []
