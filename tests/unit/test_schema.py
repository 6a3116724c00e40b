from typing import Any

import pytest

from fullrank.api.core_types import lines
from fullrank.api.meta import Json
from fullrank.api.schema import (
    Schema,
    anything,
    array,
    boolean,
    complaints,
    core_schema,
    did_you_mean,
    int_or_string,
    integer,
    mapping,
    obj,
    openapi,
    pruned,
    quantity,
    string,
    unknown_fields,
    with_defaults,
)

JOB = obj(
    {
        "spec": obj(
            {
                "replicas": integer(minimum=0),
                "policy": string("Always", "Never"),
                "paused": boolean(default=False),
                "port": int_or_string(),
                "memory": quantity(),
                "roles": mapping(obj({"count": integer()}, required=("count",))),
                "steps": array(obj({"name": string()}, required=("name",)), key="name"),
                "free": anything(),
            },
            required=("replicas",),
        )
    }
)

COMPLAINTS: dict[str, tuple[Json, list[str]]] = {
    "a fine object has none": ({"spec": {"replicas": 1, "policy": "Never", "port": "http"}}, []),
    "a null field counts as absent": ({"spec": {"replicas": 1, "policy": None}}, []),
    "a whole float is an integer": ({"spec": {"replicas": 2.0}}, []),
    "a required field that is missing": ({"spec": {}}, ["spec.replicas: Required value"]),
    "a string for a number": (
        {"spec": {"replicas": "2"}},
        [
            'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
        ],
    ),
    "a number too large for its format": (
        {"spec": {"replicas": 2**31}},
        ["spec.replicas: Invalid value: 2147483648: should be less than or equal to 2147483647"],
    ),
    "a number below its minimum": (
        {"spec": {"replicas": -1}},
        ["spec.replicas: Invalid value: -1: should be greater than or equal to 0"],
    ),
    "a word that is not offered": (
        {"spec": {"replicas": 1, "policy": "never"}},
        [
            'spec.policy: Unsupported value: "never": supported values: "Always", "Never" (did you mean "Never"?)',
        ],
    ),
    "a list where a map belongs": (
        {"spec": {"replicas": 1, "roles": []}},
        ['spec.roles: Invalid value: "array": spec.roles in body must be of type object: "array"'],
    ),
    "a map's value, by its key": (
        {"spec": {"replicas": 1, "roles": {"Worker": {}}}},
        ["spec.roles.Worker.count: Required value"],
    ),
    "a list's element, by its place": (
        {"spec": {"replicas": 1, "steps": [{"name": "a"}, None]}},
        ['spec.steps[1]: Invalid value: "null": spec.steps[1] in body must be of type object: "null"'],
    ),
    "a truth for a port": (
        {"spec": {"replicas": 1, "port": True}},
        ['spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"'],
    ),
}


@pytest.mark.parametrize(("value", "expected"), COMPLAINTS.values(), ids=COMPLAINTS)
def test_complaints_name_the_path_and_what_is_wrong(value: Json, expected: list[str]) -> None:
    assert [str(cause) for cause in complaints(value, JOB)] == expected


@pytest.mark.parametrize("amount", ["500m", "16Gi", 2, 0.5, "1e3"])
def test_amounts_may_be_text_or_numbers(amount: Any) -> None:
    assert complaints({"spec": {"replicas": 1, "memory": amount}}, JOB) == []


@pytest.mark.parametrize("amount", ["many", "", "1e999999999", "5 Gi"])
def test_what_is_no_amount_is_told_with_examples(amount: str) -> None:
    (cause,) = complaints({"spec": {"replicas": 1, "memory": amount}}, JOB)
    assert cause.field == "spec.memory"
    assert cause.hint == "write it like 500m, 2 or 16Gi"


def test_unknown_fields_come_with_a_guess() -> None:
    value = {
        "spec": {"replicsa": 1, "zzz": 1, "steps": [{"nam": "a"}], "free": {"any": 1}},
        "policy": "Never",
    }
    assert [str(field) for field in unknown_fields(value, JOB)] == [
        'unknown field "policy" (it belongs in "spec")',
        'unknown field "spec.replicsa" (did you mean "replicas"?)',
        'unknown field "spec.steps[0].nam" (did you mean "name"?)',
        'unknown field "spec.zzz"',
    ]


def test_a_guess_minds_no_capitals_and_is_not_made_at_any_price() -> None:
    assert did_you_mean("Imagepullpolicy", ["imagePullPolicy", "image"]) == 'did you mean "imagePullPolicy"?'
    assert did_you_mean("zebra", ["image", "name"]) == ""


def test_pruning_drops_the_unknown_and_the_null_and_leaves_its_argument_alone() -> None:
    value = {
        "spec": {
            "replicas": 1,
            "x": 1,
            "policy": None,
            "free": {"kept": {"n": None}},
            "roles": {"A": {"y": 1}},
        }
    }
    before = repr(value)
    assert pruned(value, JOB) == {"spec": {"replicas": 1, "free": {"kept": {"n": None}}, "roles": {"A": {}}}}
    assert repr(value) == before


def test_defaults_are_written_into_objects_that_are_there() -> None:
    assert with_defaults({}, JOB) == {}
    assert with_defaults({"spec": {"replicas": 1}}, JOB) == {"spec": {"replicas": 1, "paused": False}}
    ports = {"containers": [{"name": "a", "ports": [{"containerPort": 1}]}]}
    filled = with_defaults({"spec": ports}, core_schema("PodTemplateSpec"))
    assert filled["spec"]["containers"][0]["ports"] == [{"containerPort": 1, "protocol": "TCP"}]


@pytest.mark.parametrize("name", lines())
def test_every_core_type_can_be_read(name: str) -> None:
    assert core_schema(name).type == "object"


def test_core_types_know_what_is_required_and_how_lists_merge() -> None:
    spec = core_schema("PodSpec")
    assert spec.required == ("containers",)
    assert spec.properties["containers"].merge_key == "name"
    assert spec.properties["volumes"].patch_strategy == "merge,retainKeys"
    assert spec.properties["tolerations"].patch_strategy == ""
    assert core_schema("ObjectMeta").properties["finalizers"].list_type == "set"


def test_a_schema_for_a_custom_resource_is_all_of_one_piece() -> None:
    document = openapi(JOB)
    spec = document["properties"]["spec"]
    assert spec["required"] == ["replicas"]
    assert spec["properties"]["port"] == {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    assert spec["properties"]["paused"] == {"type": "boolean", "default": False}
    assert spec["properties"]["free"]["x-kubernetes-preserve-unknown-fields"] is True
    assert spec["properties"]["steps"]["x-kubernetes-list-map-keys"] == ["name"]
    assert "x-kubernetes-patch-merge-key" not in spec["properties"]["steps"]
    assert "$ref" not in repr(openapi(core_schema("Pod")))


def test_named_types_are_pointed_to_where_there_is_a_place_for_them() -> None:
    components: Json = {}
    pointer = openapi(core_schema("Pod"), components)
    assert pointer == {"$ref": "#/components/schemas/io.k8s.api.core.v1.Pod"}
    containers = components["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["items"] == {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}
    assert containers["x-kubernetes-patch-merge-key"] == "name"


def test_a_schema_is_a_value() -> None:
    assert Schema("string") == string()
