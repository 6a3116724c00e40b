"""OpenAPI v3 of what is served: enough for `kubectl explain`, for validation by the server, and for `kubectl apply`."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import replace

import msgspec

from fullrank.api.meta import Json
from fullrank.api.schema import Schema, openapi
from fullrank.api.scheme import Kind

# kubectl looks here to learn which kind of patch `apply` may send.
CUSTOM_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
)
PATCHES = (*CUSTOM_PATCHES, "application/strategic-merge-patch+json")


class OpenApi:
    """The index and one document per group and version, each built when first asked for and kept."""

    def __init__(self, kinds: Iterable[Kind], schema_of: Callable[[Kind], Schema]) -> None:
        self._schema_of = schema_of
        self._kinds: dict[str, list[Kind]] = {}
        for kind in kinds:
            self._kinds.setdefault(_root(kind).removeprefix("/"), []).append(kind)
        self._documents: dict[str, bytes] = {}

    def index(self) -> Json:
        """Where the documents are; the hash in the address lets clients keep them for good."""
        return {
            "paths": {
                place: {
                    "serverRelativeURL": f"/openapi/v3/{place}?hash={hashlib.sha256(document).hexdigest().upper()}"
                }
                for place in self._kinds
                if (document := self.document(place)) is not None
            }
        }

    def document(self, place: str) -> bytes | None:
        """`api/v1`, `apis/kubeflow.org/v1`; None for what is not served."""
        if place in self._kinds and place not in self._documents:
            self._documents[place] = msgspec.json.encode(self._built(self._kinds[place]))
        return self._documents.get(place)

    def _built(self, kinds: list[Kind]) -> Json:
        components: Json = {}
        paths: Json = {}
        for kind in kinds:
            named = replace(
                self._schema_of(kind), name=_component(kind), description=self._schema_of(kind).description
            )
            reference = {"$ref": f"#/components/schemas/{named.name}"}
            openapi(replace(named, description=""), components)
            components[named.name] |= {"x-kubernetes-group-version-kind": [_identity(kind)]}
            if named.description:
                components[named.name]["description"] = named.description
            paths |= _paths(kind, reference)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Fullrank", "version": "v1"},
            "paths": paths,
            "components": {"schemas": components},
        }


def _root(kind: Kind) -> str:
    return f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"


def _component(kind: Kind) -> str:
    """`org.kubeflow.v1.PyTorchJob`: the group turned round, as CustomResourceDefinitions are published."""
    if not kind.group:
        return f"io.k8s.api.core.{kind.version}.{kind.kind}"
    return ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _identity(kind: Kind) -> Json:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _paths(kind: Kind, schema: Json) -> Json:
    space = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{_root(kind)}{space}/{kind.plural}"
    paths = {
        collection: {
            "get": _operation(kind, "list", schema),
            "post": _operation(kind, "post", schema, body=("application/json", "application/yaml")),
            "parameters": _place(kind),
        },
        f"{collection}/{{name}}": {
            "get": _operation(kind, "get", schema),
            "put": _operation(kind, "put", schema, body=("application/json", "application/yaml")),
            "patch": _operation(kind, "patch", schema, body=CUSTOM_PATCHES if kind.is_custom else PATCHES),
            "delete": _operation(kind, "delete", schema),
            "parameters": [*_place(kind), _parameter("name", "path")],
        },
    }
    if kind.namespaced:
        paths[f"{_root(kind)}/{kind.plural}"] = {"get": _operation(kind, "list", schema)}
    return paths


def _place(kind: Kind) -> list[Json]:
    return [_parameter("namespace", "path")] if kind.namespaced else []


def _operation(kind: Kind, action: str, schema: Json, *, body: Iterable[str] = ()) -> Json:
    writes = ("dryRun", "fieldManager", "fieldValidation") if body else ()
    operation: Json = {
        "parameters": [_parameter(name, "query") for name in writes],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _identity(kind),
    }
    if body:
        operation["requestBody"] = {"content": {media: {"schema": schema} for media in body}}
    return operation


def _parameter(name: str, where: str) -> Json:
    return {"name": name, "in": where, "schema": {"type": "string"}} | (
        {"required": True} if where == "path" else {}
    )
