"""Logs outlive their pods: beside them lies whose they were, so that they are found again by the name of the job."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt
from fullrank.api.meta import Json, controller_of, labels_of, name_of, namespace_of, uid_of

RECORD = "pod.json"


@dataclass(frozen=True, slots=True)
class KeptRun:
    """One run of one container, and where everything it wrote is."""

    pod: str
    pod_uid: str
    container: str
    number: int  # how often the container had been restarted in its pod
    file: Path  # to be read by PodLogReader.read_attempt: a long log has more files than this one

    @property
    def attempt(self) -> Attempt:
        return Attempt(self.pod_uid, self.container, self.number)


@dataclass(frozen=True, slots=True)
class KeptPod:
    name: str
    uid: str
    created: str
    labels: dict[str, str]
    owner_uid: str
    runs: tuple[KeptRun, ...]


def remember(pod: Json, places: Places) -> None:
    """Writes beside a pod's logs what they will be looked for by; once is enough."""
    file = places.logs(pod) / RECORD
    if file.exists():
        return
    owner = controller_of(pod) or {}
    record = {
        "name": name_of(pod),
        "namespace": namespace_of(pod),
        "uid": uid_of(pod),
        "created": pod["metadata"].get("creationTimestamp", ""),
        "labels": dict(labels_of(pod)),
        "owner": {word: owner.get(word, "") for word in ("kind", "name", "uid")},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".new")
    part.write_text(json.dumps(record), encoding="utf-8")
    part.rename(file)


def pods_of_job(home: Path, namespace: str, kind: str, name: str) -> list[KeptPod]:
    """The pods a job ever had whose logs are kept, the oldest first, whether or not they or the job still exist.

    A member that was replaced has several pods of one name, and a container that was restarted in its pod several runs:
    the attempts of a member are the runs of all its pods in this order.
    """
    found = [
        _kept(folder, record)
        for folder, record in _records(home / "logs" / namespace)
        if (record["owner"]["kind"], record["owner"]["name"]) == (kind, name)
    ]
    return sorted(found, key=lambda pod: (pod.created, pod.name))


def attempts_of(pods: list[KeptPod], name: str, container: str) -> list[KeptRun]:
    """Every attempt of one member, in order: the first is attempt 0."""
    return [run for pod in pods if pod.name == name for run in pod.runs if run.container == container]


def _records(folder: Path) -> Iterator[tuple[Path, Json]]:
    for file in folder.glob(f"*/{RECORD}"):
        try:
            yield file.parent, json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # half written when a disk was full: nobody can tell whose it was


def _kept(folder: Path, record: Json) -> KeptPod:
    runs = [
        KeptRun(record["name"], record["uid"], file.parent.name, int(file.stem), file)
        for file in folder.glob("*/*.log")
        if file.stem.isdecimal()
    ]
    return KeptPod(
        record["name"],
        record["uid"],
        record["created"],
        record["labels"],
        record["owner"]["uid"],
        tuple(sorted(runs, key=lambda run: (run.container, run.number))),
    )
