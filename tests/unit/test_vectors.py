"""The rows by which compatibility with v1 is measured, each with the test that plays it; none may be missing.

Condition timelines are played here. The register beside them says where the golden vectors, the manifests known to
trouble v1, and upstream's own test files are answered: a test that goes, or is renamed, is missed here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import pytest

from tests.build import a_job
from tests.unit import test_kubeflow
from tests.unit.stage import Stage
from tests.unit.test_lifecycle import play

WORKERS, MASTER = {"Worker": 2}, {"Master": 1, "Worker": 2}
LOST = "Created Running=False Failed"


@dataclass(frozen=True)
class Timeline:
    kind: str
    roles: Mapping[str, int]
    script: str  # "" is a new job
    want: str
    policy: str = ""
    run_policy: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    has: tuple[str, ...] = ()  # fields that the status has then
    lacks: tuple[str, ...] = ()
    reason: str = ""  # of the last condition


# Where v1 comes to another end, ours is written down and the reason is beside it.
TIMELINES = {
    "PyTorch created": Timeline("PyTorchJob", MASTER, "", "Created", has=("replicaStatuses", "startTime")),
    "master running": Timeline("PyTorchJob", MASTER, "master-0:run", "Created Running"),
    "master succeeded": Timeline("PyTorchJob", MASTER, "run master-0:exit=0", "Created Running=False Succeeded"),
    "fast job never seen Running": Timeline("PyTorchJob", MASTER, "master-0:exit=0", "Created Succeeded"),
    # v1 inserts Running for XGBoost alone; nothing is said here that was not seen.
    "XGB fast success": Timeline("XGBoostJob", MASTER, "master-0:exit=0", "Created Succeeded"),
    "worker pod Failed, OnFailure, Worker-only job": Timeline(
        "PyTorchJob", {"Worker": 1}, "run worker-0:exit=1", "Created Restarting", "OnFailure"
    ),
    "and once its successor runs": Timeline(
        "PyTorchJob", {"Worker": 1}, "run worker-0:exit=1 vanish run", "Created Running", "OnFailure"
    ),
    # Restarting ends with the job: the last word is the end.
    "the same, but the replacement succeeds before it is seen running": Timeline(
        "PyTorchJob", {"Worker": 1}, "run worker-0:exit=1 vanish worker-0:exit=0", "Created Restarting=False Succeeded",
        "OnFailure",
    ),
    # v1 deletes the pod and fails the job; a restart policy means the same to every kind.
    "MX any pod Failed, OnFailure": Timeline(
        "MXJob", {"Scheduler": 1, "Worker": 1}, "run worker-0:exit=1 vanish run", "Created Running", "OnFailure",
        spec={"jobMode": "MXTrain"},
    ),
    "XGB any pod Failed, OnFailure": Timeline(
        "XGBoostJob", MASTER, "run worker-0:exit=1 vanish run", "Created Running", "OnFailure"
    ),
    # v1 says both; here the first to end decides, and in a tie success.
    "TF worker 0 Succeeded and worker 1 Failed in one pass": Timeline(
        "TFJob", WORKERS, "run worker-0:exit=0 worker-1:exit=1", "Created Running=False Succeeded"
    ),
    "backoffLimit -1": Timeline(
        "PyTorchJob", MASTER, "", "Created Failed", run_policy={"backoffLimit": -1},
        has=("completionTime",), lacks=("startTime",),
    ),
    "deadline, running job": Timeline(
        "MPIJob", {"Launcher": 1, "Worker": 1}, "run wait=5", LOST, run_policy={"activeDeadlineSeconds": 5},
        reason="MPIJobFailed",
    ),
    "backoff, running job": Timeline(
        "PyTorchJob", MASTER, "run worker-0:exit=1", LOST, "OnFailure", {"backoffLimit": 0}, reason="PyTorchJobFailed"
    ),
    "suspended while Restarting": Timeline(
        "PyTorchJob", {"Worker": 1}, "run worker-0:exit=1 suspend", "Created Restarting Suspended", "OnFailure"
    ),
    "TF worker exit 1 with ExitCode": Timeline(
        "TFJob", WORKERS, "run worker-1:exit=1", LOST, "ExitCode", has=("completionTime",)
    ),
    # v1 forgets completionTime, and with it the job's time to live.
    "PyTorch worker exit 1 with ExitCode": Timeline(
        "PyTorchJob", MASTER, "run worker-1:exit=1", LOST, "ExitCode", has=("completionTime",)
    ),
    "created suspended": Timeline(
        "PyTorchJob", MASTER, "", "Created Suspended", run_policy={"suspend": True}, lacks=("startTime",)
    ),
    "suspended while running": Timeline(
        "PyTorchJob", MASTER, "run suspend", "Created Running=False Suspended", reason="PyTorchJobSuspended"
    ),
    "resumed, not yet running": Timeline(
        "PyTorchJob", MASTER, "run suspend vanish resume", "Created Running=False Suspended=False",
        reason="PyTorchJobResumed",
    ),
    "resumed and running": Timeline(
        "PyTorchJob", MASTER, "run suspend vanish resume run", "Created Suspended=False Running"
    ),
    # v1 doubles the prefix of the reason, and fails under OnFailure and Always too.
    "MPI launcher or worker Failed (Never)": Timeline(
        "MPIJob", {"Launcher": 1, "Worker": 1}, "run worker-0:exit=1", LOST, reason="MPIJobFailed"
    ),
    # v1 stays so for ever.
    "MPI launcher or worker Failed (ExitCode)": Timeline(
        "MPIJob", {"Launcher": 1, "Worker": 1}, "run launcher:exit=137", "Created Restarting", "ExitCode"
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", TIMELINES)
def test_conditions_come_in_their_order(row: str) -> None:
    case = TIMELINES[row]
    job = a_job(case.kind, case.roles, policy=case.policy, run_policy=dict(case.run_policy), **case.spec)
    stage = play(Stage(job), case.script)
    assert stage.conditions == case.want
    assert set(case.has) <= stage.status.keys()
    assert not set(case.lacks) & stage.status.keys()
    assert not case.reason or stage.status["conditions"][-1]["reason"] == case.reason


def test_no_row_of_the_timelines_is_missing() -> None:
    """21 rows; two of them are split here in two."""
    assert len(TIMELINES) == 21 + 2


# What is known to trouble v1 → what we say to it, in the table of `test_kubeflow`.
TROUBLES = {
    "PyTorchJob name 1job": "a PyTorchJob named 1job",
    "PyTorchJob key worker lower-case": "a lower-case role of a PyTorchJob",
    "TFJob key ps lower-case": "a lower-case role of a TFJob",
    "MPIJob key launcher lower-case": "a lower-case role of an MPIJob",
    "PyTorchJob Master without replicas": "a Master without replicas",
    "PyTorchJob Worker replicas 0": "no workers beside a Master",
    "PyTorchJob or PaddleJob Worker replicas -1": "fewer than no workers",
    "TFJob Worker replicas -1": "fewer than no workers of a TFJob",
    "TFJob Worker replicas 0 (with others)": "no workers beside a Chief",
    "elasticPolicy: {} without Worker, PyTorchJob": "an elastic PyTorchJob without workers",
    "elasticPolicy: {} without Worker, PaddleJob": "an elastic PaddleJob without workers",
    "PyTorchJob rdzvConf: []": "an empty rdzvConf",
    "PyTorchJob without containers": "no containers",
    "container not named pytorch": "a container of another name",
    "empty pytorchReplicaSpecs: {}": "an empty replica map",
    "XGBoostJob without Master": "an XGBoostJob without a Master",
    "TFJob with Chief and Master": "a TFJob with Chief and Master",
    "restartPolicy Sometimes": "restartPolicy Sometimes",
    "cleanPodPolicy Foo": "cleanPodPolicy Foo",
    "backoffLimit -1": "backoffLimit -1",
    "queue changed": "a job stays in its queue",
    "managedBy foo/bar": "managedBy 'foo/bar' of a PyTorchJob",
    "managedBy empty": "managedBy '' of a TFJob",
    "name of 60 chars": "a name of 60 characters",
}


def test_no_row_of_the_troubles_is_missing() -> None:
    """24 rows, one of which is about two kinds; MPIJob v2beta1, the last, is no kind of ours."""
    assert len(TROUBLES) == 24 + 1 - 1
    known = test_kubeflow.ANSWERS.keys() | test_kubeflow.EDITS.keys()
    assert {row: name for row, name in TROUBLES.items() if name not in known} == {}


# A golden vector, or a test file of upstream's → the tests of ours that ask for the same.
ANSWERED = {
    "D.1 PyTorchJob": (
        "test_wiring.test_a_member_is_told",
        "test_captures.test_pods_services_and_companions_are_the_same",
    ),
    "D.2 elastic": ("test_wiring.test_a_member_is_told", "test_wiring.test_who_carries_the_master_label"),
    "D.3 TFJob": ("test_wiring.test_a_member_is_told",),
    "D.4 MXJob": ("test_wiring.test_a_member_is_told", "test_wiring.test_who_carries_the_master_label"),
    "D.5 PaddleJob": ("test_wiring.test_a_member_is_told",),
    "D.6 XGBoostJob": ("test_wiring.test_a_member_is_told",),
    "D.7 JAXJob": ("test_wiring.test_a_member_is_told",),
    "D.8 MPIJob": (
        "test_wiring.test_the_launcher_finds_its_hosts_in_files",
        "test_wiring.test_a_launcher_with_a_gpu_is_a_host_too",
        "test_wiring.test_the_launcher_may_exec_into_its_workers_and_nothing_else",
    ),
    "pytorch/pytorchjob_controller_test.go": (
        "test_captures.test_pods_services_and_companions_are_the_same",
        "test_kubeflow.test_what_may_change",
        "test_lifecycle.test_f4_suspend_and_resume",
        "test_kubeflow.test_whose_job_it_is",
        "test_wiring.test_an_elastic_job_with_metrics_has_an_autoscaler",
    ),
    "pytorch/elastic_test.go": ("test_wiring.test_a_member_is_told",),
    "pytorch/initcontainer_test.go": ("test_desired.test_who_waits_for_the_master",),
    "tensorflow/tfjob_controller_test.go": (
        "test_rules.test_a_job_goes_on_as_its_pods_do",
        "test_lifecycle.test_f4_suspend_and_resume",
    ),
    "tensorflow/pod_test.go": (
        "test_wiring.test_a_member_is_told",
        "test_wiring.test_a_cluster_domain_is_written_out_in_tf_config",
        "test_desired.test_the_roles_restart_policy_is_the_pods",
        "test_lifecycle.test_f5_scaling_never_fails_a_job",
    ),
    "tensorflow/status_test.go": ("test_lifecycle.test_upstreams_status_cases",),
    "tensorflow/job_test.go": (
        "test_desired.test_labels_annotations_and_finalizers_come_from_the_template_and_ours_win",
        "test_lifecycle.test_f4_clean_up",
        "test_lifecycle.test_f3_a_deadline_ends_a_quiet_job",
        "test_lifecycle.test_f3_back_off",
        "test_lifecycle.test_f3_time_to_live",
        "test_desired.test_a_service_is_headless_and_finds_one_pod",
    ),
    "tensorflow/tensorflow_test.go, util_test.go": (
        "test_wiring.test_a_member_is_told",
        "test_desired.test_a_pod_belongs_to_its_job_and_says_whose_it_is",
    ),
    "mpi/mpijob_controller_test.go": (
        "test_wiring.test_a_launcher_with_a_gpu_is_a_host_too",
        "test_lifecycle.test_f1_main_exits_0_while_workers_run",
        "test_companions.test_what_is_somebody_elses_stays_so_and_the_job_waits",
        "test_companions.test_an_account_that_the_user_made_is_taken_as_it_is",
        "test_lifecycle.test_f4_suspend_and_resume",
    ),
    "paddlepaddle/*_test.go": (
        "test_wiring.test_a_member_is_told",
        "test_lifecycle.test_f4_suspend_and_resume",
    ),
    "xgboost/*_test.go, mxnet/*_test.go": ("test_lifecycle.test_f4_suspend_and_resume",),
    "jax/jaxjob_controller_test.go, envvar_test.go": (
        "test_wiring.test_a_member_is_told",
        "test_rules.test_a_suspended_job_gives_everything_back_and_resumes_with_a_new_start",
    ),
    "common/job_test.go": (
        "test_rules.test_a_finished_job_is_cleaned_up_as_it_says",
        "test_lifecycle.test_f3_back_off",
        "test_kubeflow.test_whose_job_it_is",
    ),
    "common/{pod,service,status,util}_test.go": (
        "test_desired.test_the_roles_restart_policy_is_the_pods",
        "test_lifecycle.test_f5_scaling_never_fails_a_job",
        "test_kubeflow.test_others_do_not_and_zero_counts_are_left_out",
    ),
    "control/*_test.go": ("test_job_controller.test_a_pod_of_somebody_else_is_waited_for_and_never_adopted",),
    # Expectations guard a cache that is behind; ours learns what was written, and never believes older news.
    "expectation/expectation_test.go": ("test_cache.test_what_is_learnt_is_there_at_once",),
    # Our operator looks after all kinds whose definitions are there.
    "register_controller_test.go": ("test_kubeflow.test_all_seven_kinds_are_there",),
    "util/status_test.go": ("test_kubeflow.test_conditions_tell_what_happened",),
    "util/train/train_util_test.go": ("test_kubeflow.test_exit_codes_from_128_on_are_forgiven",),
    "util/labels/labels_test.go": ("test_kubeflow.test_a_pod_that_no_member_could_have_is_nobodys",),
    "common/util/util_test.go": ("test_lifecycle.test_f3_time_to_live",),
    "apis/kubeflow.org/v1/*_defaults_test.go, *_validation_test.go": (
        "test_kubeflow.test_what_a_manifest_leaves_out",
        "test_desired.test_the_frameworks_port_is_declared_where_the_template_does_not",
        "test_desired.test_a_port_of_the_templates_own_stays_in_its_place",
        "test_kubeflow.test_an_mpijob_may_say_twice_what_to_clean_up",
        "test_kubeflow.test_what_we_say_to",
    ),
    "webhooks/*_test.go": (
        "test_kubeflow.test_what_we_say_to",
        "test_kubeflow.test_what_a_user_is_warned_of",
    ),
}


@pytest.mark.parametrize("row", ANSWERED)
def test_every_row_has_its_tests(row: str) -> None:
    for place in ANSWERED[row]:
        module, _, name = place.partition(".")
        assert hasattr(import_module(f"tests.unit.{module}"), name), place


def test_no_golden_vector_and_no_file_of_upstreams_is_missing() -> None:
    """Vectors 1 to 8 (the ninth is MPIJob v2beta1's, the tenth the timelines), and 23 rows of test files."""
    assert sum(row.startswith("D.") for row in ANSWERED) == 8
    assert len(ANSWERED) == 8 + 23
