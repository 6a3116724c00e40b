"""A stage on which a job is played without a controller: its plans are carried out, and pods do what they are told."""

from collections.abc import Iterable
from datetime import timedelta
from itertools import count

from fullrank.api.annotations import ATTEMPT, RESTART_SCOPE
from fullrank.api.meta import Json, labels_of, name_of, owner_reference, stamp, uid_of
from fullrank.frameworks.contract import Member, main_container
from fullrank.planning.desired import pod_for, service_for
from fullrank.planning.plan import (
    Action,
    CreatePod,
    CreateService,
    DeleteJob,
    DeletePod,
    DeleteService,
    Plan,
    StopPod,
)
from fullrank.planning.rules import plan
from fullrank.planning.scene import Scene, scene_of
from tests.build import NOW, kind_of


class Stage:
    """One job and what it has made. `passes` is a controller's work; everything else is what happens to the job."""

    def __init__(self, job: Json) -> None:
        self.job = job
        self.job_kind = kind_of(job)
        self.now = NOW
        self.pods: dict[str, Json] = {}
        self.services: dict[str, Json] = {}
        self.made: list[Member] = []
        self.told: list[str] = []
        self.gone = False
        self._numbers = count(1)

    # -- the controller --------------------------------------------------------------------------------------------

    def scene(self) -> Scene:
        return scene_of(self.job_kind, self.job, self.pods.values(), self.services.values(), self.now)

    def decide(self) -> tuple[Plan, Json]:
        scene = self.scene()
        decision = plan(scene)
        return decision, decision.status(scene, self.job.get("status") or {})

    def one_pass(self, *, dies_after: int | None = None) -> bool:
        """True if there was nothing to write and nothing to do. A controller may die after some of its deeds."""
        if self.gone:
            return True
        decision, status = self.decide()
        quiet = status == (self.job.get("status") or {}) and decision.actions == ()
        if status != (self.job.get("status") or {}):
            self.job = self.job | {"status": status}
            self.told += [f"{one.type} {one.reason}: {one.message}" for one in decision.announcements]
        self.act(decision.actions[:dies_after])
        return quiet

    def settle(self, most: int = 30) -> int:
        """Passes until one changes nothing; how many it took."""
        for number in range(most):
            if self.one_pass():
                return number
        raise AssertionError(f"not settled after {most} passes: {self.decide()}")

    def act(self, actions: Iterable[Action]) -> None:
        gang, owner = self.scene().gang, owner_reference(self.job)
        for action in actions:
            match action:
                case CreatePod(member):
                    pod = pod_for(self.job_kind, gang, member, owner)
                    assert name_of(pod) not in self.pods, f"{name_of(pod)} was made twice"
                    pod["metadata"]["uid"] = f"uid-{next(self._numbers)}"
                    self.pods[name_of(pod)] = pod | {"status": {"phase": "Pending"}}
                    self.made.append(member)
                case CreateService(member):
                    service = service_for(self.job_kind, gang, member, owner)
                    assert name_of(service) not in self.services, f"{name_of(service)} was made twice"
                    service["metadata"]["uid"] = f"uid-{next(self._numbers)}"
                    self.services[name_of(service)] = service
                case DeletePod(name, uid):
                    if name in self.pods and uid_of(self.pods[name]) == uid:
                        self.delete(name)
                case DeleteService(name, uid):
                    assert uid_of(self.services[name]) == uid
                    del self.services[name]
                case StopPod(name, _):
                    self.end(name, 143)
                case DeleteJob():
                    self.gone = True

    # -- what happens to it ----------------------------------------------------------------------------------------

    def run(self, *names: str) -> None:
        for name in names or self.pods:
            if self.pods[name]["status"]["phase"] == "Pending":
                self._container(name, "Running", {"running": {}})

    def end(self, name: str, code: int) -> None:
        """A pod's main program ends; those that have ended already stay as they are."""
        if self.pods[name]["status"]["phase"] in ("Pending", "Running"):
            ended = {"terminated": {"exitCode": code, "finishedAt": stamp(self.now)}}
            self._container(name, "Succeeded" if code == 0 else "Failed", ended)

    def evict(self, name: str) -> None:
        if self.pods[name]["status"]["phase"] in ("Pending", "Running"):
            self._change(name, status={"phase": "Failed", "reason": "Evicted"})

    def delete(self, name: str) -> None:
        """Pods that have not been started go at once; others take their time."""
        if self.pods[name]["status"]["phase"] == "Pending":
            self.vanish(name)
        elif "deletionTimestamp" not in self.pods[name]["metadata"]:
            metadata = self.pods[name]["metadata"] | {"deletionTimestamp": stamp(self.now)}
            self._change(name, metadata=metadata)

    def vanish(self, *names: str) -> None:
        """The named pods, or all that were told to go, are gone."""
        leaving = [name for name, pod in self.pods.items() if "deletionTimestamp" in pod["metadata"]]
        for name in names or leaving:
            del self.pods[name]

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def edit(self, **spec: object) -> None:
        self.job = self.job | {"spec": self.job["spec"] | spec}

    def _container(self, name: str, phase: str, state: Json) -> None:
        container = main_container(self.pods[name], self.job_kind.framework)["name"]
        listed = [{"name": container, "restartCount": 0, "state": state}]
        self._change(name, status={"phase": phase, "containerStatuses": listed})

    def _change(self, name: str, **fields: Json) -> None:
        self.pods[name] = self.pods[name] | fields

    # -- what there is to see --------------------------------------------------------------------------------------

    @property
    def status(self) -> Json:
        found: Json = self.job.get("status") or {}
        return found

    @property
    def states(self) -> frozenset[str]:
        return frozenset(self.job_kind.read(self.job).status.states)

    @property
    def conditions(self) -> str:
        """`Created Running=False Succeeded`: in order."""
        listed = self.status.get("conditions") or []
        return " ".join(one["type"] + ("" if one["status"] == "True" else "=False") for one in listed)

    @property
    def message(self) -> str:
        text: str = self.status["conditions"][-1]["message"]
        return text

    def attempts(self) -> set[str]:
        return {labels_of(pod).get(ATTEMPT, "") for pod in self.pods.values()}


def as_one(job: Json) -> Json:
    """The job, with all its members restarted together."""
    return job | {"metadata": job["metadata"] | {"annotations": {RESTART_SCOPE: "gang"}}}
