"""kubeflow.org/v1 as its clients know it: what is read, what is refused, and the words of a status."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from fullrank.api.jobs import Counts, RunPolicy
from fullrank.api.meta import Json, stamp
from fullrank.api.schema import complaints as schema_complaints
from fullrank.dialects.contract import Mark, Report
from fullrank.dialects.kubeflow import KUBEFLOW
from fullrank.dialects.kubeflow_status import LABEL, with_condition
from fullrank.dialects.registry import JOB_KINDS
from tests.build import NOW, a_job, a_template, kind_of

KINDS = {one.kind.kind: one for one in JOB_KINDS if one.dialect is KUBEFLOW}

# -- the kinds -----------------------------------------------------------------------------------------------------

# plural, replica map, main container, main port, restart policy, scale, selector in the status, columns
IDENTITY = {
    "PyTorchJob": (
        "pytorchjobs", "pytorchReplicaSpecs", "pytorch", "pytorchjob-port", 23456, "OnFailure", True, True, "State Age",
    ),
    "TFJob": ("tfjobs", "tfReplicaSpecs", "tensorflow", "tfjob-port", 2222, "Never", False, False, "State Age"),
    "MPIJob": ("mpijobs", "mpiReplicaSpecs", "mpi", "mpi-port", 9999, "Never", False, False, "Age State"),
    "MXJob": ("mxjobs", "mxReplicaSpecs", "mxnet", "mxjob-port", 9091, "Never", False, False, "State Age"),
    "PaddleJob": ("paddlejobs", "paddleReplicaSpecs", "paddle", "master", 36543, "OnFailure", True, True, "State Age"),
    "XGBoostJob": (
        "xgboostjobs", "xgbReplicaSpecs", "xgboost", "xgboostjob-port", 9999, "Never", False, False, "State Age",
    ),
    "JAXJob": ("jaxjobs", "jaxReplicaSpecs", "jax", "jaxjob-port", 6666, "Never", True, True, "State Age"),
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTITY)
def test_a_kind_is_what_clients_call_it(name: str) -> None:
    one, framework = KINDS[name], KINDS[name].framework
    assert (
        one.kind.plural,
        framework.replicas_field,
        framework.container,
        framework.port_name,
        framework.port,
        framework.restart_policy,
        "scale" in one.kind.subresources,
        framework.selector_in_status,
        " ".join(column.name for column in one.kind.columns),
    ) == IDENTITY[name]
    assert one.kind.api_version == "kubeflow.org/v1"
    assert one.kind.short_names == one.kind.categories == ()
    assert one.controller == f"{name.lower()}-controller"
    assert "status" in one.kind.subresources


def test_all_seven_kinds_are_there() -> None:
    assert set(KINDS) == set(IDENTITY)


# -- reading -------------------------------------------------------------------------------------------------------


def roles_read(kind: str, roles: dict[str, Any]) -> dict[str, tuple[int, str]]:
    job = kind_of(a_job(kind, {"Worker": 1})).read(a_job(kind, roles))
    return {role.name: (role.replicas, role.restart_policy) for role in job.roles}


DEFAULTS = {
    "a role has one member": ("PyTorchJob", {"Master": None}, {"Master": (1, "OnFailure")}),
    "a number stays": ("PyTorchJob", {"Worker": 3}, {"Worker": (3, "OnFailure")}),
    "lower case is fine": (
        "PyTorchJob", {"master": None, "worker": 2}, {"Master": (1, "OnFailure"), "Worker": (2, "OnFailure")},
    ),
    "upper case too": ("TFJob", {"WORKER": 1, "ps": 1}, {"Worker": (1, "Never"), "PS": (1, "Never")}),
    "an MPI worker has none": (
        "MPIJob", {"launcher": None, "Worker": None}, {"Launcher": (1, "Never"), "Worker": (0, "Never")},
    ),
    "XGBoost does not restart": ("XGBoostJob", {"Master": None}, {"Master": (1, "Never")}),
    "Paddle does": ("PaddleJob", {"Worker": None}, {"Worker": (1, "OnFailure")}),
    "MXNet does not, nor its tuners": ("MXJob", {"tunertracker": None}, {"TunerTracker": (1, "Never")}),
    "JAX does not": ("JAXJob", {"Worker": None}, {"Worker": (1, "Never")}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "roles", "want"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_what_a_manifest_leaves_out(
    kind: str, roles: dict[str, Any], want: dict[str, tuple[int, str]]
) -> None:
    assert roles_read(kind, roles) == want


def test_nothing_is_written_into_the_job() -> None:
    job = a_job("PyTorchJob", {"master": None})
    before = json.dumps(job)
    kind_of(job).read(job)
    assert json.dumps(job) == before


RUN_POLICIES: dict[str, tuple[Json | None, RunPolicy]] = {
    "none at all": (None, RunPolicy()),
    "every field": (
        {
            "cleanPodPolicy": "Running", "ttlSecondsAfterFinished": 4, "activeDeadlineSeconds": 5, "backoffLimit": 0,
            "suspend": True, "schedulingPolicy": {"queue": "q", "priorityClass": "high", "minAvailable": 2},
        },
        RunPolicy("Running", False, 4, 5, 0, True, "q", "high"),
    ),
    "None is said on purpose": ({"cleanPodPolicy": "None"}, RunPolicy("None", keeps_pods_on_purpose=True)),
    "an unknown policy cleans everything": ({"cleanPodPolicy": "Foo"}, RunPolicy("All")),
    "nothing in it": ({"schedulingPolicy": {}}, RunPolicy()),
}  # fmt: skip


@pytest.mark.parametrize(("written", "want"), RUN_POLICIES.values(), ids=RUN_POLICIES.keys())
def test_how_a_run_policy_is_read(written: Json | None, want: RunPolicy) -> None:
    job = a_job("TFJob", {"Worker": 1}, run_policy=written)
    assert kind_of(job).read(job).run_policy == want


CLEAN_PODS = {
    "neither": ({}, None, "None"),
    "only the old place": ({}, "All", "All"),
    "only the new one": ({"cleanPodPolicy": "All"}, None, "All"),
    "the new one wins": ({"cleanPodPolicy": "Running"}, "All", "Running"),
    "even when it says None": ({"cleanPodPolicy": "None"}, "All", "None"),
}


@pytest.mark.parametrize(("policy", "old", "want"), CLEAN_PODS.values(), ids=CLEAN_PODS.keys())
def test_an_mpijob_may_say_twice_what_to_clean_up(policy: Json, old: str | None, want: str) -> None:
    more: dict[str, Any] = {"cleanPodPolicy": old} if old else {}
    job = a_job("MPIJob", {"Launcher": 1}, run_policy=policy, **more)
    assert kind_of(job).read(job).run_policy.clean_pods == want


MANAGED = {
    "nobody is named": (None, False),
    "we are": ("kubeflow.org/training-operator", False),
    "somebody else is": ("kueue.x-k8s.io/multikueue", True),
    "the name is empty": ("", True),
}


@pytest.mark.parametrize(("manager", "elsewhere"), MANAGED.values(), ids=MANAGED.keys())
def test_whose_job_it_is(manager: str | None, elsewhere: bool) -> None:
    job = a_job("JAXJob", {"Worker": 1}, run_policy={} if manager is None else {"managedBy": manager})
    assert kind_of(job).read(job).managed_elsewhere == elsewhere


def test_null_is_nothing() -> None:
    worker = {"replicas": None, "restartPolicy": None, "template": a_template("pytorch")}
    job = a_job("PyTorchJob", {"Worker": worker, "Master": None}, run_policy=None, elasticPolicy=None)
    job["metadata"] |= {"creationTimestamp": None, "labels": None, "annotations": None}
    job["spec"]["runPolicy"] = {
        "suspend": None,
        "managedBy": None,
        "schedulingPolicy": None,
        "cleanPodPolicy": None,
    }
    job["status"] = {"conditions": None, "replicaStatuses": None, "startTime": None}
    read = kind_of(job).read(job)
    assert (read.run_policy, read.options, read.managed_elsewhere) == (RunPolicy(), {}, False)
    assert [role.replicas for role in read.roles] == [1, 1]
    assert kind_of(job).complaints(job) == []


NONSENSE = {"no JSON": "{", "no map": "[1]", "no numbers": '{"demo-worker-0": "1"}', "truth": '{"a": true}'}


@pytest.mark.parametrize("text", NONSENSE.values(), ids=NONSENSE.keys())
def test_nonsense_about_ports_counts_as_none(text: str) -> None:
    job = a_job("JAXJob", {"Worker": 1})
    job["metadata"]["annotations"] = {"fullrank.dev/ports": text}
    assert kind_of(job).read(job).ports == {}


# -- refusals ------------------------------------------------------------------------------------------------------


def refused(job: Json, old: Json | None = None) -> list[str]:
    """Everything that is wrong with a job: what its schema says, else what its kind says."""
    by_schema = schema_complaints(job, kind_of(job).schema)
    return [str(one) for one in by_schema or kind_of(job).complaints(job, old)]


def without_containers(kind: str, role: str, **template: Any) -> Json:
    return a_job(kind, {role: {"replicas": 1, "template": template}}, **MODE)


def with_container(kind: str, role: str, **fields: Any) -> Json:
    return a_job(kind, {role: {"replicas": 1, "template": {"spec": {"containers": [fields]}}}}, **MODE)


MODE: dict[str, Any] = {"jobMode": "MXTrain"}
BAD_NAME = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SIXTY = "j" * 60
TORCH = "spec.pytorchReplicaSpecs"
CONTAINERS = "template.spec.containers"

# The first group is what is known to trouble v1.8.1, row by row; where our answer is not v1's, the reason is beside it.
ANSWERS: dict[str, tuple[Json, list[str]]] = {
    "a PyTorchJob named 1job": (
        a_job("PyTorchJob", {"Worker": 1}, name="1job"),
        [f'metadata.name: Invalid value: "1job": should match: {BAD_NAME}'],
    ),
    # v1 refuses it although its defaulting would have mended it.
    "a lower-case role of a PyTorchJob": (a_job("PyTorchJob", {"worker": 1}), []),
    "a lower-case role of a TFJob": (a_job("TFJob", {"ps": 1, "Worker": 1}), []),
    # v1 answers with an event, over and over; lower case is welcome here in all kinds.
    "a lower-case role of an MPIJob": (a_job("MPIJob", {"launcher": 1}), []),
    # As above: the default is 1.
    "a Master without replicas": (a_job("PyTorchJob", {"Master": None}), []),
    # v1.8 makes and deletes a pod for ever; here a role without members is simply not there.
    "no workers beside a Master": (a_job("PyTorchJob", {"Master": 1, "Worker": 0}), []),
    "fewer than no workers": (
        a_job("PyTorchJob", {"Worker": -1}),
        [f"{TORCH}[Worker].replicas: Invalid value: -1: should be a non-negative integer"],
    ),
    # This one stops v1's operator for everybody.
    "fewer than no workers of a TFJob": (
        a_job("TFJob", {"Worker": -1}),
        ["spec.tfReplicaSpecs[Worker].replicas: Invalid value: -1: should be a non-negative integer"],
    ),
    "no workers beside a Chief": (a_job("TFJob", {"Chief": 1, "Worker": 0}), []),
    # So does this one, and again after every restart; v1.9's words.
    "an elastic PyTorchJob without workers": (
        a_job("PyTorchJob", {"Master": 1}, elasticPolicy={}),
        [f"{TORCH}[Worker]: Required value: must be configured if elastic policy is used"],
    ),
    "an elastic PaddleJob without workers": (
        a_job("PaddleJob", {"Master": 1}, elasticPolicy={}),
        ["spec.paddleReplicaSpecs[Worker]: Required value: must be configured if elastic policy is used"],
    ),
    "an empty rdzvConf": (a_job("PyTorchJob", {"Worker": 1}, elasticPolicy={"rdzvConf": []}), []),
    "no containers": (
        without_containers("PyTorchJob", "Worker", spec={"containers": []}),
        [
            f"{TORCH}[Worker].{CONTAINERS}: Required value: must be specified",
            f"{TORCH}[Worker].{CONTAINERS}: Required value: must have at least one container with name pytorch",
        ],
    ),
    "a container of another name": (
        with_container("PyTorchJob", "Worker", name="main", image="i"),
        [
            f"{TORCH}[Worker].{CONTAINERS}: Required value: must have at least one container with name pytorch "
            '(call it "pytorch" instead of "main")'
        ],
    ),
    # v1 takes it and never does anything about it.
    "an empty replica map": (
        a_job("PyTorchJob", {}),
        [f"{TORCH}: Required value: must be required (name at least one of Master, Worker)"],
    ),
    "an XGBoostJob without a Master": (
        a_job("XGBoostJob", {"Worker": 1}),
        ["spec.xgbReplicaSpecs[Master]: Required value: must be present"],
    ),
    "a TFJob with Chief and Master": (
        a_job("TFJob", {"Chief": 1, "Master": 1}),
        [
            "spec.tfReplicaSpecs: Forbidden: must not have more than 1 Chief or Master role "
            "(they are two names for one role)"
        ],
    ),
    # v1 lets it in; its pods are then refused for ever.
    "restartPolicy Sometimes": (
        a_job("PyTorchJob", {"Worker": 1}, policy="Sometimes"),
        [
            f'{TORCH}[Worker].restartPolicy: Unsupported value: "Sometimes": supported values: '
            '"Always", "OnFailure", "Never", "ExitCode"'
        ],
    ),
    "restartPolicy onfailure": (
        a_job("PyTorchJob", {"Worker": 1}, policy="onfailure"),
        [
            f'{TORCH}[Worker].restartPolicy: Unsupported value: "onfailure": supported values: '
            '"Always", "OnFailure", "Never", "ExitCode" (did you mean "OnFailure"?)'
        ],
    ),
    "cleanPodPolicy Foo": (a_job("PyTorchJob", {"Worker": 1}, run_policy={"cleanPodPolicy": "Foo"}), []),
    "backoffLimit -1": (a_job("PyTorchJob", {"Worker": 1}, run_policy={"backoffLimit": -1}), []),
    # v1.9 asks this of four kinds; JAXJob and MPIJob are no different here.
    **{
        f"managedBy {value!r} of a {kind}": (
            a_job(kind, {role: 1}, run_policy={"managedBy": value}),
            [
                f'spec.runPolicy.managedBy: Unsupported value: "{value}": supported values: '
                '"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"'
            ],
        )
        for kind, role, value in (
            ("PyTorchJob", "Worker", "foo/bar"), ("TFJob", "Worker", ""), ("JAXJob", "Worker", "foo/bar"),
            ("MPIJob", "Launcher", ""),
        )
    },
    # v1 looks at the job's name alone; its services are then refused for ever.
    "a name of 60 characters": (
        a_job("PyTorchJob", {"Master": 1, "Worker": 11}, name=SIXTY),
        [
            f'metadata.name: Invalid value: "{SIXTY}": too long by 7: "{SIXTY}-worker-10" may have 63 characters '
            "(members' names begin with the job's)"
        ],
    ),
    # -- and further
    "a name that just fits": (a_job("PyTorchJob", {"Worker": 1}, name="j" * 54), []),
    "a name that is too long by itself": (
        a_job("JAXJob", {"Worker": 1}, name="j" * 64),
        [f'metadata.name: Invalid value: "{"j" * 64}": should match: must be no more than 63 characters'],
    ),
    "more members than anybody has": (
        a_job("JAXJob", {"Worker": 2**31 - 1}),
        ["spec.jaxReplicaSpecs[Worker].replicas: Invalid value: 2147483647: must be at most 10000"],
    ),
    "several Masters": (
        a_job("PyTorchJob", {"Master": 3}),
        [f"{TORCH}[Master].replicas: Forbidden: must be 1, is 3 (further processes belong in Worker)"],
    ),
    "several Masters of an XGBoostJob": (
        a_job("XGBoostJob", {"Master": 2}),
        ["spec.xgbReplicaSpecs[Master].replicas: Forbidden: must be 1, is 2 (further processes belong in Worker)"],
    ),
    "several Masters of a PaddleJob": (a_job("PaddleJob", {"Master": 3, "Worker": 1}), []),
    "both ways to say how many processes": (
        a_job("PyTorchJob", {"Worker": 1}, nprocPerNode="2", elasticPolicy={"nProcPerNode": 2}),
        [
            "spec.elasticPolicy.nProcPerNode: Forbidden: must not be used with spec.nprocPerNode "
            "(keep spec.nprocPerNode)"
        ],
    ),
    "a misspelt role": (
        a_job("PyTorchJob", {"Workers": 1}),
        [
            f'{TORCH}[Workers]: Unsupported value: "Workers": supported values: "Master", "Worker" '
            '(did you mean "Worker"?)'
        ],
    ),
    # v1 starts such members and then leaves them out of everything it decides.
    "a role that TensorFlow does not know": (
        a_job("TFJob", {"Worker": 1, "foo": 1}),
        [
            'spec.tfReplicaSpecs[foo]: Unsupported value: "foo": supported values: '
            '"Chief", "Master", "Worker", "PS", "Evaluator"'
        ],
    ),
    # v1 takes the one whose spelling is wrong and drops the other.
    "a role that is there twice": (
        a_job("PyTorchJob", {"Worker": 1, "worker": 2}),
        [f'{TORCH}[worker]: Duplicate value: "worker": the same role as "Worker"'],
    ),
    "no template": (
        a_job("PyTorchJob", {"Worker": {"replicas": 1}}),
        [
            f"{TORCH}[Worker].{CONTAINERS}: Required value: must be specified",
            f"{TORCH}[Worker].{CONTAINERS}: Required value: must have at least one container with name pytorch",
        ],
    ),
    "a container without an image": (
        with_container("TFJob", "Worker", name="tensorflow"),
        [f"spec.tfReplicaSpecs[Worker].{CONTAINERS}[0].image: Required value: must be required"],
    ),
    "Paddle's container of another name": (
        with_container("PaddleJob", "Worker", name="main", image="i"),
        [
            f'spec.paddleReplicaSpecs[Worker].{CONTAINERS}: Required value: must have at least one container with name '
            '"paddle" (call it "paddle" instead of "main")'
        ],
    ),
    "two things wrong with two roles": (
        a_job("PyTorchJob", {"Master": {"replicas": -1, "template": a_template("pytorch")}, "Wroker": 1}),
        [
            f'{TORCH}[Wroker]: Unsupported value: "Wroker": supported values: "Master", "Worker" '
            '(did you mean "Worker"?)',
            f"{TORCH}[Master].replicas: Invalid value: -1: should be a non-negative integer",
        ],
    ),
    "a number that is a word": (
        a_job("PyTorchJob", {"Worker": {"replicas": "two", "template": a_template("pytorch")}}),
        [
            'spec.pytorchReplicaSpecs.Worker.replicas: Invalid value: "string": '
            'spec.pytorchReplicaSpecs.Worker.replicas in body must be of type integer: "string"'
        ],
    ),
    # -- v1 judges these two kinds only after they were let in, and says so in an event, over and over
    "an MPIJob without a launcher": (
        a_job("MPIJob", {"Worker": 1}),
        [
            "spec.mpiReplicaSpecs[Launcher]: MPIReplicaSpec is not valid: Master ReplicaSpec must be present "
            "(add the Launcher, which runs mpirun)"
        ],
    ),
    "an MPIJob with two launchers": (
        a_job("MPIJob", {"Launcher": 2}),
        [
            "spec.mpiReplicaSpecs[Launcher].replicas: MPIReplicaSpec is not valid: There must be only 1 launcher "
            "replica (it has 2)"
        ],
    ),
    "an MPIJob with a role it does not know": (
        a_job("MPIJob", {"Launcher": 1, "PS": 1}),
        ["spec.mpiReplicaSpecs[PS]: MPIReplicaType is PS but must be one of [Launcher Worker]"],
    ),
    "an MPIJob without containers": (
        without_containers("MPIJob", "Launcher"),
        [
            f"spec.mpiReplicaSpecs[Launcher].{CONTAINERS}: MPIReplicaSpecs is not valid: containers definition "
            "expected in Launcher"
        ],
    ),
    "an MPIJob without an image": (
        with_container("MPIJob", "Launcher", name="mpi"),
        [
            f"spec.mpiReplicaSpecs[Launcher].{CONTAINERS}[0].image: MPIReplicaSpec is not valid: Image is undefined "
            "in the container of Launcher"
        ],
    ),
    "an MPIJob without roles": (
        a_job("MPIJob", {}),
        ["spec.mpiReplicaSpecs: MPIReplicaSpecs is not valid (name at least one of Launcher, Worker)"],
    ),
    "an MPIJob's containers of any name": (with_container("MPIJob", "Launcher", name="main", image="i"), []),
    "an MPIJob's name that no service could have": (a_job("MPIJob", {"Launcher": 1}, name="1job"), []),
    "an MXJob named 1job": (
        a_job("MXJob", {"Worker": 1}, name="1job", **MODE),
        [f"metadata.name: MXJob name is invalid: [{BAD_NAME}]"],
    ),
    "an MXJob without a container for MXNet": (
        with_container("MXJob", "Worker", name="main", image="i"),
        [f'spec.mxReplicaSpecs[Worker].{CONTAINERS}: MXJobSpec is not valid (call it "mxnet" instead of "main")'],
    ),
    "an MXJob without roles": (
        a_job("MXJob", {}, **MODE),
        [
            "spec.mxReplicaSpecs: MXJobSpec is not valid (name at least one of Scheduler, Server, Worker, "
            "TunerTracker, TunerServer, Tuner)"
        ],
    ),
    "an MXJob without a mode": (a_job("MXJob", {"Worker": 1}), ["spec.jobMode: Required value"]),
    "an object without a spec": (
        {"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": "demo"}},
        ["spec.jaxReplicaSpecs: Required value: must be required (name at least one of Worker)"],
    ),
    "a spec without its replica map": (
        {"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": "demo"}, "spec": {}},
        ["spec.jaxReplicaSpecs: Required value"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("job", "want"), ANSWERS.values(), ids=ANSWERS.keys())
def test_what_we_say_to(job: Json, want: list[str]) -> None:
    assert refused(job) == want


def test_a_name_that_is_yet_to_be_generated_is_not_judged() -> None:
    job = a_job("PyTorchJob", {"Worker": 1})
    job["metadata"] = {"generateName": "train-"}
    assert refused(job) == []


def queued(queue: str | None) -> Json:
    policy = {"schedulingPolicy": {"queue": queue} if queue else {}}
    return a_job("PyTorchJob", {"Worker": 1}, run_policy=policy)


QUEUE = "spec.runPolicy.schedulingPolicy.queue"
EDITS: dict[str, tuple[Json, Json, list[str]]] = {
    "a job stays in its queue": (
        queued("a"),
        queued("b"),
        [
            f'{QUEUE}: Invalid value: "b": {QUEUE} is immutable (it is "a"; take it away first, or make the job anew)'
        ],
    ),
    "a queue may be given later": (queued(None), queued("b"), []),
    "and taken away": (queued("a"), queued(None), []),
    "the same one is no change": (queued("a"), queued("a"), []),
    "a job may be scaled": (a_job("JAXJob", {"Worker": 1}), a_job("JAXJob", {"Worker": 3}), []),
    "a job stays with its manager": (
        a_job("JAXJob", {"Worker": 1}),
        a_job("JAXJob", {"Worker": 1}, run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}),
        ['spec.runPolicy.managedBy: Invalid value: "kueue.x-k8s.io/multikueue": field is immutable'],
    ),
}


@pytest.mark.parametrize(("old", "new", "want"), EDITS.values(), ids=EDITS.keys())
def test_what_may_change(old: Json, new: Json, want: list[str]) -> None:
    assert refused(new, old) == want


WARNINGS = {
    "an MXJob is told that it is old": (
        a_job("MXJob", {"Worker": 1}, **MODE),
        ["MXJob is deprecated: Kubeflow dropped it in release v1.9.0. Here it keeps working."],
    ),
    "so is the old spelling of processes": (
        a_job("PyTorchJob", {"Worker": 1}, elasticPolicy={"nProcPerNode": 2}),
        ["spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"],
    ),
    "an odd cleanPodPolicy is explained": (
        a_job("JAXJob", {"Worker": 1}, run_policy={"cleanPodPolicy": "Foo"}),
        ['cleanPodPolicy "Foo" is none of None, Running, All: it acts as All'],
    ),
    "most jobs need no warning": (a_job("TFJob", {"Worker": 1}), []),
}


@pytest.mark.parametrize(("job", "want"), WARNINGS.values(), ids=WARNINGS.keys())
def test_what_a_user_is_warned_of(job: Json, want: list[str]) -> None:
    assert kind_of(job).warnings(job) == want


# -- conditions ----------------------------------------------------------------------------------------------------

AT = {"start": NOW, "later": NOW + timedelta(minutes=1)}


def brief(conditions: list[Json]) -> str:
    return " ".join(one["type"] + ("" if one["status"] == "True" else "=False") for one in conditions)


def mark(text: str) -> Mark:
    """`Running` has come, `Running=False` has gone; `Suspended=False/Resumed` for another reason."""
    text, _, reason = text.partition("/")
    state, _, _ = text.partition("=")
    return Mark(state, f"JAXJob{reason or state}", f"about {text}", holds=state == text)  # type: ignore[arg-type]


HISTORIES = {
    "a job begins": ("Created", "Created"),
    "it runs": ("Created Running", "Created Running"),
    "it restarts, and no longer runs": ("Created Running Restarting", "Created Restarting"),
    "it runs again": ("Created Running Restarting Running", "Created Running"),
    "success ends running": ("Created Running Succeeded", "Created Running=False Succeeded"),
    "failure ends running": ("Created Running Failed", "Created Running=False Failed"),
    "a fast job was never seen running": ("Created Succeeded", "Created Succeeded"),
    # v1 leaves Restarting standing beside the end; its own tests of success ask that it does not.
    "success ends restarting": ("Created Restarting Succeeded", "Created Restarting=False Succeeded"),
    "failure is for ever": ("Created Failed Running Succeeded Suspended", "Created Failed"),
    "the order is that of the last change": (
        "Created Suspended Suspended=False/Resumed Running", "Created Suspended=False Running",
    ),
    "suspended while running": (
        "Created Running Running=False/Suspended Suspended", "Created Running=False Suspended",
    ),
    "suspended while restarting": ("Created Restarting Suspended", "Created Restarting Suspended"),
    "resumed and running": (
        "Created Running Running=False/Suspended Suspended Suspended=False/Resumed Running",
        "Created Suspended=False Running",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("events", "want"), HISTORIES.values(), ids=HISTORIES.keys())
def test_conditions_tell_what_happened(events: str, want: str) -> None:
    conditions: list[Json] = []
    for event in events.split():
        conditions = with_condition(conditions, mark(event), NOW)
    assert brief(conditions) == want


@dataclass
class Change:
    before: Mark
    after: Mark
    updated: str
    transitioned: str
    message: str


CHANGES = {
    "the same again changes nothing, not even its message": Change(
        Mark("Running", "R", "first"), Mark("Running", "R", "second"), "start", "start", "first"
    ),
    "another reason is an update and no transition": Change(
        Mark("Running", "R", "first"), Mark("Running", "Other", "second"), "later", "start", "second"
    ),
    "another status is both": Change(
        Mark("Running", "R", "first"), Mark("Running", "R", "second", holds=False), "later", "later", "second"
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_when_a_condition_changed(change: Change) -> None:
    [found] = with_condition(with_condition([], change.before, AT["start"]), change.after, AT["later"])
    assert found["lastUpdateTime"] == stamp(AT[change.updated])
    assert found["lastTransitionTime"] == stamp(AT[change.transitioned])
    assert found["message"] == change.message


def test_what_running_said_stays_when_the_job_ends() -> None:
    running = with_condition([], Mark("Running", "R", "it runs"), AT["start"])
    [found, _] = with_condition(running, Mark("Succeeded", "S", "it is done"), AT["later"])
    assert found == running[0] | {"status": "False"}


def test_the_list_that_was_given_is_left_as_it_is() -> None:
    given = with_condition([], mark("Running"), NOW)
    before = json.dumps(given)
    with_condition(given, mark("Succeeded"), NOW)
    assert json.dumps(given) == before


# -- status --------------------------------------------------------------------------------------------------------


def status_of(kind: str, roles: dict[str, int], report: Report, before: Json | None = None) -> Json:
    one = KINDS[kind]
    return one.dialect.status(one.framework, one.read(a_job(kind, roles)), before or {}, report, NOW)


@pytest.mark.parametrize("kind", ["PyTorchJob", "PaddleJob", "JAXJob"])
def test_replicas_say_how_to_select_them(kind: str) -> None:
    found = status_of(kind, {"Worker": 1}, Report(counts={"Worker": Counts()}))
    labels = ("job-name=demo", f"operator-name={kind.lower()}-controller", "replica-type=worker")
    assert found["replicaStatuses"] == {"Worker": {"selector": ",".join(LABEL + one for one in labels)}}


@pytest.mark.parametrize("kind", ["TFJob", "MXJob", "MPIJob", "XGBoostJob"])
def test_others_do_not_and_zero_counts_are_left_out(kind: str) -> None:
    found = status_of(kind, {"Worker": 2}, Report(counts={"Worker": Counts(2, 0, 1), "Master": Counts()}))
    assert found["replicaStatuses"] == {"Worker": {"active": 2, "failed": 1}, "Master": {}}


def test_a_status_is_read_as_it_was_written() -> None:
    report = Report(
        (mark("Created"), mark("Running")), {"Worker": Counts(1, 2, 3)}, NOW, NOW + timedelta(minutes=1), 4
    )
    written = status_of("TFJob", {"Worker": 6}, report)
    read = KINDS["TFJob"].read(a_job("TFJob", {"Worker": 6}, status=written)).status
    assert read.states == {"Created", "Running"}
    assert (read.started_at, read.completed_at) == (report.started_at, report.completed_at)
    assert (read.counts, read.restarts) == (report.counts, 4)
    assert not read.finished


def test_unset_times_are_left_out() -> None:
    assert status_of("TFJob", {"Worker": 1}, Report((mark("Created"),))).keys() == {"conditions"}


RETRYABLE = {0: False, 1: False, 2: False, 127: False, 128: True, 130: True, 137: True, 143: True, 255: True}


@pytest.mark.parametrize(("code", "want"), RETRYABLE.items())
def test_exit_codes_from_128_on_are_forgiven(code: int, want: bool) -> None:
    assert KINDS["TFJob"].dialect.retryable(code) == want


STRANGERS = {
    "no labels": {},
    "no role": {LABEL + "replica-index": "1"},
    "an index that is none": {LABEL + "replica-type": "worker", LABEL + "replica-index": "-1"},
}


@pytest.mark.parametrize("labels", STRANGERS.values(), ids=STRANGERS.keys())
def test_a_pod_that_no_member_could_have_is_nobodys(labels: dict[str, str]) -> None:
    one = KINDS["TFJob"]
    assert one.dialect.member(one.framework, {"metadata": {"labels": labels}}) is None
