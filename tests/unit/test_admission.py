from typing import Any

import pytest

from fullrank.api.meta import Json
from fullrank.api.schema import boolean, core_schema, integer, obj, whole_object
from fullrank.api.scheme import CLAIM, CONFIG_MAP, POD, SECRET, SERVICE, Kind
from fullrank.controlplane.admission import Admission
from fullrank.errors import Cause, Invalid

THING = Kind("x.io", "v1", "Thing", "things")


class Things:
    kind = THING
    schema = whole_object(
        obj({"size": integer(), "paused": boolean(default=False), "template": core_schema("PodTemplateSpec")})
    )

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:
        grew = old is not None and obj["spec"]["size"] > old["spec"]["size"]
        return [Cause("spec.size", "Forbidden: may not grow", "FieldValueForbidden")] if grew else []

    def warnings(self, obj: Json) -> list[str]:
        return ["rather large"] if obj["spec"].get("size", 0) > 1000 else []


admit = Admission([Things()])


def named(**parts: Any) -> Json:
    return {"metadata": {"name": "x"}, **parts}


def pod(container: Json | None = None, **spec: Any) -> Json:
    return named(spec={"containers": [{"name": "a", "image": "b:1", **(container or {})}], **spec})


def causes(kind: Kind, new: Json, old: Json | None = None) -> list[str]:
    with pytest.raises(Invalid) as refused:
        admit(kind, new, old)
    return [str(cause) for cause in refused.value.causes]


