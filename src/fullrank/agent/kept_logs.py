"""Logs outlive their pods: beside them lies whose they were, so that they are found again by the name of the job.

An *attempt* of a member is one run of its program, counted from 1: a restart in place and a pod that replaces another
are the next one alike. In a job that restarts as one the job's own attempts count, as its pods are labelled.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt
from fullrank.api.annotations import ATTEMPT
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
    namespace: str
    name: str
    uid: str
    created: str
    labels: dict[str, str]
    owner_kind: str
    owner_name: str
    owner_uid: str
    containers: tuple[str, ...]  # that run together; those that run before them are not among them
    runs: tuple[KeptRun, ...]
    folder: Path

    def latest(self, container: str = "") -> list[KeptRun]:
        """The last run of each container, or of one; of those that run before the others only while these have not."""
        last = {run.container: run for run in self.runs}
        wanted = (container,) if container else self.containers
        return [last[name] for name in wanted if name in last] or ([] if container else list(last.values()))


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
        "containers": [container["name"] for container in pod["spec"]["containers"]],
        "owner": {word: owner.get(word, "") for word in ("kind", "name", "uid")},
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(".new")
    part.write_text(json.dumps(record), encoding="utf-8")
    part.rename(file)


def pods_of_job(home: Path, namespace: str, kind: str, name: str) -> list[KeptPod]:
    """The pods a job ever had whose logs are kept, the oldest first, whether or not they or the job still exist."""
    return [pod for pod in kept_pods(home, namespace) if (pod.owner_kind, pod.owner_name) == (kind, name)]


def pods_of_last_job(home: Path, namespace: str, name: str) -> list[KeptPod]:
    """The same of the job that last had a name, of whatever kind."""
    found = [pod for pod in kept_pods(home, namespace) if pod.owner_name == name]
    return [pod for pod in found if pod.owner_uid == found[-1].owner_uid]


def kept_pods(home: Path, namespace: str = "*") -> list[KeptPod]:
    """Every pod whose logs are kept, in one namespace or in all of them; the oldest first."""
    found = sorted(_records(home / "logs", namespace), key=lambda one: (one[1]["created"], one[2]))
    return [_kept(folder, record) for folder, record, _ in found]


def attempts_of(pods: Iterable[KeptPod], name: str) -> Mapping[int, list[KeptRun]]:
    """The attempts of one member, the first being 1; each with the runs of all its containers."""
    found = defaultdict[int, list[KeptRun]](list)
    before = 0
    for pod in pods:
        if pod.name != name or not pod.runs:
            continue
        labelled = pod.labels.get(ATTEMPT, "")
        for run in pod.runs:
            found[int(labelled) if labelled.isdecimal() else before + 1 + run.number].append(run)
        before = max(found)
    return found


def _records(logs: Path, namespace: str) -> Iterator[tuple[Path, Json, int]]:
    """Each with when it was written: two pods of one member may have been created in the same second."""
    for file in logs.glob(f"{namespace}/*/{RECORD}"):
        try:
            yield file.parent, json.loads(file.read_text(encoding="utf-8")), file.stat().st_mtime_ns
        except (OSError, ValueError):
            continue  # half written when a disk was full: nobody can tell whose it was


def _kept(folder: Path, record: Json) -> KeptPod:
    runs = [
        KeptRun(record["name"], record["uid"], file.parent.name, int(file.stem), file)
        for file in folder.glob("*/*.log")
        if file.stem.isdecimal()
    ]
    owner = record["owner"]
    return KeptPod(
        record["namespace"],
        record["name"],
        record["uid"],
        record["created"],
        record["labels"],
        owner["kind"],
        owner["name"],
        owner["uid"],
        tuple(record.get("containers", ())),
        tuple(sorted(runs, key=lambda run: (run.number, run.container))),
        folder,
    )
