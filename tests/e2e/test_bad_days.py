"""Days when things go wrong, as people who know kubelets expect to see them: real pods, the real kubectl."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.house import House


@pytest.fixture(scope="module")
def bad_days(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    home = tmp_path_factory.mktemp("bad-days") / "home"
    home.mkdir(mode=0o700)
    house = House(home)
    house.up()
    yield house
    house.fullrank("down", check=False)


class Cluster:
    """kubectl in a home, in a few verbs."""

    def __init__(self, house: House, kubectl: str) -> None:
        self._house = house
        self._kubectl = kubectl

    def run(self, *words: str, stdin: str | None = None, check: bool = True) -> str:
        done = self._house.run(self._kubectl, *words, stdin=stdin, check=check)
        return done.stdout + done.stderr

    def create(self, name: str, script: str, **spec: Any) -> None:
        container = {"name": "main", "image": "alpine:3", "command": ["sh", "-c", script]}
        container |= spec.pop("container", {})
        annotations = spec.pop("annotations", {})
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [container], **spec},
        }
        self.run("create", "-f", "-", stdin=json.dumps(pod))

    def pod(self, name: str) -> Any:
        return json.loads(self.run("get", "pod", name, "-o", "json"))

    def state(self, name: str) -> Any:
        statuses = self.pod(name)["status"].get("containerStatuses") or [{"state": {}, "restartCount": 0}]
        return statuses[0]["state"]

    def reason(self, name: str) -> str:
        """What `kubectl get pods` shows of it."""
        found = self.state(name)
        reason: str = next((state.get("reason", word) for word, state in found.items()), "")
        return reason

    def wait_for_reason(self, name: str, *reasons: str) -> None:
        self._house.wait_for(lambda: self.reason(name) in reasons)

    def events(self, name: str) -> str:
        return self.run("get", "events", "--field-selector", f"involvedObject.name={name}")


@pytest.fixture
def cluster(bad_days: House, kubectl: str) -> Cluster:
    return Cluster(bad_days, kubectl)


def test_a_command_that_does_not_exist(cluster: Cluster) -> None:
    cluster.create("typo", "", container={"command": ["trian.py"]})
    cluster.wait_for_reason("typo", "StartError")
    ended = cluster.state("typo")["terminated"]
    assert (ended["exitCode"], ended["message"]) == (
        128,
        'exec: "trian.py": executable file not found in $PATH',
    )
    assert "executable file not found" in cluster.events("typo")


def test_an_environment_that_cannot_be_had(cluster: Cluster) -> None:
    cluster.create("lost", "true", annotations={"fullrank.dev/environment": "nowhere"})
    cluster.wait_for_reason("lost", "ErrImagePull", "ImagePullBackOff")
    assert "there is no environment 'nowhere'" in cluster.state("lost")["waiting"]["message"]
    assert "fullrank env create nowhere" in cluster.events("lost")


def test_restarts_back_off_and_the_log_before_is_kept(cluster: Cluster) -> None:
    cluster.create("again", "echo try; exit 4", restartPolicy="OnFailure")
    cluster.wait_for_reason("again", "CrashLoopBackOff")
    pod = cluster.pod("again")["status"]["containerStatuses"][0]
    assert pod["restartCount"] == 1
    assert pod["lastState"]["terminated"]["exitCode"] == 4
    assert pod["state"]["waiting"]["message"].startswith("back-off 10s restarting failed container=main")
    assert cluster.run("logs", "again", "--previous") == "try\n"


def test_a_script_that_will_not_go_is_killed_when_its_grace_is_over(cluster: Cluster) -> None:
    cluster.create(
        "deaf", "trap '' TERM; echo up; while :; do sleep 0.1; done", terminationGracePeriodSeconds=1
    )
    cluster.wait_for_reason("deaf", "running")
    cluster.run("delete", "pod", "deaf", "--timeout=30s")
    assert "NotFound" in cluster.run("get", "pod", "deaf", check=False)


def test_a_volume_folder_that_somebody_deleted_is_made_again(cluster: Cluster, bad_days: House) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
    }
    cluster.run("create", "-f", "-", stdin=json.dumps(claim))
    cluster.create(
        "writer",
        "touch /data/mark; while [ -e /data/mark ]; do sleep 0.05; done; exit 1",
        restartPolicy="OnFailure",
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}],
        container={"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
    )
    folder = bad_days.home / "volumes" / "default" / "data"
    bad_days.wait_for((folder / "mark").exists)
    shutil.rmtree(folder)
    bad_days.wait_for(lambda: cluster.pod("writer")["status"]["containerStatuses"][0]["restartCount"] >= 1)
    bad_days.wait_for((folder / "mark").exists)
    cluster.run("delete", "pod", "writer", "--now")


def test_a_pod_over_its_memory_is_killed_and_says_so(cluster: Cluster) -> None:
    if not os.access("/sys/fs/cgroup", os.W_OK):
        pytest.skip("this machine lets us limit no memory")
    hungry = f"{sys.executable} -S -c 'x = bytearray(200 << 20)'"
    cluster.create("hog", hungry, container={"resources": {"limits": {"memory": "32Mi"}}})
    cluster.wait_for_reason("hog", "OOMKilled")
    assert cluster.state("hog")["terminated"]["exitCode"] == 137


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root: a small disk is mounted"
)
def test_a_full_disk_is_told_and_survived(tmp_path: Path, kubectl: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "small", str(tmp_path)], check=True)
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    house = House(home)
    try:
        house.up()
        cluster = Cluster(house, kubectl)
        cluster.create("steady", "echo begun; until [ -e /the-end ]; do sleep 0.1; done; exit 3")
        cluster.wait_for_reason("steady", "running")
        with (tmp_path / "filling").open("wb") as file:
            _fill(file.fileno())
        refused = cluster.run("run", "other", "--image=alpine:3", check=False)
        assert "the state file cannot be written: database or disk is full" in refused
        assert cluster.reason("steady") == "running"
        cluster.run("exec", "steady", "--", "touch", "/the-end")
        (tmp_path / "filling").unlink()
        cluster.wait_for_reason("steady", "Error")
        assert cluster.state("steady")["terminated"]["exitCode"] == 3
        assert cluster.run("logs", "steady").startswith("begun\n")
    finally:
        house.fullrank("down", check=False)
        subprocess.run(["umount", "-l", str(tmp_path)], check=True)


def _fill(file: int) -> None:
    try:
        while True:
            os.write(file, bytes(1 << 16))
    except OSError:
        return
