"""Whatever happens to a job, in whatever order, and however often its controller dies: what must hold all the same."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullrank.dialects.registry import JOB_KINDS
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.contract import Member
from fullrank.planning.pauses import LONGEST
from tests.build import a_job
from tests.unit.stage import Stage, as_one

ROLES: dict[str, tuple[dict[str, int], ...]] = {
    "PyTorchJob": ({"Master": 1, "Worker": 2}, {"Worker": 2}),
    "TFJob": ({"Chief": 1, "PS": 1, "Worker": 1}, {"Worker": 2}, {"PS": 2}),
    "MPIJob": ({"Launcher": 1, "Worker": 2},),
    "MXJob": ({"Scheduler": 1, "Server": 1, "Worker": 1}, {"Worker": 2}),
    "PaddleJob": ({"Worker": 2},),
    "XGBoostJob": ({"Master": 1, "Worker": 1},),
    "JAXJob": ({"Worker": 3},),
    "TensorFlowTrainingJob": ({"chief": 1, "worker": 2}, {"worker": 2}),
    "TensorFlowJob": ({"worker": 2},),
    "PyTorchTrainingJob": ({"node": 2}, {"ps": 1, "node": 2}),
    "XGBoostTrainingJob": ({"master": 1, "worker": 1},),
    "GenericJob": ({"a": 1, "b": 2},),
}
POLICIES = ("Always", "OnFailure", "Never", "ExitCode")
ENDS = {"succeed": 0, "fail": 1, "kill": 137}
EVENTS = (
    "run",
    "succeed",
    "fail",
    "kill",
    "evict",
    "delete",
    "vanish",
    "scale",
    "suspend",
    "wait",
    "die",
    "pass",
)


@st.composite
def stages(draw: st.DrawFn, kind: str) -> Stage:
    job_kind = next(one for one in JOB_KINDS if one.kind.kind == kind)
    limits: dict[str, int] = {}
    for name, values in (("backoffLimit", (0, 1, 3)), ("activeDeadlineSeconds", (5, 60))):
        if draw(st.booleans()) and not job_kind.framework.limits_by_role:
            limits[name] = draw(st.sampled_from(values))
    policy = draw(st.sampled_from(POLICIES if not job_kind.framework.limits_by_role else POLICIES[:3]))
    more: dict[str, Any] = {} if job_kind.framework.limits_by_role else {"run_policy": limits}
    job = a_job(kind, draw(st.sampled_from(ROLES[kind])), policy=policy, jobMode="MXTrain", **more)
    return Stage(as_one(job) if draw(st.booleans()) else job)


class Watcher:
    """Plays events and objects as soon as something has happened that must not."""

    def __init__(self, stage: Stage, data: st.DataObject) -> None:
        self.stage = stage
        self.data = data
        self.ended: frozenset[str] = frozenset()
        self.restarts = 0

    def play(self, event: str) -> None:
        stage = self.stage
        name = self.data.draw(st.sampled_from(sorted(stage.pods))) if stage.pods else ""
        if event in ENDS and name:
            stage.end(name, ENDS[event])
        elif event in ("evict", "delete") and name:
            getattr(stage, event)(name)
        elif event in ("run", "vanish"):
            getattr(stage, event)()
        elif event == "scale":
            self._scale(self.data.draw(st.integers(0, 3)))
        elif event == "suspend":
            self._suspend()
        elif event == "wait":
            stage.pass_time(self.data.draw(st.sampled_from((1, 6, 100))))
        else:
            self._look(self.data.draw(st.integers(0, 2)) if event == "die" else None)

    def _scale(self, size: int) -> None:
        field = self.stage.job_kind.framework.replicas_field
        written = self.stage.job["spec"][field]
        if self.stage.job_kind.dialect is TENSORSTACK:
            self.stage.edit(**{field: [*written[:-1], written[-1] | {"replicas": size}]})
        elif "Worker" in written:
            self.stage.edit(**{field: written | {"Worker": written["Worker"] | {"replicas": size}}})

    def _suspend(self) -> None:
        spec = self.stage.job["spec"]
        if self.stage.job_kind.dialect is TENSORSTACK:
            paused = (spec.get("runMode") or {"pause": {}})["pause"].get("enabled", False)
            self.stage.edit(runMode={"pause": {"enabled": not paused}})
        else:
            policy = spec.get("runPolicy") or {}
            self.stage.edit(runPolicy=policy | {"suspend": not policy.get("suspend", False)})

    def _look(self, dies_after: int | None) -> None:
        before, attempts = len(self.stage.made), self.stage.attempts()
        job = self.stage.job_kind.read(self.stage.job)
        wanted = {Member(role.name, index) for role in job.roles for index in range(role.replicas)}
        known = {Member(role, index) for role, all_of in job.status.started.items() for index in all_of}
        known |= {Member(role, index) for role, all_of in job.status.completed.items() for index in all_of}
        self.stage.one_pass(dies_after=dies_after)
        made = self.stage.made[before:]
        assert not (made and self.ended), "a finished job's pods come back"
        assert not set(made) & known & wanted, "a member that is done, or may run once, is started again"
        if made and job.restarts_as_one:
            assert attempts <= {str(job.attempt)}, "a member met one of an earlier attempt"
        self._check()

    def _check(self) -> None:
        ends = self.stage.states & {"Succeeded", "Failed"}
        assert len(ends) <= 1
        assert not self.ended or ends == self.ended, "a finished job changed its mind"
        self.ended = ends
        restarts = self.stage.job_kind.read(self.stage.job).status.restarts
        assert restarts >= self.restarts
        self.restarts = restarts
        assert not ends or "completionTime" in self.stage.status


@pytest.mark.parametrize("kind", ROLES)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_a_job_lives_a_proper_life(kind: str, data: st.DataObject) -> None:
    stage = data.draw(stages(kind))
    watcher = Watcher(stage, data)
    for event in data.draw(st.lists(st.sampled_from(EVENTS), max_size=25)):
        watcher.play(event)
    stage.settle()
    watcher._check()
    decision, status = stage.decide()
    assert (decision.actions, status) == ((), stage.status)


@pytest.mark.parametrize("kind", ROLES)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_a_job_whose_members_have_all_ended_is_over(kind: str, data: st.DataObject) -> None:
    """However they ended: nothing is left in Created, or running, for ever."""
    stage = data.draw(stages(kind))
    for _ in range(20):
        stage.settle()
        if not stage.pods or stage.states & {"Succeeded", "Failed"}:
            break
        for name in sorted(stage.pods):
            stage.run(name)
            stage.end(name, data.draw(st.sampled_from((0, 0, 1, 137))))
        stage.one_pass()
        stage.pass_time(LONGEST.total_seconds())  # those who keep failing wait no longer
        stage.one_pass()
        stage.vanish()
    else:
        stage.settle()  # the last round's successors are made, and end well
        for name in sorted(stage.pods):
            stage.run(name)
            stage.end(name, 0)
        stage.settle()
    if not stage.pods:
        return
    assert stage.states & {"Succeeded", "Failed"}, stage.status