def test_a_pod_gets_what_clients_count_on() -> None:
    admitted = admit(POD, pod(), None)
    assert admitted["spec"] == {
        "containers": [
            {
                "name": "a",
                "image": "b:1",
                "imagePullPolicy": "IfNotPresent",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "enableServiceLinks": True,
    }
    assert admitted["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


PULLS = {
    "a": "Always",
    "a:latest": "Always",
    "a:1": "IfNotPresent",
    "r:5000/a": "Always",
    "a@sha256:0": "IfNotPresent",
}


@pytest.mark.parametrize(("image", "policy"), PULLS.items())
def test_images_whose_tag_may_move_are_pulled_always(image: str, policy: str) -> None:
    assert admit(POD, pod({"image": image}), None)["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_what_is_limited_is_requested_too() -> None:
    limits = {"cpu": 0.5, "memory": "1Gi", "nvidia.com/gpu": 1}
    admitted = admit(POD, pod({"resources": {"limits": limits, "requests": {"memory": "1Mi"}}}), None)
    assert admitted["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "requests": {"cpu": "500m", "memory": "1Mi", "nvidia.com/gpu": "1"},
    }
    assert admitted["status"]["qosClass"] == "Burstable"


def test_admitting_twice_changes_nothing() -> None:
    volumes = [{"name": "v"}, {"name": "c", "configMap": {"name": "m"}}]
    once = admit(POD, pod({"ports": [{"containerPort": 1}]}, volumes=volumes), None)
    assert admit(POD, once, once) == once


REFUSED_PODS: dict[str, tuple[Json, list[str]]] = {
    "no containers": (named(spec={}), ["spec.containers: Required value"]),
    "no image": (
        named(spec={"containers": [{"name": "a"}]}),
        ["spec.containers[0].image: Required value"],
    ),
    "one name twice": (
        named(spec={"containers": [{"name": "a", "image": "b"}, {"name": "a", "image": "b"}]}),
        ['spec.containers[1].name: Duplicate value: "a"'],
    ),
    "a mount of nothing": (
        pod({"volumeMounts": [{"name": "v", "mountPath": "/v"}]}),
        ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ),
    "a way out of a volume": (
        pod({"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "../x"}]}, volumes=[{"name": "v"}]),
        ["spec.containers[0].volumeMounts[0].subPath: Invalid value: \"../x\": must not contain '..'"],
    ),
    "a request above its limit": (
        pod({"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}}),
        [
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'
        ],
    ),
    "a policy nobody knows": (
        pod(restartPolicy="Sometimes"),
        [
            'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'
        ],
    ),
    "two volumes in one": (
        pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    "an amount that is none, without a crash": (
        pod({"resources": {"limits": {"cpu": "1e1.5"}}}),
        ['spec.containers[0].resources.limits.cpu: Invalid value: "1e1.5": '],
    ),
    "a deadline of nothing": (
        pod(activeDeadlineSeconds=0),
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
}


@pytest.mark.parametrize(("new", "expected"), REFUSED_PODS.values(), ids=REFUSED_PODS)
def test_a_pod_is_refused_in_kubernetes_words(new: Json, expected: list[str]) -> None:
    told = causes(POD, new)
    assert len(told) == len(expected)
    assert all(said.startswith(start) for said, start in zip(told, expected, strict=True))


def test_a_pods_spec_is_frozen_but_for_a_few_fields() -> None:
    old = admit(POD, pod(), None)
    admit(POD, pod({"image": "other:2", "imagePullPolicy": "IfNotPresent"}), old)
    admit(POD, pod(nodeName="here"), old)
    assert causes(POD, pod(hostname="h"), old)[0].startswith(
        "spec: Forbidden: pod updates may not change fields"
    )
    seated = admit(POD, pod(nodeName="here"), None)
    assert causes(POD, pod(nodeName="there"), seated)[0].startswith("spec: Forbidden")


def test_a_status_may_be_incomplete_but_not_misshapen() -> None:
    partial = pod() | {"status": {"containerStatuses": [{"name": "a"}]}}
    assert admit(POD, partial, None)["status"]["containerStatuses"] == [{"name": "a"}]
    assert causes(POD, pod() | {"status": {"phase": 5}})[0].startswith(
        'status.phase: Invalid value: "integer"'
    )


def test_a_service_fills_in_its_ports() -> None:
    headless = admit(SERVICE, named(spec={"clusterIP": "None", "ports": [{"port": 5}]}), None)["spec"]
    assert headless["ports"] == [{"port": 5, "targetPort": 5, "protocol": "TCP"}]
    assert headless["clusterIPs"] == ["None"]
    assert causes(SERVICE, named(spec={})) == ["spec.ports: Required value"]


def test_a_claim_is_bound_at_once() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    status = admit(CLAIM, named(spec=spec, status={"phase": "Pending"}), None)["status"]
    assert status == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
    assert len(causes(CLAIM, named(spec={}))) == 2


def test_plain_text_in_a_secret_is_encoded() -> None:
    secret = admit(SECRET, named(stringData={"p": "q"}, data={"a": "Yg=="}), None)
    assert secret["data"] == {"a": "Yg==", "p": "cQ=="}
    assert "stringData" not in secret
    assert causes(SECRET, named(data={"a": "!"})) == [
        "data[a]: Invalid value: not base64: put plain text into stringData instead"
    ]


def test_a_config_maps_keys_are_file_names() -> None:
    assert causes(CONFIG_MAP, named(data={"../x": ""}))[0].startswith('data[../x]: Invalid value: "../x"')
    frozen = named(data={"a": "b"}, immutable=True)
    assert "immutable" in causes(CONFIG_MAP, named(data={"a": "c"}, immutable=True), frozen)[0]


def test_another_kind_brings_its_own_schema_defaults_and_complaints() -> None:
    template = {"spec": {"containers": [{"name": "a", "image": "b", "ports": [{"containerPort": 1}]}]}}
    stored = admit(THING, named(spec={"size": 1, "what": 1, "template": template}), None)
    assert stored["spec"]["paused"] is False
    assert "what" not in stored["spec"]
    assert stored["spec"]["template"]["spec"]["containers"] == [
        {"name": "a", "image": "b", "ports": [{"containerPort": 1, "protocol": "TCP"}]}
    ]
    assert causes(THING, named(spec={"size": 2}), named(spec={"size": 1})) == [
        "spec.size: Forbidden: may not grow"
    ]


def test_what_was_let_in_is_not_judged_again_when_only_its_status_changes() -> None:
    old = named(spec={"size": 1, "paused": False})
    assert admit(THING, {**old, "metadata": {"name": "x", "labels": {"a": "b"}}}, old)["spec"] == old["spec"]


def test_unknown_fields_are_told_apart_from_known_ones() -> None:
    assert [str(field) for field in admit.unknown(THING, named(spec={"siz": 1}))] == [
        'unknown field "spec.siz" (did you mean "size"?)'
    ]
