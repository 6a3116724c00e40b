"""A job's life, a row each: what upstream's own tests ask for, what was seen of it, and where our answer is another."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from fullrank.api.meta import Json
from tests.build import a_job
from tests.unit.stage import Stage, as_one


def play(stage: Stage, script: str) -> Stage:
    """Words in order: `run`, `worker-0:exit=1`, `worker-1:delete`, `vanish`, `wait=5`, each followed by passes."""
    stage.settle()
    for step in script.split():
        who, _, what = step.rpartition(":")
        deed, _, value = what.partition("=")
        if deed in ("suspend", "resume", "workers", "wait"):
            change(stage, deed, value)
        else:
            befall(stage, deed, value, [f"demo-{one}" for one in who.split(",")] if who else [])
        stage.settle()
    return stage


def befall(stage: Stage, deed: str, value: str, names: list[str]) -> None:
    if deed in ("run", "vanish"):
        getattr(stage, deed)(*names)
    for name in names:
        if deed == "exit":
            stage.end(name, int(value))
        elif deed in ("evict", "delete"):
            getattr(stage, deed)(name)


def change(stage: Stage, deed: str, value: str) -> None:
    if deed == "wait":
        stage.pass_time(float(value))
    elif deed == "workers":
        field_name = stage.job_kind.framework.replicas_field
        roles = stage.job["spec"][field_name]
        stage.edit(**{field_name: roles | {"Worker": roles["Worker"] | {"replicas": int(value)}}})
    else:
        policy = stage.job["spec"].get("runPolicy") or {}
        stage.edit(runPolicy=policy | {"suspend": deed == "suspend"})


@dataclass
class Case:
    kind: str
    roles: dict[str, int]
    script: str
    want: str
    counts: dict[str, Json] = field(default_factory=dict)
    policy: str = ""
    spec: dict[str, Any] = field(default_factory=dict)
    message: str = ""


CHIEF: dict[str, int] = {"Chief": 1, "PS": 2, "Worker": 4}
WORKERS: dict[str, int] = {"Worker": 4}
ALL = {"successPolicy": "AllWorkers"}
DONE, LOST = "Created Running=False Succeeded", "Created Running=False Failed"
TF_FAILED = "TFJob team/demo has failed because {} replica(s) failed."

# The names are those of upstream's status_test.go.
STATUS = {
    "Chief worker is succeeded": Case("TFJob", CHIEF, "run chief-0:exit=0", DONE),
    "Chief worker is running": Case("TFJob", CHIEF, "run", "Created Running"),
    "Chief worker is failed": Case("TFJob", CHIEF, "run chief-0:exit=1", LOST, message=TF_FAILED.format("1 Chief")),
    "(No chief worker) Worker is failed": Case(
        "TFJob", {"Worker": 1}, "run worker-0:exit=1", LOST, message=TF_FAILED.format("1 Worker")
    ),
    "(No chief worker) Worker is succeeded": Case("TFJob", {"Worker": 1}, "run worker-0:exit=0", DONE),
    "(No chief worker) Worker is running": Case("TFJob", {"Worker": 1}, "run", "Created Running"),
    "(No chief worker) 2 workers are succeeded, 2 workers are active": Case(
        "TFJob", WORKERS, "run worker-2,worker-3:exit=0", "Created Running", {"Worker": {"active": 2, "succeeded": 2}}
    ),
    # Two failures of one moment would be counted together; here they come one by one, and the first ends the job.
    "(No chief worker) 2 workers are running, 2 workers are failed": Case(
        "TFJob", WORKERS, "run worker-2:exit=1", LOST, message=TF_FAILED.format("1 Worker")
    ),
    "(No chief worker) 2 workers are succeeded, 2 workers are failed": Case(
        "TFJob", WORKERS, "run worker-1,worker-2:exit=0 worker-3:exit=1", LOST
    ),
    "(No chief worker) worker-0 are succeeded, 3 workers are active": Case(
        "TFJob", WORKERS, "run worker-0:exit=0", DONE, {"Worker": {"succeeded": 4}}
    ),
    "(No chief worker, successPolicy: AllWorkers) worker-0 are succeeded, 3 workers are active": Case(
        "TFJob", WORKERS, "run worker-0:exit=0", "Created Running", {"Worker": {"active": 3, "succeeded": 1}}, spec=ALL
    ),
    "(No chief worker, successPolicy: AllWorkers) 4 workers are succeeded": Case(
        "TFJob", WORKERS, "run worker-0,worker-1,worker-2,worker-3:exit=0", DONE, {"Worker": {"succeeded": 4}}, spec=ALL
    ),
    "(No chief worker, successPolicy: AllWorkers) worker-0 is succeeded, 2 are running, 1 is failed": Case(
        "TFJob", WORKERS, "run worker-0:exit=0 worker-3:exit=1", LOST, spec=ALL
    ),
    # Upstream asks only that Running is among the conditions, which Failed then ends.
    "Chief is running, workers are failed": Case("TFJob", CHIEF, "run worker-0:exit=1", LOST),
    "Chief is running, workers are succeeded": Case(
        "TFJob", CHIEF, "run worker-0,worker-1,worker-2,worker-3:exit=0", "Created Running"
    ),
    "Chief is running, a PS is failed": Case(
        "TFJob", CHIEF, "run ps-1:exit=1", LOST, message=TF_FAILED.format("1 PS")
    ),
    "Chief is failed, workers are succeeded": Case(
        "TFJob", CHIEF, "run worker-0,worker-1,worker-2,worker-3:exit=0 chief-0:exit=1", LOST
    ),
    "Chief is succeeded, workers are failed": Case("TFJob", CHIEF, "run chief-0:exit=0 worker-1:exit=1", DONE),
    "Chief is failed and restarting": Case(
        "TFJob", CHIEF, "run chief-0:exit=130", "Created Restarting", policy="ExitCode",
        message="job demo is restarting because Chief replica(s) failed.",
    ),
}  # fmt: skip


def run_of(case: Case) -> Stage:
    return play(Stage(a_job(case.kind, case.roles, policy=case.policy, **case.spec)), case.script)


@pytest.mark.parametrize("case", STATUS.values(), ids=STATUS.keys())
def test_upstreams_status_cases(case: Case) -> None:
    stage = run_of(case)
    assert stage.conditions == case.want
    assert not case.message or stage.message == case.message
    for role, counts in case.counts.items():
        assert stage.status["replicaStatuses"][role] == counts


M1W2 = {"Master": 1, "Worker": 2}
ROLES = {
    "PyTorchJob": M1W2, "PaddleJob": M1W2, "XGBoostJob": M1W2, "TFJob": {"Chief": 1, "PS": 1, "Worker": 2},
    "MXJob": {"Scheduler": 1, "Server": 1, "Worker": 2}, "MPIJob": {"Launcher": 1, "Worker": 2},
}  # fmt: skip
MAIN = {"TFJob": "chief-0", "MXJob": "scheduler-0", "MPIJob": "launcher"}
MODE: dict[str, Any] = {"jobMode": "MXTrain"}
EVERY = pytest.mark.parametrize("kind", ROLES)


def a_stage(kind: str, policy: str = "", **run_policy: Any) -> Stage:
    return Stage(a_job(kind, ROLES[kind], policy=policy, run_policy=run_policy, **MODE))


def main_of(kind: str) -> str:
    return MAIN.get(kind, "master-0")


@EVERY
def test_f1_main_exits_0_while_workers_run(kind: str) -> None:
    stage = play(a_stage(kind, cleanPodPolicy="None"), f"run {main_of(kind)}:exit=0")
    assert stage.conditions == DONE
    assert len(stage.pods) == sum(ROLES[kind].values())
    # An MPIJob counts nobody beside the launcher that has ended.
    assert stage.status["replicaStatuses"]["Worker"].get("succeeded", 0) == (0 if kind == "MPIJob" else 2)
    assert "completionTime" in stage.status


@EVERY
def test_f1_all_others_exit_0_then_main(kind: str) -> None:
    stage = play(a_stage(kind), "run worker-0,worker-1:exit=0")
    assert stage.conditions == "Created Running"
    assert play(stage, f"{main_of(kind)}:exit=0").conditions == DONE


ENDS = {
    "W2, worker-1 exits 0: PyTorch goes on": Case(
        "PyTorchJob", {"Worker": 2}, "run worker-1:exit=0", "Created Running"
    ),
    "and succeeds with the second": Case("PyTorchJob", {"Worker": 2}, "run worker-1:exit=0 worker-0:exit=0", DONE),
    "W2, worker-0 exits 0 first: TensorFlow succeeds": Case("TFJob", {"Worker": 2}, "run worker-0:exit=0", DONE),
    # v1 leaves these two in Created for ever; they end when all members have.
    "MX without a scheduler ends": Case("MXJob", {"Worker": 2}, "run worker-0:exit=0 worker-1:exit=0", DONE),
    "TF with servers only ends": Case("TFJob", {"PS": 1}, "run ps-0:exit=0", DONE),
    "a dynamic worker's failure is not the job's": Case(
        "TFJob", {"PS": 1, "Worker": 3}, "run worker-1:exit=1", "Created Running",
        {"Worker": {"active": 2, "failed": 1}}, spec={"enableDynamicWorker": True},
    ),
    "a server's is": Case(
        "TFJob", {"PS": 1, "Worker": 3}, "run ps-0:exit=1", LOST, spec={"enableDynamicWorker": True},
    ),
    "an evaluator that ends well is nothing": Case(
        "TFJob", {"Chief": 1, "Evaluator": 1}, "run evaluator-0:exit=0", "Created Running"
    ),
    "one that does not fails the job": Case("TFJob", {"Chief": 1, "Evaluator": 1}, "run evaluator-0:exit=1", LOST),
    "of an elastic job one worker is enough": Case(
        "PyTorchJob", {"Worker": 2}, "run worker-1:exit=0", DONE, spec={"elasticPolicy": {"maxReplicas": 3}},
        message="PyTorchJob team/demo successfully completed.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDS.values(), ids=ENDS.keys())
def test_f1_ends(case: Case) -> None:
    test_upstreams_status_cases(case)


# v1 fails XGBoost, MXNet and MPI jobs here, or leaves them stuck: a restart policy means the same to every kind.
@EVERY
@pytest.mark.parametrize("policy", ["OnFailure", "Always", "ExitCode"])
def test_f2_a_failure_that_is_forgiven(kind: str, policy: str) -> None:
    code = 137 if policy == "ExitCode" else 1
    stage = play(a_stage(kind, policy), f"run worker-1:exit={code} vanish run")
    assert stage.conditions == "Created Running"
    assert stage.status["restarts"] == 1
    assert [member.index for member in stage.made if member.role == "Worker"] == [0, 1, 1]


@EVERY
@pytest.mark.parametrize(("policy", "code"), [("Never", 1), ("Never", 137), ("ExitCode", 1)])
def test_f2_a_failure_that_is_not(kind: str, policy: str, code: int) -> None:
    stage = play(a_stage(kind, policy, cleanPodPolicy="None"), f"run worker-1:exit={code}")
    assert stage.conditions == LOST
    assert "completionTime" in stage.status  # v1 forgets it under ExitCode, and then the job's time to live
    assert stage.status["conditions"][-1]["reason"] == f"{kind}Failed"
    assert len(stage.pods) == sum(ROLES[kind].values())


def test_f2_what_exit_code_says() -> None:
    stage = play(a_stage("PyTorchJob", "ExitCode"), "run worker-1:exit=1")
    assert stage.message == 'job "demo" is failing because "Worker" replica(s) failed.'


@EVERY
def test_f2_an_evicted_pod_is_remade(kind: str) -> None:
    stage = play(a_stage(kind, "ExitCode"), "run worker-1:evict vanish run")
    assert stage.conditions == "Created Running"


LIMITS: dict[str, tuple[int, int, str]] = {
    "limit 0: the first failure is the last": (0, 1, LOST),
    "limit 1: one replacement": (1, 1, "Created Running"),
    "limit 1: not two, where v1 goes on for ever": (1, 2, LOST),
    "limit 3: three": (3, 3, "Created Running"),
}


@pytest.mark.parametrize(("limit", "failures", "want"), LIMITS.values(), ids=LIMITS.keys())
@EVERY
def test_f3_back_off(kind: str, limit: int, failures: int, want: str) -> None:
    script = "run " + "worker-0:exit=137 wait=300 vanish run " * (failures - 1) + "worker-0:exit=137"
    stage = play(a_stage(kind, "ExitCode", backoffLimit=limit), script)
    if want == LOST:
        assert stage.message == "Job demo has failed because it has reached the specified backoff limit"
        stage.vanish()
        stage.settle()
        assert (stage.pods, stage.services) == ({}, {})
        assert "active" not in stage.status["replicaStatuses"]["Worker"]
    else:
        assert play(stage, "wait=300 vanish run").conditions == want


def test_f3_a_failure_is_counted_once_however_often_the_controller_dies() -> None:
    stage = play(a_stage("PyTorchJob", "OnFailure", backoffLimit=1), "run")
    stage.end("demo-worker-0", 1)
    for _ in range(3):
        stage.one_pass(dies_after=0)
    assert play(stage, "vanish run").conditions == "Created Running"
    assert stage.status["restarts"] == 1
    assert "replaced" not in stage.status


def test_f3_a_negative_limit_fails_the_job_at_once() -> None:
    stage = play(a_stage("PyTorchJob", backoffLimit=-1), "")
    assert (stage.conditions, stage.pods) == ("Created Failed", {})
    assert "startTime" not in stage.status


@EVERY
def test_f3_a_deadline_ends_a_quiet_job(kind: str) -> None:
    stage = play(a_stage(kind, activeDeadlineSeconds=4), "run")
    decision, _ = stage.decide()
    assert decision.wake_after is not None
    stage.pass_time(decision.wake_after.total_seconds())
    stage.settle()
    assert stage.message == "Job demo has failed because it was active longer than specified deadline"
    assert all("deletionTimestamp" in pod["metadata"] for pod in stage.pods.values())


def test_f3_success_before_the_deadline_counts_whenever_it_is_seen() -> None:
    stage = play(a_stage("PyTorchJob", activeDeadlineSeconds=4), "run")
    stage.end("demo-master-0", 0)
    stage.pass_time(100)
    stage.settle()
    assert stage.conditions == DONE


def test_f3_a_deadline_starts_anew_on_resume() -> None:
    stage = play(
        a_stage("PyTorchJob", activeDeadlineSeconds=4), "run wait=1 suspend vanish wait=7 resume run"
    )
    assert stage.conditions == "Created Suspended=False Running"
    stage.pass_time(5)
    stage.settle()
    assert stage.conditions == "Created Suspended=False Running=False Failed"


@EVERY
@pytest.mark.parametrize(("ttl", "wait", "gone"), [(4, 3, False), (4, 4, True), (0, 0, True)])
def test_f3_time_to_live(kind: str, ttl: int, wait: int, gone: bool) -> None:
    stage = play(a_stage(kind, ttlSecondsAfterFinished=ttl), f"run {main_of(kind)}:exit=0 wait={wait}")
    assert stage.gone == gone


CLEAN: dict[str, tuple[str, set[str]]] = {
    "None keeps everything": ("None", {"master-0", "worker-0", "worker-1"}),
    "Running takes what has not ended": ("Running", {"master-0", "worker-1"}),
    "All takes everything": ("All", set()),
    "so does Foo": ("Foo", set()),
}


@pytest.mark.parametrize(("policy", "kept"), CLEAN.values(), ids=CLEAN.keys())
def test_f4_clean_up(policy: str, kept: set[str]) -> None:
    stage = play(a_stage("PyTorchJob", cleanPodPolicy=policy), "run worker-1:exit=0 master-0:exit=0 vanish")
    assert set(stage.pods) == set(stage.services) == {f"demo-{name}" for name in kept}


@EVERY
def test_f4_suspend_and_resume(kind: str) -> None:
    stage = play(a_stage(kind, suspend=True), "")
    assert (stage.conditions, stage.pods, "startTime" in stage.status) == ("Created Suspended", {}, False)
    assert play(stage, "resume").conditions == "Created Suspended=False"
    assert play(stage, "run").conditions == "Created Suspended=False Running"
    begun = stage.status["startTime"]
    assert play(stage, "wait=5 suspend vanish").conditions == "Created Running=False Suspended"
    assert (stage.pods, stage.services, stage.status["startTime"]) == ({}, {}, begun)
    assert play(stage, "resume").conditions == "Created Running=False Suspended=False"
    assert stage.status["startTime"] != begun
    assert play(stage, f"run {main_of(kind)}:exit=0 suspend").conditions == (
        "Created Suspended=False Running=False Succeeded"
    )


def test_f4_a_resumed_job_waits_for_the_pods_from_before() -> None:
    stage = play(a_stage("PyTorchJob", "Never"), "run suspend resume")
    assert stage.conditions == "Progressing=False Created Running=False Suspended"
    assert stage.status["conditions"][0]["message"] == (
        "pods from before it was suspended have not ended yet: demo-master-0, demo-worker-0, demo-worker-1"
    )
    assert play(stage, "vanish run").conditions == "Created Suspended=False Running"


# v1 fails most of these, or decides by the order of a map.
@EVERY
@pytest.mark.parametrize("policy", ["OnFailure", "Always", "ExitCode"])
def test_f4_a_pod_deleted_by_hand_is_replaced(kind: str, policy: str) -> None:
    stage = play(a_stage(kind, policy), "run worker-1:delete")
    assert stage.conditions == "Created Running"
    stage.end("demo-worker-1", 1)
    assert play(stage, "vanish run").conditions == "Created Running"
    assert len(stage.made) == sum(ROLES[kind].values()) + 1
    assert "restarts" not in stage.status


@EVERY
@pytest.mark.parametrize("how", ["delete", "vanish"])
def test_f4_under_never_the_job_fails_and_says_that_the_pod_was_deleted(kind: str, how: str) -> None:
    stage = play(a_stage(kind, "Never"), f"run worker-1:{how}")
    assert stage.conditions == LOST
    assert (
        stage.message
        == f"{kind} demo is failed because pod demo-worker-1 was deleted and its restartPolicy is Never."
    )


def test_f4_a_member_that_the_job_can_spare_is_not_run_twice_under_never_either() -> None:
    job = a_job("TFJob", {"PS": 1, "Worker": 3}, policy="Never", enableDynamicWorker=True)
    stage = play(Stage(job), "run worker-2:vanish")
    assert (stage.conditions, len(stage.made)) == ("Created Running", 4)


def test_f4_a_pod_deleted_before_it_was_started_is_made_again_even_under_never() -> None:
    stage = play(a_stage("PyTorchJob", "Never"), "worker-1:delete run")
    assert stage.conditions == "Created Running"


@EVERY
def test_f4_a_succeeded_pod_that_vanishes_is_not_run_again(kind: str) -> None:
    stage = play(a_stage(kind), "run worker-1:exit=0 worker-1:vanish")
    assert (stage.conditions, len(stage.made)) == ("Created Running", sum(ROLES[kind].values()))
    assert stage.status["replicaStatuses"]["Worker"] | {"selector": ""} == {
        "active": 1,
        "succeeded": 1,
        "selector": "",
    }
    assert play(stage, f"{main_of(kind)}:exit=0").conditions == DONE
    assert "members" not in stage.status


def test_f4_a_deleted_service_is_made_again() -> None:
    stage = play(a_stage("PyTorchJob"), "run")
    del stage.services["demo-worker-0"]
    stage.settle()
    assert "demo-worker-0" in stage.services


@EVERY
@pytest.mark.parametrize("policy", ["Never", "OnFailure", "ExitCode"])
def test_f5_scaling_never_fails_a_job(kind: str, policy: str) -> None:
    stage = play(a_stage(kind, policy), "run workers=4 run workers=1")
    assert stage.conditions == "Created Running"
    stage.end("demo-worker-3", 143)
    assert play(stage, "workers=4 vanish run").conditions == "Created Running"
    assert play(stage, "workers=0 vanish").conditions == "Created Running"
    assert all("worker" not in name for name in {**stage.pods, **stage.services})


def test_f5_no_workers_is_no_loop() -> None:
    stage = Stage(a_job("PyTorchJob", {"Master": 1, "Worker": 0}))
    assert stage.settle() == 1
    assert set(stage.pods) == {"demo-master-0"}


def test_f5_a_role_that_is_removed_takes_everything_with_it() -> None:
    stage = play(a_stage("PyTorchJob"), "run")
    del stage.services["demo-worker-1"]
    stage.edit(pytorchReplicaSpecs={"Master": stage.job["spec"]["pytorchReplicaSpecs"]["Master"]})
    play(stage, "vanish")
    assert set(stage.pods) == set(stage.services) == set({"demo-master-0"})
    assert set(stage.status["replicaStatuses"]) == {"Master"}


# -- what a job says when it cannot get further ------------------------------------------------------------------------


def test_a_job_that_cannot_progress_says_why_and_keeps_its_state() -> None:
    stage = play(a_stage("PyTorchJob"), "")
    waiting = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "needs 3, 1 free",
    }
    stage.pods["demo-master-0"]["status"]["conditions"] = [waiting]
    stage.settle()
    assert stage.conditions == "Progressing=False Created"
    assert stage.job_kind.state(stage.job) == "Created"
    assert stage.status["conditions"][0]["message"] == "needs 3, 1 free"
    stage.pods["demo-master-0"]["status"]["conditions"] = []
    assert play(stage, "run").conditions == "Created Running"


def test_an_image_that_cannot_be_pulled_is_named() -> None:
    stage = play(a_stage("TFJob"), "")
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    stage.pods["demo-chief-0"]["status"]["containerStatuses"] = [{"name": "tensorflow", "state": waiting}]
    stage.settle()
    found = stage.status["conditions"][0]
    assert (found["reason"], found["message"]) == (
        "ImagePullBackOff", "pod demo-chief-0, container tensorflow: no such image",
    )  # fmt: skip


# -- a gang restarts as one ------------------------------------------------------------------------------------------


def a_gang(kind: str = "PyTorchJob", policy: str = "OnFailure", **run_policy: Any) -> Stage:
    return Stage(as_one(a_job(kind, ROLES[kind], policy=policy, run_policy=run_policy, **MODE)))


@EVERY
def test_one_failure_replaces_all_members_and_is_counted_once(kind: str) -> None:
    stage = play(a_gang(kind), "run worker-0,worker-1:exit=1")
    size = sum(ROLES[kind].values())
    assert all("deletionTimestamp" in pod["metadata"] for pod in stage.pods.values())
    assert (stage.status["restarts"], len(stage.made)) == (1, size)
    stage.vanish("demo-worker-0")
    stage.settle()
    assert len(stage.made) == size, "a new member met one of the old attempt"
    play(stage, "vanish run")
    assert (stage.conditions, stage.attempts(), len(stage.made)) == ("Created Running", {"2"}, 2 * size)


@pytest.mark.parametrize("how", ["delete", "vanish"])
def test_a_member_that_is_taken_away_takes_the_others_along(how: str) -> None:
    stage = play(a_gang(), f"run worker-1:{how} vanish vanish run")
    assert (stage.conditions, stage.attempts(), len(stage.made)) == ("Created Running", {"2"}, 6)


def test_a_gang_that_has_used_up_its_restarts_fails() -> None:
    stage = play(a_gang(backoffLimit=1), "run worker-0,worker-1:exit=1 vanish run master-0:exit=1")
    assert stage.message == "Job demo has failed because it has reached the specified backoff limit"


def test_a_controller_that_dies_after_deciding_to_restart_goes_on_where_it_was() -> None:
    stage = play(a_gang(), "run")
    stage.end("demo-worker-0", 1)
    stage.one_pass(dies_after=0)
    assert stage.attempts() == {"1"}
    play(stage, "vanish run")
    assert (stage.status["restarts"], stage.attempts(), len(stage.made)) == (1, {"2"}, 6)


def test_containers_of_a_gang_are_not_restarted_on_their_own() -> None:
    stage = play(a_gang(policy="Always"), "")
    assert {pod["spec"]["restartPolicy"] for pod in stage.pods.values()} == {"Never"}


def test_other_jobs_pods_carry_no_attempt() -> None:
    assert play(a_stage("PyTorchJob"), "run").attempts() == {""}


# -- after the end -----------------------------------------------------------------------------------------------------


def test_members_that_outlive_success_have_a_moment_to_end_by_themselves() -> None:
    stage = play(a_stage("TFJob"), "run chief-0:exit=0")
    assert stage.decide()[0].wake_after is not None
    assert {pod["status"]["phase"] for pod in stage.pods.values()} == {"Running", "Succeeded"}
    play(stage, "wait=10")
    assert {pod["status"]["phase"] for pod in stage.pods.values()} == {"Failed", "Succeeded"}
    assert stage.conditions == DONE
