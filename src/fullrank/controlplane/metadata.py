"""What the server knows better than the caller: names, owners, and the fields of metadata that are its own. Pure."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from fullrank.api import names
from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.errors import BadRequest, Cause, Conflict, Invalid

SERVER_OWNED = (
    "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
)  # fmt: skip
LONGEST_REVISION = 18  # digits
LONGEST_ANNOTATIONS = 256 * 1024
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"  # no vowels: no words by accident
_SHAPES: dict[str, tuple[type, str]] = {
    "name": (str, "string"),
    "generateName": (str, "string"),
    "namespace": (str, "string"),
    "uid": (str, "string"),
    "resourceVersion": (str, "string"),
    "labels": (dict, "map[string]string"),
    "annotations": (dict, "map[string]string"),
    "finalizers": (list, "[]string"),
    "ownerReferences": (list, "[]v1.OwnerReference"),
    "managedFields": (list, "[]v1.ManagedFieldsEntry"),
}
_ELEMENTS: dict[str, type] = {
    "labels": str,
    "annotations": str,
    "finalizers": str,
    "ownerReferences": dict,
    "managedFields": dict,
}


def named(kind: Kind, name: str) -> str:
    """`pods "a"`, `pytorchjobs.kubeflow.org "a"`: how errors name an object of a collection."""
    return f'{kind.group_resource} "{name}"'


def invalid(kind: Kind, name: str, causes: list[Cause]) -> Invalid:
    return Invalid(f'{kind.group_kind} "{name}"', causes)


def invalid_options(options: str, cause: Cause) -> Invalid:
    return Invalid(f'{options}.meta.k8s.io ""', [cause])


def conflict(kind: Kind, name: str, why: str) -> Conflict:
    return Conflict(f"Operation cannot be fulfilled on {named(kind, name)}: {why}")


def outdated(kind: Kind, name: str) -> Conflict:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def generated_name(prefix: str, seed: str) -> str:
    """The prefix (cut so that a label's length suffices) and five letters drawn from the seed."""
    number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest())
    letters = []
    for _ in range(5):
        number, choice = divmod(number, len(_SUFFIX))
        letters.append(_SUFFIX[choice])
    return prefix[:58] + "".join(letters)


def shaped(kind: Kind, obj: Json) -> Json:
    """The object with its apiVersion, kind and a metadata whose parts have the types they ought to have."""
    version, word = obj.get("apiVersion") or kind.api_version, obj.get("kind") or kind.kind
    if version != kind.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({kind.api_version})"
        )
    if word != kind.kind:
        raise BadRequest(f"the kind in the data ({word}) does not match the expected kind ({kind.kind})")
    given = obj.get("metadata")
    if given is not None and not isinstance(given, dict):
        raise _misshapen(kind, "metadata", "v1.ObjectMeta")
    metadata = {field: value for field, value in (given or {}).items() if value is not None}
    for field, (shape, called) in _SHAPES.items():
        if field in metadata and not _has_shape(metadata[field], shape, _ELEMENTS.get(field)):
            raise _misshapen(kind, f"metadata.{field}", called)
    return {**obj, "apiVersion": version, "kind": word, "metadata": metadata}


def _has_shape(value: Any, shape: type, element: type | None) -> bool:
    fits = isinstance(value, shape)
    if not fits or element is None:
        return fits
    return all(isinstance(each, element) for each in (value.values() if shape is dict else value))


def _misshapen(kind: Kind, path: str, called: str) -> BadRequest:
    return BadRequest(
        f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {path} must be a {called}'
    )


def metadata_complaints(kind: Kind, metadata: Json) -> list[Cause]:
    causes = _name_complaints(kind, metadata)
    causes += names.label_complaints(metadata.get("labels", {}), "metadata.labels")
    causes += names.annotation_complaints(metadata.get("annotations", {}), "metadata.annotations")
    if (
        sum(len(key) + len(value) for key, value in metadata.get("annotations", {}).items())
        > LONGEST_ANNOTATIONS
    ):
        long = f"Too long: may not be more than {LONGEST_ANNOTATIONS} bytes"
        causes.append(Cause("metadata.annotations", long, "FieldValueTooLong"))
    for finalizer in metadata.get("finalizers", []):
        problems = names.qualified(finalizer)
        causes += [Cause("metadata.finalizers", f'Invalid value: "{finalizer}": {why}') for why in problems]
    return causes + _owner_complaints(metadata.get("ownerReferences", []))


def _name_complaints(kind: Kind, metadata: Json) -> list[Cause]:
    name = metadata.get("name", "")
    if not name:
        why = "Required value: name or generateName is required"
        return [Cause("metadata.name", why, "FieldValueRequired")]
    problems = _NAME_RULES.get(kind.group_kind, names.subdomain)(name)
    return [Cause("metadata.name", f'Invalid value: "{name}": {why}') for why in problems]


def _namespace_name(word: str) -> list[str]:
    return ["must not contain dots"] if "." in word else names.label_name(word)


_NAME_RULES: Mapping[str, Callable[[str], list[str]]] = {
    "Namespace": _namespace_name,
    "Service": names.label_name_1035,
}


def _owner_complaints(owners: list[Json]) -> list[Cause]:
    causes = [
        Cause(f"metadata.ownerReferences[{position}].{field}", 'Invalid value: "": must not be empty')
        for position, owner in enumerate(owners)
        for field in ("apiVersion", "kind", "name", "uid")
        if not (isinstance(owner.get(field), str) and owner[field])
    ]
    controllers = [owner.get("kind") for owner in owners if owner.get("controller") is True]
    if len(controllers) > 1:
        listed = " and ".join(str(kind) for kind in controllers)
        why = f'Only one reference can have Controller set to true. Found "true" in references for {listed}'
        causes.append(Cause("metadata.ownerReferences", f"Invalid value: {why}"))
    return causes


def preserved(new: Json, old: Json) -> Json:
    """The caller's metadata with the server's own fields put back as they were."""
    kept = {field: old[field] for field in (*SERVER_OWNED, "name", "namespace") if field in old}
    if "managedFields" in old and "managedFields" not in new:
        kept["managedFields"] = old["managedFields"]
    kept["resourceVersion"] = old["resourceVersion"]
    return {field: value for field, value in new.items() if field not in SERVER_OWNED} | kept


def unknown_finalizers(new: Json, old: Json) -> list[Cause]:
    """An object on its way out takes no new finalizers."""
    added = [each for each in new.get("finalizers", []) if each not in old.get("finalizers", [])]
    if not added or "deletionTimestamp" not in old:
        return []
    listed = ", ".join(f'"{finalizer}"' for finalizer in added)
    why = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
    return [Cause("metadata.finalizers", f"Forbidden: {why}", "FieldValueForbidden")]


def revision_named(text: str) -> int:
    """The revision that a question names; 0 where it names none."""
    if text and not (text.isdecimal() and len(text) <= LONGEST_REVISION):
        shown = text if len(text) <= LONGEST_REVISION else f"{text[:LONGEST_REVISION]}…"
        raise BadRequest(f'invalid resource version: resourceVersion: Invalid value: "{shown}": not a number')
    return int(text or 0)


def differs_beyond(new: Json, old: Json, parts: tuple[str, ...]) -> bool:
    """Whether anything but the named top-level parts changed."""

    def rest(obj: Json) -> dict[str, Any]:
        return {field: value for field, value in obj.items() if field not in parts}

    return rest(new) != rest(old)


def at_revision(obj: Json, revision: int) -> Json:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}
