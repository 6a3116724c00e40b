"""CustomResourceDefinitions of our kinds: what a cluster is given to serve them, and what the embedded home shows."""

from fullrank.api.meta import Json
from fullrank.api.schema import Schema, openapi
from fullrank.api.scheme import Column, Kind

DEFINITION = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False,
    short_names=("crd", "crds"), columns=(Column("Created At", ".metadata.creationTimestamp"),),
)  # fmt: skip


def definition(kind: Kind, schema: Schema) -> Json:
    names: Json = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.singular,
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    if kind.categories:
        names["categories"] = list(kind.categories)
    return {
        "apiVersion": DEFINITION.api_version,
        "kind": DEFINITION.kind,
        "metadata": {"name": kind.group_resource},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind, schema)],
        },
    }


def _version(kind: Kind, schema: Schema) -> Json:
    structure = openapi(schema)
    # A cluster knows metadata itself and takes no other description of it.
    structure["properties"]["metadata"] = {"type": "object"}
    version: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": structure},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [
            {"name": column.name, "type": column.type, "jsonPath": column.path, "priority": column.priority}
            for column in kind.columns
        ]
    if "status" in kind.subresources:
        version["subresources"] = {"status": {}}
    if kind.scale is not None:
        version["subresources"]["scale"] = {
            "specReplicasPath": kind.scale.replicas,
            "statusReplicasPath": kind.scale.observed,
            "labelSelectorPath": kind.scale.selector,
        }
    return version
