import json

from fullrank.api.schema import Schema, core_schema, integer, obj, whole_object
from fullrank.api.scheme import CORE_KINDS, Kind
from fullrank.controlplane.openapi import OpenApi

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status",))


def schema_of(kind: Kind) -> Schema:
    spec = obj({"size": integer(description="How many.")})
    return whole_object(spec, description="A job.") if kind == JOB else core_schema(kind.kind)


documents = OpenApi([*CORE_KINDS, JOB], schema_of)


def test_the_index_points_to_documents_by_their_hash() -> None:
    paths = documents.index()["paths"]
    assert set(paths) == {
        "api/v1", "apis/coordination.k8s.io/v1", "apis/events.k8s.io/v1", "apis/scheduling.k8s.io/v1",
        "apis/kubeflow.org/v1",
    }  # fmt: skip
    address = paths["apis/kubeflow.org/v1"]["serverRelativeURL"]
    assert address.startswith("/openapi/v3/apis/kubeflow.org/v1?hash=")
    assert OpenApi([*CORE_KINDS, JOB], schema_of).index() == documents.index()
    assert documents.document("apis/apps/v1") is None


def test_kubectl_finds_that_the_server_validates_fields() -> None:
    document = json.loads(documents.document("apis/kubeflow.org/v1") or b"{}")
    patch = document["paths"]["/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "kubeflow.org",
        "version": "v1",
        "kind": "PyTorchJob",
    }


def test_only_kubernetes_own_kinds_offer_a_strategic_merge() -> None:
    def patches(place: str, path: str) -> list[str]:
        document = json.loads(documents.document(place) or b"{}")
        return [*document["paths"][path]["patch"]["requestBody"]["content"]]

    strategic = "application/strategic-merge-patch+json"
    job = "/apis/kubeflow.org/v1/namespaces/{namespace}/pytorchjobs/{name}"
    assert strategic not in patches("apis/kubeflow.org/v1", job)
    assert strategic in patches("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}")


def test_every_pointer_leads_somewhere() -> None:
    for place in documents.index()["paths"]:
        text = (documents.document(place) or b"").decode()
        schemas = json.loads(text)["components"]["schemas"]
        pointers = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}
        assert pointers <= set(schemas)


def test_a_kind_is_found_by_its_identity_and_described() -> None:
    schemas = json.loads(documents.document("apis/kubeflow.org/v1") or b"{}")["components"]["schemas"]
    job = schemas["org.kubeflow.v1.PyTorchJob"]
    assert job["x-kubernetes-group-version-kind"] == [
        {"group": "kubeflow.org", "version": "v1", "kind": "PyTorchJob"}
    ]
    assert job["description"] == "A job."
    assert job["properties"]["spec"]["properties"]["size"]["description"] == "How many."
