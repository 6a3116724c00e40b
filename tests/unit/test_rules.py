"""The rules, a row each: what is seen of a job, and what is said and done about it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from fullrank.api.meta import Json, stamp
from fullrank.planning.plan import CreatePod, DeleteJob, DeletePod, DeleteService, Plan, StopPod
from fullrank.planning.rules import plan
from fullrank.planning.scene import Scene, scene_of
from tests.build import NOW, a_job, a_pod, kind_of, pods_of, services_of

STARTED = {
    "conditions": [
        {
            "type": "Created",
            "status": "True",
            "reason": "PyTorchJobCreated",
            "message": "PyTorchJob demo is created.",
            "lastTransitionTime": stamp(NOW - timedelta(minutes=1)),
            "lastUpdateTime": stamp(NOW - timedelta(minutes=1)),
        }
    ],
    "startTime": stamp(NOW - timedelta(minutes=1)),
}


def decided(job: Json, pods: list[Json], services: list[Json] | None = None) -> tuple[Scene, Plan, Json]:
    scene = scene_of(kind_of(job), job, pods, services_of(job) if services is None else services, NOW)
    decision = plan(scene)
    return scene, decision, decision.status(scene, job.get("status") or {})


def brief(status: Json) -> str:
    """`Created Running=False Succeeded`: the conditions in order."""
    return " ".join(
        one["type"] + ("" if one["status"] == "True" else "=False") for one in status.get("conditions", [])
    )


@dataclass
class Case:
    pods: dict[str, str]
    want: str
    policy: str = "OnFailure"
    roles: dict[str, int] = field(default_factory=lambda: {"Master": 1, "Worker": 2})
    run_policy: Json | None = None
    create: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    spec: dict[str, Any] = field(default_factory=dict)


ALL_RUN = {"master-0": "Running", "worker-0": "Running", "worker-1": "Running"}
CASES = {
    "a new job gets all its pods": Case({}, "Created", create=("Master/0", "Worker/0", "Worker/1")),
    "a job with a running master runs": Case(ALL_RUN, "Created Running"),
    "workers alone do not make a job with a master run": Case(ALL_RUN | {"master-0": "Pending"}, "Created"),
    "the master's success is the job's": Case(ALL_RUN | {"master-0": "Succeeded"}, "Created Succeeded"),
    "a worker's success alone is not": Case(ALL_RUN | {"worker-0": "Succeeded"}, "Created Running"),
    "without a master all workers must succeed": Case(
        {"worker-0": "Succeeded", "worker-1": "Succeeded"}, "Created Succeeded", roles={"Worker": 2}
    ),
    "one of two workers is not enough": Case(
        {"worker-0": "Succeeded", "worker-1": "Running"}, "Created Running", roles={"Worker": 2}
    ),
    "of an elastic job one worker is enough": Case(
        {"worker-0": "Running", "worker-1": "Succeeded"},
        "Created Succeeded",
        roles={"Worker": 2},
        spec={"elasticPolicy": {"minReplicas": 1}},
    ),
    "under Never a failure fails the job": Case(
        ALL_RUN | {"worker-1": "Failed 1"}, "Created Failed", policy="Never"
    ),
    "under OnFailure a failed pod is replaced": Case(
        ALL_RUN | {"worker-1": "Failed 1"}, "Created Restarting", delete=("demo-worker-1",)
    ),
    "exit 137 is forgiven under ExitCode": Case(
        ALL_RUN | {"worker-1": "Failed 137"},
        "Created Restarting",
        policy="ExitCode",
        delete=("demo-worker-1",),
    ),
    "exit 1 is not": Case(ALL_RUN | {"worker-1": "Failed 1"}, "Created Failed", policy="ExitCode"),
    "an evicted pod is forgiven under ExitCode": Case(
        ALL_RUN | {"worker-1": "Failed"}, "Created Restarting", policy="ExitCode", delete=("demo-worker-1",)
    ),
    "a lost pod is made again": Case(
        {"master-0": "Running", "worker-0": "Running"}, "Created Running", create=("Worker/1",)
    ),
    "a scaled-down member goes and fails nothing": Case(
        ALL_RUN,
        "Created Running",
        policy="Never",
        roles={"Master": 1, "Worker": 1},
        delete=("demo-worker-1",),
    ),
    "no replicas at all is a job that is done": Case({}, "Created Succeeded", roles={"Worker": 0}),
    "a role of no replicas gets no pod": Case(
        {"master-0": "Running"}, "Created Running", roles={"Master": 1, "Worker": 0}
    ),
    "a negative back-off limit fails the job before it starts": Case(
        {}, "Created Failed", run_policy={"backoffLimit": -1}
    ),
    "with a limit of zero the first failure is the last": Case(
        ALL_RUN | {"worker-1": "Failed 1"},
        "Created Failed",
        run_policy={"backoffLimit": 0},
        delete=("demo-master-0", "demo-worker-0", "demo-worker-1"),
    ),
    "a replacement within the limit is made": Case(
        ALL_RUN | {"worker-1": "Failed 1"},
        "Created Restarting",
        run_policy={"backoffLimit": 2},
        delete=("demo-worker-1",),
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_a_job_goes_on_as_its_pods_do(case: Case) -> None:
    job = a_job("PyTorchJob", case.roles, policy=case.policy, run_policy=case.run_policy, **case.spec)
    shown = a_job("PyTorchJob", {"Master": 1, "Worker": 2}) if "worker-1" in case.pods else job
    _, decision, status = decided(job, pods_of(shown, case.pods))
    assert brief(status) == case.want
    created = tuple(
        f"{one.member.role}/{one.member.index}" for one in decision.actions if isinstance(one, CreatePod)
    )
    assert created == case.create
    assert tuple(one.name for one in decision.actions if isinstance(one, DeletePod)) == case.delete


def test_a_settled_job_wants_nothing_more() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 2})
    _, _, status = decided(job, pods_of(job, ALL_RUN))
    _, decision, again = decided(job | {"status": status}, pods_of(job, ALL_RUN))
    assert again == status
    assert decision.actions == ()


def test_the_status_is_the_tutorials() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 1}, name="pytorch-simple", status=STARTED)
    running = {"master-0": "Running", "worker-0": "Running"}
    _, _, status = decided(job, pods_of(job, running))
    done = {"master-0": "Succeeded", "worker-0": "Succeeded"}
    _, _, status = decided(job | {"status": status}, pods_of(job, done))
    assert [(one["type"], one["status"], one["reason"], one["message"]) for one in status["conditions"]][
        1:
    ] == [
        ("Running", "False", "PyTorchJobRunning", "PyTorchJob pytorch-simple is running."),
        ("Succeeded", "True", "PyTorchJobSucceeded", "PyTorchJob pytorch-simple is successfully completed."),
    ]
    selector = "training.kubeflow.org/job-name=pytorch-simple,training.kubeflow.org/operator-name=pytorchjob-controller"
    assert status["replicaStatuses"] == {
        "Master": {"selector": f"{selector},training.kubeflow.org/replica-type=master", "succeeded": 1},
        "Worker": {"selector": f"{selector},training.kubeflow.org/replica-type=worker", "succeeded": 1},
    }
    assert status["completionTime"] == stamp(NOW)
    assert status["startTime"] == STARTED["startTime"]


def test_of_opposite_ends_the_first_decides() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 1}, policy="Never")
    earlier, later = NOW - timedelta(seconds=5), NOW - timedelta(seconds=1)
    won = [
        a_pod(job, "master-0", "Succeeded", ended=earlier),
        a_pod(job, "worker-0", "Failed 1", ended=later),
    ]
    lost = [
        a_pod(job, "master-0", "Succeeded", ended=later),
        a_pod(job, "worker-0", "Failed 1", ended=earlier),
    ]
    assert brief(decided(job, won)[2]) == "Created Succeeded"
    assert brief(decided(job, lost)[2]) == "Created Failed"


def test_a_deadline_has_a_timer_and_then_ends_the_job() -> None:
    early = a_job("PyTorchJob", {"Worker": 1}, run_policy={"activeDeadlineSeconds": 90}, status=STARTED)
    _, decision, status = decided(early, pods_of(early, {"worker-0": "Running"}))
    assert (brief(status), decision.wake_after) == ("Created Running", timedelta(seconds=30))
    late = a_job("PyTorchJob", {"Worker": 1}, run_policy={"activeDeadlineSeconds": 60}, status=STARTED)
    _, decision, status = decided(late, pods_of(late, {"worker-0": "Running"}))
    assert status["conditions"][-1]["message"] == (
        "Job demo has failed because it was active longer than specified deadline"
    )
    assert [type(one) for one in decision.actions] == [DeletePod, DeleteService]


def test_restarts_in_place_and_replacements_count_alike() -> None:
    job = a_job("PyTorchJob", {"Worker": 2}, run_policy={"backoffLimit": 2}, status=STARTED | {"restarts": 1})
    pods = [a_pod(job, "worker-0", "Running", restarts=1), a_pod(job, "worker-1", "Running")]
    assert decided(job, pods)[2]["conditions"][-1]["message"] == (
        "Job demo has failed because it has reached the specified backoff limit"
    )


def test_a_suspended_job_gives_everything_back_and_resumes_with_a_new_start() -> None:
    running = a_job("PyTorchJob", {"Worker": 1}, status=STARTED)
    _, _, status = decided(running, pods_of(running, {"worker-0": "Running"}))
    asleep = a_job("PyTorchJob", {"Worker": 1}, run_policy={"suspend": True}, status=status)
    _, decision, status = decided(asleep, pods_of(running, {"worker-0": "Running"}))
    assert brief(status) == "Created Running=False Suspended"
    assert status["startTime"] == STARTED["startTime"]
    assert [type(one) for one in decision.actions] == [DeletePod, DeleteService]
    awake = a_job("PyTorchJob", {"Worker": 1}, run_policy={"suspend": False}, status=status)
    _, decision, status = decided(awake, [], [])
    assert brief(status) == "Created Running=False Suspended=False"
    assert status["startTime"] == stamp(NOW)
    _, _, status = decided(awake | {"status": status}, pods_of(running, {"worker-0": "Running"}))
    assert brief(status) == "Created Suspended=False Running"


FINISHED = STARTED | {
    "conditions": [
        *STARTED["conditions"],
        {"type": "Succeeded", "status": "True", "reason": "PyTorchJobSucceeded"},
    ],
    "completionTime": stamp(NOW - timedelta(seconds=10)),
    "replicaStatuses": {"Master": {"succeeded": 1}, "Worker": {"active": 1, "succeeded": 1}},
}
CLEAN_UP: dict[str, tuple[Json | None, list[Any]]] = {
    "unsaid, what still runs is stopped and kept": (None, [StopPod("demo-worker-1", "uid-of-demo-worker-1")]),
    "None on purpose leaves everything": ({"cleanPodPolicy": "None"}, []),
    "Running takes what has not ended": (
        {"cleanPodPolicy": "Running"},
        [
            DeletePod("demo-worker-1", "uid-of-demo-worker-1"),
            DeleteService("demo-worker-1", "uid-of-service-demo-worker-1"),
        ],
    ),
    "after its time the job goes": ({"ttlSecondsAfterFinished": 5}, [DeleteJob()]),
}


@pytest.mark.parametrize(("policy", "want"), CLEAN_UP.values(), ids=CLEAN_UP.keys())
def test_a_finished_job_is_cleaned_up_as_it_says(policy: Json | None, want: list[Any]) -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 2}, run_policy=policy, status=FINISHED)
    pods = pods_of(job, {"master-0": "Succeeded", "worker-0": "Succeeded", "worker-1": "Running"})
    _, decision, status = decided(job, pods)
    assert list(decision.actions) == want
    assert brief(status) == "Created Succeeded"


def test_a_finished_job_counts_its_last_members_as_done_and_never_starts_anew() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 2}, status=FINISHED)
    _, decision, status = decided(job, [])
    assert decision.actions == ()
    assert status["replicaStatuses"]["Worker"]["succeeded"] == 2
    assert "active" not in status["replicaStatuses"]["Worker"]


def test_only_ends_that_are_news_are_announced() -> None:
    job = a_job("PyTorchJob", {"Master": 1, "Worker": 2})
    one_done = ALL_RUN | {"worker-0": "Succeeded"}
    _, decision, status = decided(job, pods_of(job, one_done))
    exits = [one.message for one in decision.announcements if one.reason == "ExitedWithCode"]
    assert exits == ["Pod: team.demo-worker-0 exited with code 0"]
    _, decision, _ = decided(job | {"status": status}, pods_of(job, one_done))
    assert decision.announcements == ()
