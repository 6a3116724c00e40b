"""What must hold for every framework, and when each calls its job done."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullrank.api.meta import Json, owner_reference
from fullrank.api.schema import openapi
from fullrank.dialects.registry import JOB_KINDS
from fullrank.frameworks.contract import Framework, Member
from fullrank.frameworks.registry import FRAMEWORKS, TRAINING_FRAMEWORKS
from fullrank.planning.desired import companions_for, pod_for, service_for
from tests.build import NOW, a_job, gang_of, kind_of, member

ALL = pytest.mark.parametrize("framework", [*FRAMEWORKS, *TRAINING_FRAMEWORKS], ids=lambda one: one.kind)
OF_KUBEFLOW = pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda one: one.kind)
# The roles whose number the kind leaves to the user.
FREE = {
    "PyTorchJob": ("Worker",), "TFJob": ("Worker", "PS", "Evaluator"), "MPIJob": ("Worker",),
    "MXJob": ("Server", "Worker"), "PaddleJob": ("Master", "Worker"), "XGBoostJob": ("Worker",), "JAXJob": ("Worker",),
    "TensorFlowTrainingJob": ("worker", "ps", "evaluator"), "TensorFlowJob": ("worker", "ps", "evaluator"),
    "PyTorchTrainingJob": ("worker",), "XGBoostTrainingJob": ("worker",), "GenericJob": ("worker",),
}  # fmt: skip
FIXED = {"MPIJob": {"Launcher": 1}, "XGBoostJob": {"Master": 1}, "XGBoostTrainingJob": {"master": 1}}


@st.composite
def jobs(draw: st.DrawFn, framework: Framework) -> Json:
    counts = {role: draw(st.integers(0, 5)) for role in FREE[framework.kind]}
    leaders = {"PyTorchJob": ("Master",), "TFJob": ("Chief", "Master"), "MXJob": ("Scheduler",)}
    leader = draw(st.sampled_from((None, *leaders.get(framework.kind, ()))))
    counts |= FIXED.get(framework.kind, {}) | ({leader: 1} if leader else {})
    if not any(counts.values()):
        counts[FREE[framework.kind][0]] = 1
    mode: dict[str, Any] = {"jobMode": "MXTrain"} if framework.kind == "MXJob" else {}
    return a_job(framework.kind, counts, **mode)


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_ranks_are_zero_to_n_and_names_are_their_own(framework: Framework, data: st.DataObject) -> None:
    gang = gang_of(data.draw(jobs(framework)))
    assert [gang.rank(one) for one in gang.members] == list(range(gang.size))
    assert len({gang.name(one) for one in gang.members}) == gang.size == len(gang.members)


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_job_is_done_when_everybody_is_and_not_when_nobody_is(
    framework: Framework, data: st.DataObject
) -> None:
    gang = gang_of(data.draw(jobs(framework)))
    assert framework.finished_at(gang, {}) is None
    done = {one: NOW + timedelta(seconds=gang.rank(one)) for one in gang.members}
    end = framework.finished_at(gang, done)
    assert end is not None
    assert NOW <= end <= max(done.values())


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_being_done_is_for_good(framework: Framework, data: st.DataObject) -> None:
    """One more member that succeeds later never takes the end back, nor moves it."""
    gang = gang_of(data.draw(jobs(framework)))
    done = dict(zip(gang.members, (NOW + timedelta(seconds=one) for one in range(gang.size)), strict=True))
    order = data.draw(st.permutations(gang.members))
    times = dict(zip(order, sorted(done.values()), strict=True))
    ends = [
        framework.finished_at(gang, {one: times[one] for one in order[:count]})
        for count in range(len(order) + 1)
    ]
    seen = [end for end in ends if end is not None]
    assert ends[len(ends) - len(seen) :] == seen
    assert len(set(seen)) == 1


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_wiring_is_a_function_of_its_arguments(framework: Framework, data: st.DataObject) -> None:
    job = data.draw(jobs(framework))
    first, second = gang_of(job), gang_of(job)
    forwards = {one: framework.wire(first, one) for one in first.members}
    backwards = {one: framework.wire(second, one) for one in reversed(second.members)}
    assert forwards == backwards


@ALL
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_listeners_are_members(framework: Framework, data: st.DataObject) -> None:
    gang = gang_of(data.draw(jobs(framework)))
    found = framework.listeners(gang)
    assert set(found) <= set(gang.members)
    assert len(found) == len(set(found))


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


NUMBERS, LETTERS = st.integers(-2, 3), st.sampled_from(("", "auto", "--3", "²", "+4", "x", "pytorch"))
RESOURCES = maybe(limits=st.dictionaries(st.sampled_from(("cpu", "nvidia.com/gpu")), st.just(1)))
OPTIONS = maybe(
    elasticPolicy=maybe(
        minReplicas=NUMBERS,
        maxReplicas=NUMBERS,
        rdzvConf=st.lists(maybe(key=LETTERS, value=LETTERS), max_size=2),
        nProcPerNode=NUMBERS,
        metrics=st.lists(st.just({"type": "Resource"}), max_size=1),
    ),
    nprocPerNode=LETTERS,
    successPolicy=st.sampled_from(("", "AllWorkers", "Any")),
    enableDynamicWorker=st.booleans(),
    slotsPerWorker=NUMBERS,
    mainContainer=LETTERS,
    runPolicy=maybe(cleanPodPolicy=LETTERS, suspend=st.booleans(), backoffLimit=NUMBERS),
)


def templates(framework: Framework) -> st.SearchStrategy[Json]:
    names = st.sampled_from((framework.port_name, "web"))
    port = st.fixed_dictionaries({"containerPort": st.integers(1, 9)}, optional={"name": names})
    main = st.fixed_dictionaries(
        {"name": st.just(framework.container), "image": st.just("i")},
        optional={"ports": st.lists(port, max_size=2), "resources": RESOURCES},
    )
    sidecars = st.lists(st.just({"name": "sidecar", "image": "i"}), max_size=1)
    return st.builds(lambda first, rest: {"spec": {"containers": [*rest, first]}}, main, sidecars)


def odd_jobs(framework: Framework) -> st.SearchStrategy[Json]:
    policies = st.sampled_from(("", "Never", "ExitCode"))
    replica = st.fixed_dictionaries(
        {"template": templates(framework)}, optional={"replicas": NUMBERS, "restartPolicy": policies}
    )
    roles = st.dictionaries(st.sampled_from((*framework.roles, "worker", "Extra")), replica, max_size=3)
    return st.builds(
        lambda roles, options: a_job(framework.kind, roles, jobMode="x", **options), roles, OPTIONS
    )


@ALL
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_job_that_is_let_in_can_be_planned(framework: Framework, data: st.DataObject) -> None:
    job = data.draw(odd_jobs(framework))
    kind, owner = kind_of(job), owner_reference(job)
    if kind.complaints(job):
        return
    gang = gang_of(job)
    pods = [pod_for(kind, gang, one, owner) for one in gang.members]
    services = [service_for(kind, gang, one, owner) for one in gang.served]
    assert {one["metadata"]["name"] for one in pods} >= {one["metadata"]["name"] for one in services}
    assert [kind.dialect.member(framework, one) for one in pods] == [*gang.members]
    assert {one["kind"] for _, one in companions_for(gang, gang.members, owner)} <= {
        one.kind for one in framework.companion_kinds
    }
    assert set(framework.listeners(gang)) <= set(gang.members)


@OF_KUBEFLOW
def test_words_take_a_number_and_a_role(framework: Framework) -> None:
    words = framework.words(gang_of(a_job(framework.kind, {framework.roles[0]: 1})).job)
    for text in (words.failed, words.restarting):
        assert "Worker replica(s) failed." in text.format(count=2, role="Worker")


@OF_KUBEFLOW
def test_the_schema_says_what_only_this_kind_has(framework: Framework) -> None:
    kind = next(one for one in JOB_KINDS if one.framework is framework)
    spec = openapi(kind.schema)["properties"]["spec"]["properties"]
    assert {framework.replicas_field, "runPolicy", *framework.options} == set(spec)


@dataclass
class Case:
    kind: str
    roles: dict[str, int]
    done: tuple[str, ...]
    want: str | None  # whose end is the job's
    spec: dict[str, Any] = field(default_factory=dict)


CHIEF = {"Chief": 1, "PS": 1, "Worker": 2}
MX = {"Scheduler": 1, "Server": 1, "Worker": 2}
ALL_WORKERS = {"successPolicy": "AllWorkers"}
FINISH = {
    "PyTorch: the master decides": Case(
        "PyTorchJob", {"Master": 1, "Worker": 2}, ("worker-0", "master-0"), "master-0"
    ),
    "PyTorch: workers do not while the master runs": Case(
        "PyTorchJob", {"Master": 1, "Worker": 2}, ("worker-0", "worker-1"), None
    ),
    "PyTorch: without a master the last worker does": Case(
        "PyTorchJob", {"Worker": 2}, ("worker-1", "worker-0"), "worker-0"
    ),
    "PyTorch: one of two workers is not enough": Case("PyTorchJob", {"Worker": 2}, ("worker-0",), None),
    "PyTorch: of an elastic job the first worker is": Case(
        "PyTorchJob", {"Worker": 3}, ("worker-2", "worker-0"), "worker-2", {"elasticPolicy": {}}
    ),
    "PyTorch: an elastic job with a master waits for it": Case(
        "PyTorchJob", {"Master": 1, "Worker": 2}, ("worker-0",), None, {"elasticPolicy": {}}
    ),
    "Paddle: an elastic job waits for all": Case(
        "PaddleJob", {"Worker": 2}, ("worker-0",), None, {"elasticPolicy": {}}
    ),
    "Paddle: all masters decide": Case(
        "PaddleJob", {"Master": 2, "Worker": 1}, ("master-1", "master-0"), "master-0"
    ),
    "TF: the chief decides": Case("TFJob", CHIEF, ("worker-0", "chief-0"), "chief-0"),
    "TF: with a chief all workers' ends are nothing": Case("TFJob", CHIEF, ("worker-0", "worker-1"), None),
    "TF: a master is a chief": Case("TFJob", {"Master": 1, "Worker": 1}, ("master-0",), "master-0"),
    "TF: worker 0 decides": Case("TFJob", {"PS": 1, "Worker": 4}, ("worker-0",), "worker-0"),
    "TF: another worker does not": Case("TFJob", {"PS": 1, "Worker": 4}, ("worker-1", "worker-2"), None),
    "TF: unless all have to": Case("TFJob", {"Worker": 2}, ("worker-0",), None, ALL_WORKERS),
    "TF: and then the last one does": Case(
        "TFJob", {"Worker": 2}, ("worker-0", "worker-1"), "worker-1", ALL_WORKERS
    ),
    "TF: with a chief that policy is ignored": Case("TFJob", CHIEF, ("chief-0",), "chief-0", ALL_WORKERS),
    "TF: servers and evaluators never decide": Case(
        "TFJob", {"Chief": 1, "PS": 1, "Evaluator": 1}, ("ps-0", "evaluator-0"), None
    ),
    "TF: servers alone end when all have": Case("TFJob", {"PS": 2}, ("ps-0", "ps-1"), "ps-1"),
    "MX: the scheduler decides": Case("MXJob", MX, ("scheduler-0",), "scheduler-0"),
    "MX: servers and workers do not": Case("MXJob", MX, ("server-0", "worker-0", "worker-1"), None),
    "MX: a single worker does": Case("MXJob", {"Worker": 1}, ("worker-0",), "worker-0"),
    "MX: without a scheduler all have to end": Case(
        "MXJob", {"Worker": 2}, ("worker-0", "worker-1"), "worker-1"
    ),
    "MX: a tuning job ends with its last member": Case(
        "MXJob", {"TunerTracker": 1, "TunerServer": 1, "Tuner": 1}, ("tuner-0", "tunerserver-0"), None
    ),
    "MPI: the launcher decides": Case("MPIJob", {"Launcher": 1, "Worker": 2}, ("launcher",), "launcher"),
    "MPI: workers do not": Case("MPIJob", {"Launcher": 1, "Worker": 2}, ("worker-0", "worker-1"), None),
    "XGBoost: the master decides": Case("XGBoostJob", {"Master": 1, "Worker": 2}, ("master-0",), "master-0"),
    "XGBoost: workers do not": Case("XGBoostJob", {"Master": 1, "Worker": 1}, ("worker-0",), None),
    "JAX: the last worker decides": Case("JAXJob", {"Worker": 2}, ("worker-1", "worker-0"), "worker-0"),
    "JAX: the coordinator alone does not": Case("JAXJob", {"Worker": 2}, ("worker-0",), None),
}


@pytest.mark.parametrize("case", FINISH.values(), ids=FINISH.keys())
def test_whose_end_is_the_jobs(case: Case) -> None:
    gang = gang_of(a_job(case.kind, case.roles, **case.spec))
    done = {member(who, gang): NOW + timedelta(seconds=order) for order, who in enumerate(case.done)}
    want = done[member(case.want, gang)] if case.want else None
    assert gang.framework.finished_at(gang, done) == want


DYNAMIC = {"enableDynamicWorker": True}
SPARED: dict[str, tuple[dict[str, int], dict[str, Any], Member, bool]] = {
    "a worker's failure is the job's": ({"Chief": 1, "Worker": 2}, {}, Member("Worker", 1), False),
    "a dynamic worker's is not": ({"PS": 1, "Worker": 3}, DYNAMIC, Member("Worker", 1), True),
    "unless nothing is done without it": ({"PS": 1, "Worker": 3}, DYNAMIC, Member("Worker", 0), False),
    "with a chief even worker 0 may go": ({"Chief": 1, "Worker": 3}, DYNAMIC, Member("Worker", 0), True),
    "not where all workers have to succeed": (
        {"Worker": 3}, DYNAMIC | ALL_WORKERS, Member("Worker", 1), False,
    ),
    "a server of dynamic workers may not": ({"PS": 1, "Worker": 3}, DYNAMIC, Member("PS", 0), False),
}  # fmt: skip


@pytest.mark.parametrize(("roles", "spec", "who", "want"), SPARED.values(), ids=SPARED.keys())
def test_whose_failure_a_tfjob_tolerates(
    roles: dict[str, int], spec: dict[str, Any], who: Member, want: bool
) -> None:
    gang = gang_of(a_job("TFJob", roles, **spec))
    assert gang.framework.tolerates(gang, who) == want


PLAIN = ("{kind} demo is running.", "{kind} demo is successfully completed.")
SPACED = ("{kind} team/demo is running.", "{kind} team/demo successfully completed.")
FAILED, RESTARTED = "{kind} demo is failed because 2 Worker", "{kind} demo is restarting because 2 Worker"
WORDS = {
    "PyTorchJob with a master": ("PyTorchJob", {"Master": 1, "Worker": 1}, *PLAIN, FAILED, RESTARTED),
    "PyTorchJob without": ("PyTorchJob", {"Worker": 1}, *SPACED, FAILED, RESTARTED),
    "PaddleJob with a master": ("PaddleJob", {"Master": 1}, *PLAIN, FAILED, RESTARTED),
    "PaddleJob without": ("PaddleJob", {"Worker": 1}, *SPACED, FAILED, RESTARTED),
    "JAXJob": ("JAXJob", {"Worker": 1}, *SPACED, FAILED, RESTARTED),
    "TFJob": (
        "TFJob", {"Worker": 1}, *SPACED, "{kind} team/demo has failed because 2 Worker",
        "job demo is restarting because Worker",
    ),
    "XGBoostJob": ("XGBoostJob", {"Master": 1}, *PLAIN, FAILED, RESTARTED),
    "MPIJob": ("MPIJob", {"Launcher": 1}, *PLAIN, FAILED, RESTARTED),
    "MXJob": (
        "MXJob", {"Worker": 1}, *PLAIN, "mxjob demo is failed because 2 Worker",
        "mxjob demo is restarting because 2 Worker",
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", WORDS.values(), ids=WORDS.keys())
def test_users_read_the_texts_they_know(row: tuple[str, dict[str, int], str, str, str, str]) -> None:
    kind, roles, running, succeeded, failed, restarting = row
    gang = gang_of(a_job(kind, roles))
    words = gang.framework.words(gang.job)
    assert (words.running, words.succeeded) == (running.format(kind=kind), succeeded.format(kind=kind))
    assert words.failed.format(count=2, role="Worker") == f"{failed.format(kind=kind)} replica(s) failed."
    assert (
        words.restarting.format(count=2, role="Worker")
        == f"{restarting.format(kind=kind)} replica(s) failed."
    )
