"""Where things of a pod lie in the home: one place that knows, for those who write and those who read."""

from dataclasses import dataclass
from pathlib import Path

from fullrank.agent.runtime import Attempt
from fullrank.api.meta import Json, name_of, namespace_of, uid_of


@dataclass(frozen=True, slots=True)
class Places:
    home: Path

    @property
    def pods(self) -> Path:
        return self.home / "pods"

    def pod(self, uid: str) -> Path:
        return self.pods / uid

    def volumes(self, uid: str) -> Path:
        """Volumes that live and die with the pod; no container can be called so."""
        return self.pods / uid / ".volumes"

    def attempt(self, attempt: Attempt) -> Path:
        return self.pods / attempt.pod_uid / attempt.container / str(attempt.number)

    def message(self, attempt: Attempt) -> Path:
        """What the container says at its end, in the pod's own folder: an attempt's is made by the runtime."""
        return self.pods / attempt.pod_uid / ".messages" / f"{attempt.container}-{attempt.number}"

    def claim(self, namespace: str, name: str) -> Path:
        return self.home / "volumes" / namespace / name

    def names(self, namespace: str) -> Path:
        return self.home / "network" / namespace

    def own_names(self, uid: str) -> Path:
        return self.pods / uid / ".names"

    def logs(self, pod: Json) -> Path:
        return self.home / "logs" / namespace_of(pod) / f"{name_of(pod)}_{uid_of(pod)}"

    def log(self, pod: Json, container: str, number: int) -> Path:
        return self.logs(pod) / container / f"{number}.log"
