"""batch.tensorstack.dev/v1beta1 as its users know it: what is read and refused, what members are told, the status."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullrank.api.meta import Json, owner_reference
from fullrank.api.patches import merge_patch
from fullrank.api.schema import complaints as schema_complaints
from fullrank.api.schema import pruned
from fullrank.dialects.registry import JOB_KINDS
from fullrank.dialects.tensorstack import TENSORSTACK
from fullrank.frameworks.contract import Member
from fullrank.planning.desired import pod_for, service_for
from tests.build import a_job, a_template, gang_of, kind_of, member
from tests.unit.stage import Stage

KINDS = {one.kind.kind: one for one in JOB_KINDS if one.dialect is TENSORSTACK}

# -- the kinds -----------------------------------------------------------------------------------------------------

IDENTITY = {
    "TensorFlowTrainingJob": ("tensorflowtrainingjobs", ("tj",)),
    "TensorFlowJob": ("tensorflowjobs", ()),
    "PyTorchTrainingJob": ("pytorchtrainingjobs", ("pj",)),
    "XGBoostTrainingJob": ("xgboosttrainingjobs", ("xj",)),
    "GenericJob": ("genericjobs", ("gj",)),
}


@pytest.mark.parametrize("name", IDENTITY)
def test_a_kind_is_what_clients_call_it(name: str) -> None:
    kind = KINDS[name].kind
    assert kind.api_version == "batch.tensorstack.dev/v1beta1"
    assert (kind.plural, kind.short_names) == IDENTITY[name]
    assert [column.name for column in kind.columns] == ["Phase", "Age"]


def test_all_kinds_are_there_and_the_alias_has_the_same_schema() -> None:
    assert set(KINDS) == set(IDENTITY)
    one, other = KINDS["TensorFlowJob"].schema, KINDS["TensorFlowTrainingJob"].schema
    assert one.properties["spec"] == other.properties["spec"]


# -- the tutorial --------------------------------------------------------------------------------------------------


def the_tutorials_job(**spec: Any) -> Json:
    template = a_template(
        "tensorflow",
        workingDir="/mnt",
        command=["sh", "-c", "python /mnt/keras_mnist_trainingjob.py --log_dir /mnt/log"],
        env=[],
    )
    worker = {"replicas": 4, "restartPolicy": "ExitCode", "template": template}
    board = {"trainingLogFilesets": ["t9k://pvc/mnist/log"], "image": "tensorflow/tensorflow:2.14.0"}
    return a_job("TensorFlowJob", {"worker": worker}, name="mnist", tensorboardSpec=board, **spec)


def said(stage: Stage) -> list[tuple[str, str, str, str]]:
    return [(one["type"], one["status"], one["reason"], one["message"]) for one in stage.status["conditions"]]


def test_the_tutorials_job_runs_and_is_done() -> None:
    stage = Stage(the_tutorials_job())
    assert refused(stage.job) == []
    stage.settle()
    names = sorted(stage.pods)
    stem = names[0].removesuffix("-worker-0")
    assert names == sorted(stage.services) == [f"{stem}-worker-{index}" for index in range(4)]
    assert len(stem.removeprefix("mnist-")) == 5
    assert stage.status["phase"] == "Pending"
    stage.run()
    stage.settle()
    assert stage.status["phase"] == stage.job_kind.state(stage.job) == "Running"
    well = "All pods are running normally."
    begun = ("Initialized", "True", "-", "The job has been initialized successfully.")
    assert said(stage) == [
        begun,
        ("Running", "True", "-", well),
        ("ReplicaFailure", "False", "-", well),
    ]
    for name in names:
        stage.end(name, 0)
    stage.settle()
    over = ("Succeeded", "The job has finished successfully.")
    assert said(stage) == [
        begun,
        ("Running", "False", *over),
        ("Failed", "False", *over),
        ("Completed", "True", *over),
        ("ReplicaFailure", "False", "-", well),
    ]
    assert (stage.status["phase"], stage.job_kind.state(stage.job)) == ("Succeeded", "Done")
    assert stage.status["backoffCount"] == 0
    assert stage.status["aggregate"] == {
        "creating": 0, "pending": 0, "running": 0, "succeeded": 4, "failed": 0, "unknown": 0, "deleted": 0,
    }  # fmt: skip
    (task,) = stage.status["tasks"]
    assert (task["type"], task["restartCount"], len(task["replicas"])) == ("worker", 0, 4)
    assert task["replicas"][0] == {
        "name": names[0],
        "uid": stage.pods[names[0]]["metadata"]["uid"],
        "phase": "Succeeded",
        "containers": [{"name": "tensorflow", "state": "Terminated", "exitCode": 0}],
    }
    assert all("lastUpdateTime" not in one for one in stage.status["conditions"])
    assert [line.split(":")[0] for line in stage.told if "Exited" not in line] == [
        "Normal Created", "Normal Start", "Normal Succeeded",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "again"), [(130, True), (137, True), (138, True), (143, True), (139, False), (1, False)]
)
def test_which_exit_codes_are_forgiven(code: int, again: bool) -> None:
    stage = Stage(the_tutorials_job())
    stage.settle()
    stage.run()
    stage.settle()
    main = min(stage.pods)
    stage.end(main, code)
    stage.settle()
    assert (stage.status["backoffCount"] == 1) == again
    assert ("Failed" in stage.states) != again
    if not again:
        text = f"TensorFlowJob mnist has failed: {main} failed with exit code {code}"
        assert ("Completed", "True", "Failed", text) in said(stage)
        assert ("ReplicaFailure", "True", "ErrorInPod", f"Pod[{main}] exited with error code {code}") in said(
            stage
        )


# -- reading -------------------------------------------------------------------------------------------------------


def read(kind: str, roles: dict[str, Any], **more: Any) -> Any:
    job = a_job(kind, roles, **more)
    return kind_of(job).read(job)


def test_queue_and_priority_are_the_schedulers() -> None:
    policy = read(
        "PyTorchTrainingJob", {"node": 1}, scheduler={"t9kScheduler": {"queue": "q", "priority": 50}}
    ).run_policy
    assert (policy.queue, policy.priority) == ("q", 50)


BUDGETS = {"TensorFlowTrainingJob": None, "PyTorchTrainingJob": 3, "XGBoostTrainingJob": None}


@pytest.mark.parametrize(("kind", "budget"), BUDGETS.items())
def test_how_often_members_are_replaced(kind: str, budget: int | None) -> None:
    assert read(kind, {"worker": 1}).run_policy.restart_budget == budget
    assert read(kind, {"worker": 1}, run_policy={"backoffLimit": 0}).run_policy.restart_budget == 0


CLEANING = {"None": ("None", True), "Unfinished": ("Running", False), "All": ("All", False)}


@pytest.mark.parametrize(("word", "want"), CLEANING.items())
def test_what_is_cleaned_up(word: str, want: tuple[str, bool]) -> None:
    by_policy = read("XGBoostTrainingJob", {"master": 1}, run_policy={"cleanUpPolicy": word}).run_policy
    by_spec = read("GenericJob", {"a": 1}, cleanUpPolicy=word).run_policy
    assert (by_policy.clean_pods, by_policy.keeps_pods_on_purpose) == want
    assert (by_spec.clean_pods, by_spec.keeps_pods_on_purpose) == want


ELASTIC: dict[str, tuple[dict[str, int], dict[str, Any], list[int]]] = {
    "as many as are expected": ({"expectedReplicas": 3}, {"node": 1}, [3]),
    "not more than allowed": ({"expectedReplicas": 9}, {"node": 1}, [4]),
    "at least as many as needed": ({}, {"node": 1}, [2]),
    "other roles stay as they are": ({"expectedReplicas": 4}, {"node": 1, "ps": 1}, [3, 1]),
}


@pytest.mark.parametrize(("elastic", "roles", "want"), ELASTIC.values(), ids=ELASTIC.keys())
def test_an_elastic_job_has(elastic: dict[str, int], roles: dict[str, Any], want: list[int]) -> None:
    bounds = {"enabled": True, "minReplicas": 2, "maxReplicas": 4} | elastic
    assert [role.replicas for role in read("PyTorchTrainingJob", roles, elastic=bounds).roles] == want


def test_roles_share_by_their_weight() -> None:
    roles = {
        name: {"scalingWeight": weight, "template": a_template("python")}
        for name, weight in (("a", 2), ("b", 1))
    }
    elastic = {"enabled": True, "minReplicas": 1, "maxReplicas": 9, "expectedReplicas": 5}
    assert [role.replicas for role in read("PyTorchTrainingJob", roles, elastic=elastic).roles] == [4, 1]


# -- what members are told -----------------------------------------------------------------------------------------


def pod(job: Json, who: str) -> Json:
    gang = gang_of(job)
    return pod_for(kind_of(job), gang, member(who, gang), owner_reference(job))


def env(job: Json, who: str) -> dict[str, str]:
    return {one["name"]: one["value"] for one in pod(job, who)["spec"]["containers"][0].get("env", [])}


def test_tensorflow_reads_its_place_among_all() -> None:
    job = a_job("TensorFlowTrainingJob", {"chief": 1, "worker": 2, "ps": 1, "evaluator": 1})
    gang, told = gang_of(job), json.loads(env(job, "worker-1")["TF_CONFIG"])
    assert told["task"] == {"type": "worker", "index": 1}
    assert set(told["cluster"]) == {"chief", "worker", "ps"}
    assert told["cluster"]["worker"] == [f"{gang.job.stem}-worker-{index}.team.svc:2222" for index in (0, 1)]


def test_a_single_worker_is_told_as_well() -> None:
    assert "TF_CONFIG" in env(a_job("TensorFlowTrainingJob", {"worker": 1}), "worker-0")


@pytest.mark.parametrize(
    ("kind", "roles"),
    [("PyTorchTrainingJob", {"ps": 1, "node": 2}), ("XGBoostTrainingJob", {"master": 1, "worker": 2})],
)
def test_ranks_meet_at_the_first_member(kind: str, roles: dict[str, int]) -> None:
    job = a_job(kind, roles)
    gang = gang_of(job)
    first, last = gang.members[0], gang.members[-1]
    told = env(job, f"{last.role}-{last.index}")
    assert (told["MASTER_ADDR"], told["RANK"], told["WORLD_SIZE"]) == (gang.name(first), "2", "3")
    assert told["MASTER_PORT"] == str(gang.port(first))


def test_labels_say_who_owns_a_pod_and_which_is_the_main_one() -> None:
    job = a_job("PyTorchTrainingJob", {"ps": 1, "node": 2})
    main, other = (pod(job, who)["metadata"]["labels"] for who in ("ps-0", "node-1"))
    assert main["tensorstack.dev/owner-name"] == "demo"
    assert (main["job-role"], "job-role" in other) == ("master", False)
    assert (other["replica-type"], other["replica-index"]) == ("node", "1")
    assert kind_of(job).dialect.member(kind_of(job).framework, pod(job, "node-1")) == Member("node", 1)


def test_torchrun_takes_the_place_of_the_command() -> None:
    template = a_template("python", command=["python"], args=["train.py", "--epochs", "1"])
    config = {"enabled": True, "procPerNode": "2", "maxRestarts": 1, "extraOptions": ["--tee=3"]}
    job = a_job("PyTorchTrainingJob", {"node": {"replicas": 2, "template": template}}, torchrunConfig=config)
    main = pod(job, "node-1")["spec"]["containers"][0]
    assert main["command"] == [
        "torchrun", "--nnodes=2", "--nproc_per_node=2", "--max_restarts=1", "--rdzv_backend=c10d",
        "--rdzv_endpoint=$(MASTER_ADDR):$(MASTER_PORT)", "--rdzv_id=demo", "--tee=3",
    ]  # fmt: skip
    assert main["args"] == ["train.py", "--epochs", "1"]


def test_a_generic_job_is_told_what_it_asks_for() -> None:
    template = a_template(
        "main",
        command=["run", "$(type)", "$(rank)", "$(replicas[b])"],
        args=["$(service.b[1].host):$(service.port[web])", "$(HOME)"],
        env=[{"name": "ME", "value": "$(type)-$(rank)"}],
    )
    roles = {"a": {"template": template}, "b": 2}
    job = a_job("GenericJob", roles, service={"ports": [{"name": "web", "port": 80}]})
    main = pod(job, "a-0")["spec"]["containers"][0]
    assert main["command"] == ["run", "a", "0", "2"]
    assert main["args"] == ["demo-b-1:80", "$(HOME)"]
    assert main["env"] == [{"name": "ME", "value": "a-0"}]
    gang = gang_of(job)
    service = service_for(kind_of(job), gang, Member("b", 1), owner_reference(job))
    assert (service["metadata"]["name"], service["spec"]["ports"]) == (
        "demo-b-1",
        [{"name": "web", "port": 80}],
    )


def test_a_generic_job_without_ports_has_no_services() -> None:
    stage = Stage(a_job("GenericJob", {"a": 2}))
    stage.settle()
    assert (len(stage.pods), stage.services) == (2, {})


# -- run modes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("switch", ["enabled", "enable"])
def test_a_job_that_is_looked_into_sleeps(switch: str) -> None:
    template = a_template("python", command=["python"], args=["train.py"])
    template["spec"]["initContainers"] = [{"name": "fetch", "image": "i"}]
    debug = {switch: True, "replicaSpecs": [{"type": "node", "skipInitContainer": True}]}
    job = a_job(
        "PyTorchTrainingJob",
        {"node": {"template": template}, "other": {"template": a_template("python", args=["x"])}},
        runMode={"debug": debug},
        torchrunConfig={"enabled": True},
    )
    node, other = (pod(job, who)["spec"] for who in ("node-0", "other-0"))
    assert (node["containers"][0]["command"], node["containers"][0]["args"]) == (["sleep", "inf"], [])
    assert "initContainers" not in node
    assert other["containers"][0]["command"] == ["sleep", "inf"]


def test_a_paused_job_gives_everything_back_and_resumes_with_another_command() -> None:
    resume = [{"type": "worker", "command": ["python"], "args": ["resume.py"]}]
    job = a_job(
        "TensorFlowTrainingJob", {"worker": 2}, runMode={"pause": {"enabled": False, "resumeSpecs": resume}}
    )
    stage = Stage(job)
    stage.settle()
    assert all("command" not in one["spec"]["containers"][0] for one in stage.pods.values())
    stage.run()
    stage.settle()
    stage.edit(runMode={"pause": {"enabled": True, "resumeSpecs": resume}})
    stage.settle()
    stage.vanish()
    stage.settle()
    assert (stage.status["phase"], stage.pods, stage.services) == ("Paused", {}, {})
    assert stage.status["aggregate"]["deleted"] == 2
    assert stage.conditions == "Initialized Running=False ReplicaFailure=False Paused"
    stage.edit(runMode={"pause": {"enabled": False, "resumeSpecs": resume}})
    stage.settle()
    assert (stage.status["phase"], stage.conditions.split()[-1]) == ("Resuming", "Paused=False")
    assert {one["spec"]["containers"][0]["args"][0] for one in stage.pods.values()} == {"resume.py"}
    stage.run()
    stage.settle()
    assert stage.status["phase"] == "Running"


@pytest.mark.parametrize("on", [True, False])
def test_the_patch_that_pauses_a_job_is_read_as_such(on: bool) -> None:
    job = a_job("GenericJob", {"a": 1}, runMode={"pause": {"enable": not on, "resumeSpecs": []}})
    paused = merge_patch(job, TENSORSTACK.suspension(on))
    assert kind_of(job).read(paused).run_policy.suspend == on


# -- how jobs end --------------------------------------------------------------------------------------------------


def test_only_the_main_member_decides() -> None:
    stage = Stage(a_job("TensorFlowTrainingJob", {"worker": 2}, policy="Never"))
    stage.settle()
    stage.run()
    first, second = sorted(stage.pods)
    stage.end(second, 1)
    stage.settle()
    assert stage.status["phase"] == "Running"
    assert ("ReplicaFailure", "True", "ErrorInPod", f"Pod[{second}] exited with error code 1") in said(stage)
    stage.end(first, 0)
    stage.settle()
    assert stage.status["phase"] == "Succeeded"


def test_members_are_replaced_until_the_budget_is_spent() -> None:
    stage = Stage(a_job("PyTorchTrainingJob", {"node": 1}, run_policy={"backoffLimit": 2}))
    for _ in range(3):
        stage.settle()
        stage.run()
        stage.end(min(stage.pods), 1)
        stage.one_pass()
        stage.pass_time(60)
        stage.one_pass()
        stage.vanish()
    stage.settle()
    assert (stage.status["phase"], stage.status["backoffCount"]) == ("Failed", 2)
    assert stage.status["tasks"][0]["restartCount"] == 2


RULES: dict[str, tuple[dict[str, Any], dict[str, int], str, str]] = {
    "a success rule that holds decides": ({"successRules": [{"a": ["0"]}]}, {"a-0": 0}, "Succeeded", ""),
    "one of two members is not enough": ({"successRules": [{"b": ["0", "1"]}]}, {"b-1": 0}, "Running", ""),
    "both are": ({"successRules": [{"b": [0, 1]}]}, {"b-1": 0, "b-0": 0}, "Succeeded", ""),
    "without rules all have to succeed": ({}, {"a-0": 0, "b-0": 0}, "Running", ""),
    "and then they have": ({}, {"a-0": 0, "b-0": 0, "b-1": 0}, "Succeeded", ""),
    "a failure rule that holds decides": (
        {"successRules": [{"a": ["0"]}], "failureRules": [{"b": ["0"]}]}, {"b-0": 1}, "Failed",
        'The job is failed with rule: {"b":["0"]}',
    ),
    "a failure that no rule speaks of does not": ({"successRules": [{"a": ["0"]}]}, {"b-0": 1}, "Running", ""),
    "without which no success is possible does": ({"successRules": [{"a": ["0"]}]}, {"a-0": 3}, "Failed", ""),
}  # fmt: skip


@pytest.mark.parametrize(("rules", "ends", "phase", "message"), RULES.values(), ids=RULES.keys())
def test_a_generic_jobs_rules(rules: dict[str, Any], ends: dict[str, int], phase: str, message: str) -> None:
    stage = Stage(a_job("GenericJob", {"a": 1, "b": 2}, **rules))
    stage.settle()
    stage.run()
    stage.settle()
    for who, code in ends.items():
        stage.end(f"{gang_of(stage.job).job.stem}-{who}", code)
    stage.settle()
    assert stage.status["phase"] == phase
    assert not message or ("Failed", "True", "Failed", message) in said(stage)


def test_each_role_of_a_generic_job_has_its_own_limit() -> None:
    replica = {"template": a_template("main"), "restartPolicy": {"policy": "OnFailure", "limit": 1}}
    stage = Stage(a_job("GenericJob", {"a": replica, "b": 1}, successRules=[{"a": ["0"]}]))
    stem = gang_of(stage.job).job.stem
    for _ in range(2):
        stage.settle()
        assert "Failed" not in stage.states
        stage.run()
        stage.end(f"{stem}-a-0", 1)
        stage.one_pass()
        stage.vanish()
    stage.settle()
    assert stage.status["phase"] == "Failed"


# -- refusals ------------------------------------------------------------------------------------------------------


def refused(job: Json, old: Json | None = None) -> list[str]:
    by_schema = schema_complaints(job, kind_of(job).schema)
    return [str(one) for one in by_schema or kind_of(job).complaints(job, old)]


TF, SPECS = "TensorFlowTrainingJob", "spec.replicaSpecs"
REFUSED: dict[str, tuple[Json, list[str]]] = {
    "a misspelt role": (
        a_job(TF, {"woker": 1}),
        [
            f'{SPECS}[0].type: Unsupported value: "woker": supported values: "chief", "worker", "ps", "evaluator" '
            '(did you mean "worker"?)'
        ],
    ),
    "a container of another name": (
        a_job(TF, {"worker": {"template": a_template("main")}}),
        [
            f"{SPECS}[0].template.spec.containers: Required value: must have at least one container with name "
            'tensorflow (call it "tensorflow" instead of "main")'
        ],
    ),
    "any container of a PyTorchTrainingJob": (a_job("PyTorchTrainingJob", {"x": {"template": a_template("any")}}), []),
    "a capital letter": (a_job(TF, {"Worker": 1}), []),
    "no members": (
        a_job(TF, {}),
        [f"{SPECS}: Required value: must have members (add one of type chief or worker or ps or evaluator)"],
    ),
    "a master is missing": (
        a_job("XGBoostTrainingJob", {"worker": 1}),
        [f"{SPECS}: Required value: there must be a master (add one of type: master, with 1 replica)"],
    ),
    "a policy nobody knows": (
        a_job(TF, {"worker": 1}, policy="OnFail"),
        [
            f'{SPECS}[0].restartPolicy: Unsupported value: "OnFail": supported values: "Always", "OnFailure", "Never", '
            '"ExitCode" (did you mean "OnFailure"?)'
        ],
    ),
    "several things at once": (
        a_job(
            TF, {"worker": {"replicas": -1, "template": a_template("tensorflow")}, "pss": 1},
            scheduler={"t9kScheduler": {"priority": 101}},
        ),
        [
            "spec.scheduler.t9kScheduler.priority: Invalid value: 101: must be at most 100",
            f'{SPECS}[1].type: Unsupported value: "pss": supported values: "chief", "worker", "ps", "evaluator" '
            '(did you mean "ps"?)',
            f"{SPECS}[0].replicas: Invalid value: -1: should be a non-negative integer",
        ],
    ),
    "a type that no pod could be named after": (
        a_job("GenericJob", {"a_b": 1}),
        [
            f'{SPECS}[0].type: Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case '
            "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
            "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        ],
    ),
    "a port without a number": (
        a_job("GenericJob", {"a": 1}, service={"ports": [{"name": "p"}]}),
        ["spec.service.ports[0].port: Required value: say which port it is"],
    ),
    "a rule about nobody": (
        a_job("GenericJob", {"a": 1}, successRules=[{"b": ["0"]}, {"a": ["1"]}]),
        [
            'spec.successRules[0].b: Unsupported value: "b": supported values: "a" '
            "(rules speak of types in replicaSpecs)",
            'spec.successRules[1].a: Invalid value: "1": must be an index from 0 to 0',
        ],
    ),
    "an elastic job without bounds": (
        a_job("PyTorchTrainingJob", {"node": 1}, elastic={"enabled": True, "minReplicas": 1}),
        ["spec.elastic.maxReplicas: Required value: elastic training needs its bounds"],
    ),
    "a debug mode for nobody": (
        a_job(TF, {"worker": 1}, runMode={"debug": {"enabled": True, "replicaSpecs": [{"type": "workers"}]}}),
        [
            'spec.runMode.debug.replicaSpecs[0].type: Unsupported value: "workers": supported values: "worker" '
            '(did you mean "worker"?)'
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("job", "want"), REFUSED.values(), ids=REFUSED.keys())
def test_what_we_say_to(job: Json, want: list[str]) -> None:
    assert refused(job) == want


def test_what_a_job_resumes_with_is_fixed() -> None:
    def job(*command: str) -> Json:
        spec = {"type": "worker", "command": list(command)}
        return a_job(TF, {"worker": 1}, runMode={"pause": {"enabled": False, "resumeSpecs": [spec]}})

    assert refused(job("a"), job("a")) == []
    assert refused(job("b"), job("a")) == [
        "spec.runMode.pause.resumeSpecs: Forbidden: field is immutable "
        "(it is fixed when the job is made: make the job anew)"
    ]


def test_another_spelling_is_pointed_out() -> None:
    job = a_job(TF, {"worker": 1}, runMode={"debug": {"enable": True}})
    assert kind_of(job).warnings(job) == ["spec.runMode.debug.enable is read as spec.runMode.debug.enabled"]


# -- whatever is written -------------------------------------------------------------------------------------------

WORDS = st.sampled_from(("worker", "Worker", "master", "chief", "a_b", "", "x"))
NUMBERS = st.integers(-2, 3)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries({}, optional=fields)


def odd_specs(kind: str) -> st.SearchStrategy[Json]:
    framework = KINDS[kind].framework
    names = st.sampled_from((framework.container or "main", "other"))
    container = st.fixed_dictionaries(
        {"name": names}, optional={"image": st.just("i"), "command": st.just(["$(rank)"])}
    )
    template = maybe(spec=maybe(containers=st.lists(container, max_size=2)))
    policy: st.SearchStrategy[Any] = st.sampled_from(("Never", "OnFailure", "Sometimes"))
    policy = maybe(policy=policy, limit=NUMBERS) if framework.limits_by_role else policy
    replica = maybe(
        type=WORDS, replicas=NUMBERS, restartPolicy=policy, template=template, scalingWeight=NUMBERS
    )
    said = st.lists(maybe(type=WORDS, command=st.just(["x"]), skipInitContainer=st.booleans()), max_size=2)
    rules = st.lists(
        st.dictionaries(WORDS, st.lists(st.sampled_from((0, "1", "x", -1)), max_size=2), max_size=2),
        max_size=2,
    )
    modes = maybe(
        debug=maybe(enabled=st.booleans(), replicaSpecs=said),
        pause=maybe(enable=st.booleans(), resumeSpecs=said),
    )
    return maybe(
        replicaSpecs=st.lists(replica, max_size=3),
        runPolicy=maybe(backoffLimit=NUMBERS, cleanUpPolicy=WORDS),
        runMode=modes,
        elastic=maybe(
            enabled=st.booleans(), minReplicas=NUMBERS, maxReplicas=NUMBERS, expectedReplicas=NUMBERS
        ),
        torchrunConfig=maybe(enabled=st.booleans(), extraOptions=st.just(["--x"])),
        successRules=rules,
        failureRules=rules,
        service=maybe(ports=st.lists(maybe(name=WORDS, port=st.integers(1, 9)), max_size=2)),
    )


@pytest.mark.parametrize("kind", IDENTITY)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_job_that_is_let_in_can_be_played(kind: str, data: st.DataObject) -> None:
    job = a_job(kind, {}) | {"spec": data.draw(odd_specs(kind))}
    job = pruned(job, KINDS[kind].schema)
    if refused(job) or refused(job, job):
        return
    stage = Stage(job)
    stage.settle()
    stage.run()
    stage.settle()
    for name in sorted(stage.pods):
        stage.end(name, 1)
    stage.one_pass()
    assert kind_of(job).warnings(job) is not None


def test_the_page_about_kinds_names_every_kind_and_every_field() -> None:
    page = (Path(__file__).parents[2] / "docs/kinds.md").read_text()
    words = {name for one in JOB_KINDS for name in (one.kind.kind, *one.framework.options)}
    assert sorted(word for word in words if word not in page) == []
