from fullrank.api.definitions import definition
from fullrank.api.schema import core_schema, obj, string, whole_object
from fullrank.api.scheme import Column, Kind

JOB = Kind(
    "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status",), short_names=("pj",),
    columns=(Column("State", ".status.conditions[-1:].type"),),
)  # fmt: skip
SCHEMA = whole_object(obj({"template": core_schema("PodTemplateSpec")}), obj({"phase": string()}))


def test_a_definition_says_what_a_cluster_needs_to_serve_a_kind() -> None:
    made = definition(JOB, SCHEMA)
    assert made["metadata"]["name"] == "pytorchjobs.kubeflow.org"
    assert made["spec"]["scope"] == "Namespaced"
    assert made["spec"]["names"]["shortNames"] == ["pj"]
    (version,) = made["spec"]["versions"]
    assert version["subresources"] == {"status": {}}
    assert version["additionalPrinterColumns"] == [
        {"name": "State", "type": "string", "jsonPath": ".status.conditions[-1:].type", "priority": 0}
    ]


def test_its_schema_is_structural() -> None:
    """Clusters refuse pointers, patch hints, a description of metadata, and list keys that may be missing."""
    (version,) = definition(JOB, SCHEMA)["spec"]["versions"]
    structure = version["schema"]["openAPIV3Schema"]
    assert structure["properties"]["metadata"] == {"type": "object"}
    assert "$ref" not in repr(structure)
    assert "x-kubernetes-patch" not in repr(structure)
    spec = structure["properties"]["spec"]["properties"]["template"]["properties"]["spec"]["properties"]
    assert spec["containers"]["x-kubernetes-list-map-keys"] == ["name"]
    assert spec["imagePullSecrets"]["x-kubernetes-list-type"] == "atomic"
