"""A member that keeps failing waits longer and longer for its successor; one that nobody misses is not waited for."""

from typing import Any

import pytest

from fullrank.api.meta import Json
from fullrank.planning.pauses import pause
from tests.build import a_job
from tests.unit.stage import Stage, as_one


def a_stage(policy: str = "ExitCode", workers: int = 1, **spec: Any) -> Stage:
    stage = Stage(a_job("PyTorchJob", {"Worker": workers}, policy=policy, **spec))
    stage.settle()
    stage.run()
    stage.settle()
    return stage


def fail(stage: Stage, name: str = "demo-worker-0", *, after: float = 1) -> None:
    """The pod fails once it has run for that long, and what was told to go is gone."""
    stage.pass_time(after)
    stage.end(name, 137)
    stage.settle()
    stage.vanish()
    stage.settle()
    stage.run()
    stage.settle()


def waits(stage: Stage) -> float:
    """Seconds until the job wants to be looked at again; 0: its member was replaced at once."""
    wait = stage.decide()[0].wake_after
    return wait.total_seconds() if wait else 0


def rest(stage: Stage) -> None:
    stage.pass_time(waits(stage))
    stage.settle()
    stage.vanish()
    stage.settle()
    stage.run()
    stage.settle()


def test_a_pause_doubles_up_to_five_minutes() -> None:
    assert [pause(times).total_seconds() for times in range(1, 9)] == [0, 10, 20, 40, 80, 160, 300, 300]
    assert pause(10**9) == pause(8)


@pytest.mark.parametrize("scope", ["a member", "a gang"])
def test_who_keeps_failing_is_started_again_at_longer_and_longer_intervals(scope: str) -> None:
    job = a_job("PyTorchJob", {"Worker": 2}, policy="ExitCode")
    stage = Stage(as_one(job) if scope == "a gang" else job)
    stage.settle()
    stage.run()
    stage.settle()
    seen = []
    for _ in range(4):
        fail(stage)
        seen.append(waits(stage))
        if seen[-1]:
            assert stage.conditions.startswith("Progressing=False")
            assert stage.status["conditions"][0]["reason"] == "BackOff"
            assert "demo-worker-0" in stage.pods, "its log can still be read"
            rest(stage)
        assert stage.conditions == "Created Running"
        assert len(stage.pods) == 2
    assert seen == [0, 10, 20, 40]
    assert stage.status["restarts"] == 4
    told = [one for one in stage.told if "BackOff" in one]
    who = "the job" if scope == "a gang" else "pod demo-worker-0"
    text = f"Warning BackOff: {who} has failed 2 times soon after its start and is started again at "
    assert told[0] == text + "2026-01-01T12:00:12Z"


def test_every_member_has_a_count_of_its_own() -> None:
    stage = a_stage(workers=2)
    fail(stage)
    fail(stage, "demo-worker-1")
    assert waits(stage) == 0
    fail(stage)
    assert waits(stage) == 10


def started(stage: Stage, name: str, at: str) -> None:
    """What kubelet says of when the program began."""
    status: Json = stage.pods[name]["status"]
    stage.pods[name] = stage.pods[name] | {"status": status | {"startTime": at}}


def test_a_member_that_ran_for_long_begins_anew() -> None:
    stage = a_stage()
    fail(stage)
    fail(stage)
    rest(stage)
    started(stage, "demo-worker-0", "2026-01-01T12:00:12Z")
    stage.pass_time(3600)
    stage.end("demo-worker-0", 137)
    started(stage, "demo-worker-0", "2026-01-01T12:00:12Z")
    stage.settle()
    stage.vanish()
    stage.settle()
    assert stage.pods["demo-worker-0"]["status"]["phase"] == "Pending"


def test_who_deletes_the_failed_pod_asks_for_the_next_try_now() -> None:
    stage = a_stage()
    fail(stage)
    fail(stage)
    assert waits(stage) == 10
    stage.vanish("demo-worker-0")
    stage.settle()
    stage.run()
    stage.settle()
    assert stage.conditions == "Created Running"


def test_a_deadline_comes_before_a_longer_pause() -> None:
    stage = a_stage(run_policy={"activeDeadlineSeconds": 7})
    fail(stage)
    fail(stage)
    assert waits(stage) == 5
    stage.pass_time(5)
    stage.settle()
    assert stage.message == "Job demo has failed because it was active longer than specified deadline"
    assert "members" not in stage.status


def test_a_resumed_job_has_forgotten_its_pauses() -> None:
    stage = a_stage()
    fail(stage)
    fail(stage)
    for suspend in (True, False):
        stage.edit(runPolicy={"suspend": suspend})
        stage.settle()
        stage.vanish()
        stage.settle()
    assert stage.pods["demo-worker-0"]["status"]["phase"] == "Pending"
    assert "members" not in stage.status


def test_a_member_that_is_not_missed_is_not_waited_for() -> None:
    """A dynamic worker under Never: taken away, it does not come back, and the others are a whole gang without it."""
    job = a_job("TFJob", {"PS": 1, "Worker": 3}, policy="Never", enableDynamicWorker=True)
    stage = Stage(job)
    stage.settle()
    stage.run()
    stage.settle()
    stage.delete("demo-worker-1")
    stage.settle()
    stage.vanish()
    stage.settle()
    assert stage.conditions == "Created Running"
    assert "demo-worker-1" not in stage.pods
    assert stage.status["members"]["Worker"]["gone"] == "1"
    assert [f"{one.role}-{one.index}" for one in stage.scene().gang.due] == ["Worker-0", "Worker-2", "PS-0"]
    stage.end("demo-worker-0", 0)
    stage.settle()
    assert stage.conditions == "Created Running=False Succeeded"
    assert "members" not in stage.status
