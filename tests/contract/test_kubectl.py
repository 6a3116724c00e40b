"""The real kubectl against our server: what people type, what they see, and how it ends."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import POD
from fullrank.client.port import Key
from tests.contract.serving import Home, Said, home, kubeconfig_for, kubectl_path

pytestmark = pytest.mark.anyio

POD_NAMED_WEB: Json = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "web", "image": "nginx:1.27"}], "restartPolicy": "Never"},
}
TEMPLATE: Json = {
    "spec": {"containers": [{"name": "pytorch", "image": "torch:2", "ports": [{"containerPort": 23456}]}]}
}
JOB: Json = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "PyTorchJob",
    "metadata": {"name": "simple"},
    "spec": {"runPolicy": {}, "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": TEMPLATE}}},
}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Home]:
    async with home(tmp_path, kubectl=kubectl_path()) as running:
        yield running


def fine(said: Said) -> str:
    assert said.code == 0, said
    return said.out


def columns(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


async def test_a_pod_is_created_listed_shown_and_deleted(served: Home) -> None:
    assert fine(await served.kubectl("create", "-f", "-", given=POD_NAMED_WEB)) == "pod/web created\n"
    header, row = columns(fine(await served.kubectl("get", "pods")))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "0/1", "Pending", "0"]
    assert "NOMINATED NODE" in fine(await served.kubectl("get", "pods", "-o", "wide"))
    assert fine(await served.kubectl("get", "pods", "-l", "app=web", "-o", "name")) == "pod/web\n"
    assert fine(await served.kubectl("get", "pods", "-l", "app!=web", "-o", "name")) == ""
    shown = fine(await served.kubectl("get", "pod", "web", "-o", "yaml"))
    assert "terminationGracePeriodSeconds: 30" in shown
    assert 'pod "web" deleted' in fine(await served.kubectl("delete", "pod", "web"))
    gone = await served.kubectl("get", "pod", "web")
    assert (gone.code, gone.error) == (1, 'Error from server (NotFound): pods "web" not found\n')


async def test_a_job_has_its_own_columns_and_keeps_what_was_submitted(served: Home) -> None:
    created = await served.kubectl("create", "-f", "-", given=JOB)
    assert fine(created) == "pytorchjob.kubeflow.org/simple created\n"
    status = {"status": {"conditions": [{"type": "Created"}, {"type": "Running"}]}}
    patch = (
        "patch",
        "pytorchjob",
        "simple",
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps(status),
    )
    fine(await served.kubectl(*patch))
    header, row = columns(fine(await served.kubectl("get", "pytorchjobs")))
    assert header == ["NAME", "STATE", "AGE"]
    assert row[:2] == ["simple", "Running"]
    stored = json.loads(fine(await served.kubectl("get", "pytorchjob", "simple", "-o", "json")))
    replicas = stored["spec"]["pytorchReplicaSpecs"]["Worker"]
    assert replicas["template"]["spec"]["containers"][0]["ports"] == [
        {"containerPort": 23456, "protocol": "TCP"}
    ]
    assert stored["spec"]["runPolicy"] == {"suspend": False}
    assert "imagePullPolicy" not in json.dumps(stored)


async def test_a_second_create_is_refused(served: Home) -> None:
    fine(await served.kubectl("create", "-f", "-", given=JOB))
    again = await served.kubectl("create", "-f", "-", given=JOB)
    assert again.code == 1
    assert 'pytorchjobs.kubeflow.org "simple" already exists' in again.error


async def test_unknown_fields_are_refused_with_a_guess(served: Home) -> None:
    wrong = {**JOB, "spec": {**JOB["spec"], "runPolcy": {}}}
    said = await served.kubectl("create", "-f", "-", given=wrong)
    assert said.code == 1
    assert (
        'PyTorchJob in version "v1" cannot be handled as a PyTorchJob: strict decoding error: '
        'unknown field "spec.runPolcy" (did you mean "runPolicy"?)'
    ) in said.error
    warned = await served.kubectl("create", "--validate=warn", "-f", "-", given=wrong)
    assert fine(warned) == "pytorchjob.kubeflow.org/simple created\n"
    assert warned.error == 'Warning: unknown field "spec.runPolcy" (did you mean "runPolicy"?)\n'
    assert "runPolcy" not in fine(await served.kubectl("get", "pytorchjob", "simple", "-o", "json"))


async def test_every_complaint_is_told_at_once(served: Home) -> None:
    wrong = {**POD_NAMED_WEB, "spec": {"containers": [{"name": "A"}], "restartPolicy": "Sometimes"}}
    said = await served.kubectl("create", "-f", "-", given=wrong)
    assert said.code == 1
    assert said.error.startswith('The Pod "web" is invalid: \n* ')
    assert "* spec.containers[0].image: Required value\n" in said.error
    assert '* spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label must' in said.error
    assert (
        '* spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
    ) in said.error


async def test_wrong_types_name_their_path(served: Home) -> None:
    wrong = {**JOB, "spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": "2", "template": TEMPLATE}}}}
    said = await served.kubectl("create", "-f", "-", given=wrong)
    path = "spec.pytorchReplicaSpecs.Worker.replicas"
    assert f'{path}: Invalid value: "string": {path} in body must be of type integer: "string"' in said.error


async def test_what_kubectl_makes_itself_arrives_too(served: Home) -> None:
    """Namespaces, ConfigMaps and Secrets are sent as protobuf by newer clients."""
    fine(await served.kubectl("create", "namespace", "team"))
    fine(await served.kubectl("create", "configmap", "c", "--from-literal=a=b", "-n", "team"))
    fine(await served.kubectl("create", "secret", "generic", "s", "--from-literal=p=q", "-n", "team"))
    data = fine(await served.kubectl("get", "configmap", "c", "-n", "team", "-o", "jsonpath={.data}"))
    assert json.loads(data) == {"a": "b"}
    assert (
        fine(await served.kubectl("get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.p}")) == "cQ=="
    )
    assert "team" in fine(await served.kubectl("get", "namespaces"))


async def test_patches_of_every_type(served: Home) -> None:
    fine(await served.kubectl("create", "-f", "-", given=POD_NAMED_WEB))
    fine(await served.kubectl("label", "pod", "web", "tier=front"))
    image = {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}
    fine(await served.kubectl("patch", "pod", "web", "-p", json.dumps(image)))
    add = [{"op": "add", "path": "/metadata/annotations", "value": {"note": "x"}}]
    fine(await served.kubectl("patch", "pod", "web", "--type=json", "-p", json.dumps(add)))
    pod = served.registry.get(Key(POD, "default", "web")).obj
    assert pod["metadata"]["labels"] == {"app": "web", "tier": "front"}
    assert pod["metadata"]["annotations"] == {"note": "x"}
    assert pod["spec"]["containers"][0]["image"] == "nginx:1.28"
    refused = await served.kubectl("patch", "pod", "web", "-p", '{"spec":{"restartPolicy":"Always"}}')
    assert "spec: Forbidden: pod updates may not change fields other than" in refused.error


async def test_apply_creates_and_then_changes(served: Home) -> None:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "torch:2"}]}}
    roles = {"pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}}
    assert "created" in fine(await served.kubectl("apply", "-f", "-", given={**JOB, "spec": roles}))
    suspended = {**JOB, "spec": {**roles, "runPolicy": {"suspend": True}}}
    assert "configured" in fine(await served.kubectl("apply", "-f", "-", given=suspended))
    assert "unchanged" in fine(await served.kubectl("apply", "-f", "-", given=suspended))


async def test_a_watch_shows_what_happens(served: Home) -> None:
    fine(await served.kubectl("create", "-f", "-", given=POD_NAMED_WEB))
    watch = served.command("get", "pods", "--watch", "--output-watch-events")
    async with await anyio.open_process(watch) as process:
        assert process.stdout is not None
        seen = ""
        while "ADDED" not in seen:
            seen += (await process.stdout.receive()).decode()
        await served.registry.bind(Key(POD, "default", "web"), "here")
        while "MODIFIED" not in seen or not seen.endswith("\n"):
            seen += (await process.stdout.receive()).decode()
        process.terminate()
    assert columns(seen)[0] == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert columns(seen)[2][:4] == ["MODIFIED", "web", "0/1", "Pending"]


async def test_logs_wait_for_the_container_and_then_flow(served: Home) -> None:
    fine(await served.kubectl("create", "-f", "-", given=POD_NAMED_WEB))
    early = await served.kubectl("logs", "web")
    assert early.code == 1
    assert 'container "web" in pod "web" is waiting to start: ContainerCreating' in early.error
    running = {
        "containerStatuses": [{"name": "web", "state": {"running": {}}, "ready": True}],
        "phase": "Running",
    }
    await served.registry.patch(Key(POD, "default", "web"), {"status": running}, subresource="status")
    assert fine(await served.kubectl("logs", "web", "--tail=2")) == "web 8\nweb 9\n"
    async with await anyio.open_process(served.command("logs", "-f", "pod/web", "--tail=1")) as process:
        assert process.stdout is not None
        assert await process.stdout.receive() == b"web 9\n"
        served.logs.more.set()
        assert await process.stdout.receive() == b"more\n"
        assert await process.wait() == 0
    unknown = await served.kubectl("logs", "web", "-c", "other")
    assert "container other is not valid for pod web" in unknown.error


async def test_it_explains_and_lists_what_it_serves(served: Home) -> None:
    explained = fine(await served.kubectl("explain", "pytorchjob.spec"))
    assert "pytorchReplicaSpecs\t<map[string]Object> -required-\n    The roles of the job." in explained
    assert "containerPort\t<integer> -required-" in fine(
        await served.kubectl("explain", "pod.spec.containers.ports")
    )
    resources = fine(await served.kubectl("api-resources"))
    assert ["pytorchjobs", "kubeflow.org/v1", "true", "PyTorchJob"] in columns(resources)
    assert ["pods", "po", "v1", "true", "Pod"] in columns(resources)
    missing = await served.kubectl("get", "deployments")
    assert (missing.code, missing.error) == (
        1,
        'error: the server doesn\'t have a resource type "deployments"\n',
    )


async def test_our_kinds_have_definitions_to_read(served: Home) -> None:
    header, row = columns(fine(await served.kubectl("get", "crd")))
    assert header == ["NAME", "CREATED", "AT"]
    assert row[0] == "pytorchjobs.kubeflow.org"
    established = ("wait", "--for=condition=Established", "crd/pytorchjobs.kubeflow.org", "--timeout=2s")
    assert "condition met" in fine(await served.kubectl(*established))
    refused = await served.kubectl("delete", "crd", "pytorchjobs.kubeflow.org")
    assert "MethodNotAllowed" in refused.error


async def test_a_list_is_created_item_by_item(served: Home) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")]
    created = await served.kubectl(
        "create", "-f", "-", given={"apiVersion": "v1", "kind": "List", "items": items}
    )
    assert fine(created) == "configmap/a created\nconfigmap/b created\n"


async def test_everybody_who_got_in_may_do_everything(served: Home) -> None:
    assert fine(await served.kubectl("auth", "can-i", "create", "pods")) == "yes\n"
    assert "fullrank-admin" in fine(await served.kubectl("auth", "whoami"))


async def test_a_client_certificate_opens_the_door(served: Home) -> None:
    user = {
        "client-certificate": str(served.credentials.client_certificate),
        "client-key": str(served.credentials.client_key),
    }
    served.kubeconfig.write_text(json.dumps(kubeconfig_for(served.bound, served.credentials, user)))
    assert "fullrank-admin" in fine(await served.kubectl("auth", "whoami"))


async def test_a_wrong_token_does_not(served: Home) -> None:
    served.kubeconfig.write_text(
        json.dumps(kubeconfig_for(served.bound, served.credentials, {"token": "guess"}))
    )
    said = await served.kubectl("get", "pods")
    assert said.code == 1
    assert "You must be logged in to the server" in said.error
