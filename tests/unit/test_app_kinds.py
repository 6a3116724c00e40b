"""TensorBoards and notebooks at the door, and the pods that they mean."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullrank.api.apps import NOTEBOOK, NOTEBOOK_APP, TENSORBOARD, TENSORBOARD_APP
from fullrank.api.meta import Json
from fullrank.api.names import LABEL, label_name_1035
from fullrank.api.tensorboards import Fileset, filesets
from fullrank.controlplane.admission import Admission
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.registry import APP_KINDS
from fullrank.dialects.tensorboard import TENSORBOARDS
from fullrank.errors import Invalid
from tests.build import a_job, kind_of

ADMIT = Admission(APP_KINDS)
DOCS = Path(__file__).parents[2] / "docs/kinds.md"


def a_board(*urls: str, name: str = "board", **spec: Any) -> Json:
    given_ = {"trainingLogFilesets": [*urls]} if urls else {}
    return {
        "apiVersion": TENSORBOARD.api_version,
        "kind": "TensorBoard",
        "metadata": {"name": name, "namespace": "demo", "uid": "uid-of-board"},
        "spec": given_ | spec,
    }


def a_notebook(
    container: Json | None = None, name: str = "lab", pod: Json | None = None, **spec: Any
) -> Json:
    mount = {"name": "workingdir", "mountPath": "/t9k/mnt"}
    volume = {"name": "workingdir", "persistentVolumeClaim": {"claimName": "mnist"}}
    first = {"name": "notebook", "image": "example/lab:1", "volumeMounts": [mount]} | (container or {})
    template = {"spec": {"containers": [first], "volumes": [volume]} | (pod or {})}
    return {
        "apiVersion": NOTEBOOK.api_version,
        "kind": "Notebook",
        "metadata": {"name": name, "namespace": "demo", "uid": "uid-of-lab"},
        "spec": {"type": "jupyter", "template": template} | spec,
    }


# -- names ---------------------------------------------------------------------------------------------------------


def test_what_belongs_to_a_program_is_called_as_ever() -> None:
    assert TENSORBOARD_APP.service("mnist-1f409") == "managed-tensorboard-mnist-1f409"
    assert NOTEBOOK_APP.service("lab") == "managed-notebook-http-lab"


@given(names=st.lists(st.from_regex(rf"\A{LABEL}(\.{LABEL}){{0,3}}\Z").map(lambda n: n[:253]), unique=True))
def test_whatever_a_program_is_called_its_service_may_be_called_so(names: list[str]) -> None:
    services = [NOTEBOOK_APP.service(name) for name in names]
    assert [name for name in services if label_name_1035(name)] == []
    assert len(set(services)) == len(names)


# -- filesets ------------------------------------------------------------------------------------------------------

FILESETS: dict[str, tuple[Json, list[Fileset]]] = {
    "a folder in a claim": ({"trainingLogFilesets": ["t9k://pvc/mnist/log"]}, [Fileset("mnist", "log")]),
    "deeper, and with a slash behind it": (
        {"trainingLogFilesets": ["t9k://pvc/mnist/a/b/"]},
        [Fileset("mnist", "a/b")],
    ),
    "a whole claim": ({"trainingLogFilesets": ["t9k://pvc/mnist"]}, [Fileset("mnist")]),
    "the new form": (
        {"logDir": {"pvc": [{"name": "mnist", "subPath": ["./log", "other"]}, {"name": "more"}]}},
        [Fileset("mnist", "log"), Fileset("mnist", "other"), Fileset("more")],
    ),
    "both forms, one folder twice": (
        {
            "trainingLogFilesets": ["t9k://pvc/mnist/log"],
            "logDir": {"pvc": [{"name": "mnist", "subPath": ["log"]}]},
        },
        [Fileset("mnist", "log")],
    ),
}


@pytest.mark.parametrize("case", FILESETS)
def test_where_logs_are(case: str) -> None:
    spec, wanted = FILESETS[case]
    assert TENSORBOARDS.complaints(a_board(**spec)) == []
    assert [*filesets(spec)] == wanted


COMMA = 'spec: Invalid value: "a,b": beside other folders, one may not have a comma in its name'
URL = "spec.trainingLogFilesets[0]: Invalid value:"
WRONG: dict[str, tuple[Json, str]] = {
    "nothing to show": (
        a_board(),
        "spec.trainingLogFilesets: Required value: no logs to show (add t9k://pvc/<claim>/<folder>)",
    ),
    "a bare path": (
        a_board("mnist/log"),
        f'{URL} "mnist/log": must have the form t9k://pvc/<claim>/<folder> (t9k://pvc/mnist/log?)',
    ),
    "another scheme": (
        a_board("s3://bucket/log"),
        f'{URL} "s3://bucket/log": must begin with t9k://, not s3:// '
        "(only logs in claims can be shown: copy them into one)",
    ),
    "MinIO": (
        a_board("t9k://minio/secret/bucket/log"),
        f'{URL} "t9k://minio/secret/bucket/log": MinIO is not read here '
        "(only logs in claims can be shown: copy them into one)",
    ),
    "a slip in the storage": (
        a_board("t9k://pvcs/mnist/log"),
        f'{URL} "t9k://pvcs/mnist/log": storage "pvcs" is not "pvc" (did you mean "pvc"?)',
    ),
    "no claim": (
        a_board("t9k://pvc//log"),
        f'{URL} "t9k://pvc//log": names no claim (the form is t9k://pvc/<claim>/<folder>)',
    ),
    "a claim that cannot be": (
        a_board("t9k://pvc/My_Claim/log"),
        f'{URL} "t9k://pvc/My_Claim/log": the name of a',
    ),
    "a way out of the claim": (
        a_board("t9k://pvc/mnist/../other"),
        f'{URL} "../other": must not contain ".." (a folder in the claim)',
    ),
    "a bucket": (
        a_board(logDir={"s3": {"uri": ["s3://bucket/"]}}),
        "spec.logDir.s3: Forbidden: s3 is not read here (only logs in claims can be shown: copy them into one)",
    ),
    "a comma beside other folders": (a_board("t9k://pvc/m/a,b", "t9k://pvc/m/c"), COMMA),
    "another program in a notebook": (
        a_notebook(type="rstudio"),
        'spec.type: Unsupported value: "rstudio": supported values: "jupyter"',
    ),
    "a mode that is none": (
        a_notebook(runMode="stop"),
        'spec.runMode: Unsupported value: "stop": supported values: "running", "stopped"',
    ),
    "a notebook without a container": (
        a_notebook(pod={"containers": []}),
        "spec.template.spec.containers: Required value",
    ),
    "a mount of nothing": (
        a_notebook({"volumeMounts": [{"name": "other", "mountPath": "/t9k/mnt"}]}),
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "other"',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_at_its_place(case: str) -> None:
    obj, said = WRONG[case]
    kind = next(one.kind for one in APP_KINDS if one.kind.kind == obj["kind"])
    with pytest.raises(Invalid) as refused:
        ADMIT(kind, obj, None)
    assert str(refused.value.causes[0]).startswith(said)


def test_a_comma_in_the_only_folder_is_fine() -> None:
    ADMIT(TENSORBOARD, a_board("t9k://pvc/m/lr=0.1,bs=32"), None)


def test_a_tensorboards_resources_are_said_once() -> None:
    small, large = ({"limits": {"cpu": amount}} for amount in ("1", "2"))
    (cause,) = TENSORBOARDS.complaints(
        a_board("t9k://pvc/m/log", resources=large), a_board("t9k://pvc/m/log", resources=small)
    )
    assert str(cause) == "spec.resources: Forbidden: field is immutable (make the TensorBoard anew)"


def test_a_jobs_tensorboard_is_judged_with_the_job() -> None:
    job = a_job("TensorFlowJob", {"worker": 1}, tensorboardSpec={"trainingLogFilesets": ["mnist/log"]})
    (cause,) = kind_of(job).complaints(job)
    assert cause.field == "spec.tensorboardSpec.trainingLogFilesets[0]"


def test_a_notebooks_author_is_warned_of_what_is_not_served_and_of_files_that_do_not_last() -> None:
    ssh = NOTEBOOKS.warnings(a_notebook(ssh={"enabled": True}))
    assert ssh == ["spec.ssh: no SSH server is run; use the notebook's terminals, or kubectl exec"]
    (lost,) = NOTEBOOKS.warnings(a_notebook({"volumeMounts": []}))
    assert lost.startswith("spec.template.spec.containers[0].volumeMounts: no volume at /t9k/mnt")
    assert NOTEBOOKS.warnings(a_notebook()) == []


def test_the_page_about_kinds_names_both_and_all_their_fields() -> None:
    page = DOCS.read_text()
    words = {name for one in APP_KINDS for name in (one.kind.kind, *one.spec.properties)}
    assert sorted(word for word in words if f"`{word}" not in page and f"## {word}" not in page) == []


# -- pods ----------------------------------------------------------------------------------------------------------


def test_the_tutorials_tensorboard() -> None:
    board = a_board("t9k://pvc/mnist/log", name="mnist-1f409", image="tensorflow/tensorflow:2.14.0")
    pod = TENSORBOARDS.template(TENSORBOARDS, board, "ours", 9999)["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "tensorflow/tensorflow:2.14.0"
    assert container["command"] + container["args"] == [
        "tensorboard",
        "--host=$(POD_IP)",
        "--port=9999",
        "--path_prefix=/tensorboards/demo/mnist-1f409",
        "--logdir=/fileset-pvc-mnist/log",
    ]
    assert container["volumeMounts"] == [
        {"name": "fileset-0", "mountPath": "/fileset-pvc-mnist", "readOnly": True}
    ]
    assert pod["volumes"] == [{"name": "fileset-0", "persistentVolumeClaim": {"claimName": "mnist"}}]
    assert container["ports"] == [{"name": "http", "containerPort": 9999}]


FOLDERS = {
    "one": (["t9k://pvc/a/log"], "--logdir=/fileset-pvc-a/log"),
    "a whole claim": (["t9k://pvc/a"], "--logdir=/fileset-pvc-a"),
    "several": (
        ["t9k://pvc/a/log", "t9k://pvc/b", "t9k://pvc/a/more"],
        "--logdir_spec=a/log:/fileset-pvc-a/log,b:/fileset-pvc-b,a/more:/fileset-pvc-a/more",
    ),
    "a dollar": (["t9k://pvc/a/$(HOME)"], "--logdir=/fileset-pvc-a/$$(HOME)"),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_what_a_tensorboard_is_pointed_at(case: str) -> None:
    urls, wanted = FOLDERS[case]
    pod = TENSORBOARDS.template(TENSORBOARDS, a_board(*urls), "ours", 9999)["spec"]
    assert pod["containers"][0]["args"][-1] == wanted
    assert len(pod["volumes"]) == len({url.split("/")[3] for url in urls})
    assert pod["containers"][0]["image"] == "ours"


def variables(container: Json) -> dict[str, Any]:
    return {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}


def test_a_notebook_is_given_what_its_template_leaves_open() -> None:
    notebook = a_notebook({"image": ""})
    pod = NOTEBOOKS.template(NOTEBOOKS, notebook, "ours", 9999)["spec"]
    (container,) = pod["containers"]
    assert container["image"] == "ours"
    assert container["command"] == ["jupyter", "lab"]
    assert "--ServerApp.base_url=/notebooks/demo/lab/" in container["args"]
    assert container["workingDir"] == "/t9k/mnt"
    assert pod["securityContext"] == {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 1000}
    assert variables(container) == {
        "HOME": "/t9k/mnt",
        "POD_IP": {"fieldRef": {"fieldPath": "status.podIP"}},
        "JUPYTER_TOKEN": {"secretKeyRef": {"name": "managed-notebook-http-lab", "key": "token"}},
    }
    assert [one["mountPath"] for one in container["volumeMounts"]] == ["/t9k/mnt"]
    assert notebook == a_notebook({"image": ""}), "the object itself stays as it is"


def test_what_a_notebooks_template_says_counts() -> None:
    said = {
        "command": ["start.sh"],
        "workingDir": "/work",
        "env": [{"name": "HOME", "value": "/me"}, {"name": "JUPYTER_TOKEN", "value": "known to all"}],
        "ports": [{"name": "http", "containerPort": 9000}],
        "volumeMounts": [],
    }
    pod = NOTEBOOKS.template(
        NOTEBOOKS, a_notebook(said, pod={"securityContext": {"runAsUser": 7}}), "ours", 9999
    )["spec"]
    (container,) = pod["containers"]
    assert (container["command"], container.get("args"), container["workingDir"]) == (
        ["start.sh"],
        None,
        "/work",
    )
    assert container["ports"] == [{"name": "http", "containerPort": 9000}]
    assert pod["securityContext"]["runAsUser"] == 7
    assert variables(container)["HOME"] == "/me"
    assert variables(container)["JUPYTER_TOKEN"] != "known to all", "or else the door would not know it"
    assert container["volumeMounts"] == [{"name": "t9k-home", "mountPath": "/t9k/mnt"}]
    assert pod["volumes"][-1] == {"name": "t9k-home", "emptyDir": {}}


def test_a_queue_is_waited_in() -> None:
    queued = {"t9kScheduler": {"queue": "team"}}
    for kind, obj in (
        (TENSORBOARDS, a_board("t9k://pvc/a", scheduler=queued)),
        (NOTEBOOKS, a_notebook(scheduler=queued)),
    ):
        labels = kind.template(kind, obj, "ours", 9999)["metadata"]["labels"]
        assert labels == {"kueue.x-k8s.io/queue-name": "team"}
