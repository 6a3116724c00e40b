"""What an object may look like: a small structural schema, and what can be asked of one.

A `Schema` is a value. From it come the complaints about an object, the fields nobody knows (with a guess at
what was meant), the object without them, its defaults, and the OpenAPI that `kubectl explain` and a
CustomResourceDefinition show. The words are Kubernetes', so that complaints read the same in both homes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, NamedTuple

from fullrank.api.meta import Json, is_moment
from fullrank.api.quantity import amount
from fullrank.errors import Cause

Type = Literal[
    "object", "array", "string", "integer", "number", "boolean", "int-or-string", "quantity", "any"
]

NUMBER_PATTERN = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
QUANTITY_PATTERN = rf"^(\+|-)?{NUMBER_PATTERN}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER_PATTERN}))?$"
BOUNDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


@dataclass(frozen=True, slots=True)
class Schema:
    """One place in an object. `name` is set where the type has a name of its own, as the core types have."""

    type: Type
    properties: Mapping[str, "Schema"] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    items: "Schema | None" = None
    additional: "Schema | None" = None  # the values of a map
    description: str = ""
    format: str = ""
    pattern: str = ""
    enum: tuple[str, ...] = ()
    minimum: int | None = None
    default: Any = None
    preserve_unknown: bool = False
    atomic: bool = False  # an object that is applied as a whole or not at all
    list_type: Literal["", "atomic", "set", "map"] = ""
    list_keys: tuple[str, ...] = ()
    merge_key: str = ""  # how a strategic merge patch pairs the elements of a list
    patch_strategy: Literal["", "merge", "merge,retainKeys"] = ""
    name: str = ""
    has_defaults: bool = field(init=False, repr=False, compare=False)  # somewhere inside, beyond its own
    is_any_string: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ruled = self.enum or self.pattern or self.format
        object.__setattr__(self, "is_any_string", self.type == "string" and not ruled)
        inner = (*self.properties.values(), *(one for one in (self.items, self.additional) if one))
        found = any(one.default is not None or one.has_defaults for one in inner)
        object.__setattr__(self, "has_defaults", found)


def obj(
    properties: Mapping[str, Schema] | None = None,
    *,
    required: Iterable[str] = (),
    description: str = "",
    name: str = "",
) -> Schema:
    return Schema("object", properties or {}, required=tuple(required), description=description, name=name)


def mapping(values: Schema, *, description: str = "") -> Schema:
    """An object whose keys are anybody's, such as labels or replica specs."""
    return Schema("object", additional=values, description=description)


def array(items: Schema, *, key: str = "", description: str = "") -> Schema:
    """A list; with a `key`, one whose elements are told apart by that field."""
    if not key:
        return Schema("array", items=items, list_type="atomic", description=description)
    return Schema(
        "array", items=items, list_type="map", list_keys=(key,), merge_key=key, patch_strategy="merge",
        description=description,
    )  # fmt: skip


def string(*enum: str, default: str | None = None, description: str = "", pattern: str = "") -> Schema:
    return Schema("string", enum=enum, default=default, description=description, pattern=pattern)


def integer(*, format: str = "int32", minimum: int | None = None, description: str = "") -> Schema:  # noqa: A002
    return Schema("integer", format=format, minimum=minimum, description=description)


def boolean(*, default: bool | None = None, description: str = "") -> Schema:
    return Schema("boolean", default=default, description=description)


def timestamp(*, description: str = "") -> Schema:
    return Schema("string", format="date-time", description=description)


def int_or_string(*, description: str = "") -> Schema:
    return Schema("int-or-string", description=description)


def quantity(*, description: str = "") -> Schema:
    """`500m`, `16Gi`, 2."""
    return Schema("quantity", pattern=QUANTITY_PATTERN, description=description)


def anything(*, description: str = "") -> Schema:
    """An object we pass on without looking inside."""
    return Schema("object", preserve_unknown=True, description=description)


def described(schema: Schema, description: str) -> Schema:
    return replace(schema, description=description)


def whole_object(
    spec: Schema, status: Schema | None = None, *, description: str = "", required: bool = False
) -> Schema:
    """An object of a kind of ours: apiVersion, kind and metadata around its `spec` and `status`."""
    halves = {"spec": spec} if status is None else {"spec": spec, "status": status}
    about = {"apiVersion": string(), "kind": string(), "metadata": core_schema("ObjectMeta")}
    return obj(about | halves, required=("spec",) if required else (), description=description)


@cache
def core_schema(name: str) -> Schema:
    """A type of Kubernetes' own, by its short name: `Pod`, `PodTemplateSpec`, `ObjectMeta`."""
    from fullrank.api.core_types import lookup  # a long table: read by those who need it

    return lookup(name)


def json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


MIXED = ("int-or-string", "quantity")
ACCEPTED: Mapping[str, tuple[str, ...]] = {
    "object": ("object",), "array": ("array",), "string": ("string",), "integer": ("integer",),
    "boolean": ("boolean",), "number": ("integer", "number"), "int-or-string": ("integer", "string"),
    "quantity": ("integer", "string", "number"),  # YAML's 0.5 is a number, and everybody writes it
}  # fmt: skip


def complaints(value: object, schema: Schema, path: str = "", *, required: bool = True) -> list[Cause]:
    """Everything that is wrong with the value; a null field counts as absent, as it does for Kubernetes."""
    return [] if _is_flawless(value, schema, required) else list(_complaints(value, schema, path, required))


def _is_flawless(value: object, schema: Schema, required: bool) -> bool:
    """Whether there is nothing to complain of: so it is with almost every write, and then no path is ever spelt."""
    if isinstance(value, dict) and schema.type == "object":
        if required and any(value.get(name) is None for name in schema.required):
            return False
        properties, additional = schema.properties, schema.additional
        for name, inner in value.items():
            known = properties.get(name, additional)
            if known is None or inner is None or (known.is_any_string and isinstance(inner, str)):
                continue
            if not _is_flawless(inner, known, required):
                return False
        return True
    if isinstance(value, list) and schema.type == "array":
        items = schema.items
        return items is None or all(_is_flawless(item, items, required) for item in value)
    if isinstance(value, str) and schema.is_any_string:
        return True
    return next(_complaints(value, schema, "", required), None) is None


def _complaints(value: object, schema: Schema, path: str, required: bool) -> Iterator[Cause]:
    if schema.type == "any":
        return
    found = json_type(value)
    if found not in ACCEPTED[schema.type]:
        wanted = "integer,string" if schema.type in MIXED else schema.type
        place = path or "<nil>"
        yield Cause(
            place, f'Invalid value: "{found}": {place} in body must be of type {wanted}: "{found}"',
            "FieldValueTypeInvalid",
        )  # fmt: skip
    elif schema.type == "quantity":
        yield from _quantity_complaints(value, schema, path)
    elif isinstance(value, dict):
        yield from _object_complaints(value, schema, path, required)
    elif isinstance(value, list):
        yield from _array_complaints(value, schema, path, required)
    elif isinstance(value, str):
        yield from _string_complaints(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_complaints(value, schema, path)


def _object_complaints(value: Json, schema: Schema, path: str, required: bool) -> Iterator[Cause]:
    dotted = f"{path}." if path else ""
    if required:
        for name in schema.required:
            if value.get(name) is None:
                yield Cause(f"{dotted}{name}", "Required value", "FieldValueRequired")
    for name, inner in value.items():
        known = schema.properties.get(name, schema.additional)
        if known is not None and inner is not None:
            yield from _complaints(inner, known, f"{dotted}{name}", required)


def _array_complaints(value: list[Any], schema: Schema, path: str, required: bool) -> Iterator[Cause]:
    if schema.items is None:
        return
    for index, item in enumerate(value):
        yield from _complaints(item, schema.items, f"{path}[{index}]", required)


def _string_complaints(value: str, schema: Schema, path: str) -> Iterator[Cause]:
    if schema.enum and value not in schema.enum:
        supported = ", ".join(f'"{word}"' for word in schema.enum)
        yield Cause(
            path, f'Unsupported value: "{value}": supported values: {supported}', "FieldValueNotSupported",
            did_you_mean(value, schema.enum),
        )  # fmt: skip
    if schema.pattern and not re.fullmatch(schema.pattern, value):
        yield Cause(path, f"Invalid value: \"{value}\": {path} in body should match '{schema.pattern}'")
    if schema.format == "date-time" and not is_moment(value):
        yield Cause(path, f'Invalid value: "{value}": {path} in body must be of type date-time: "{value}"')


def _quantity_complaints(value: Any, schema: Schema, path: str) -> Iterator[Cause]:
    try:
        amount(value)
    except ValueError:
        yield Cause(
            path, f"Invalid value: \"{value}\": {path} in body should match '{schema.pattern}'",
            hint="write it like 500m, 2 or 16Gi",
        )  # fmt: skip


def _number_complaints(value: float, schema: Schema, path: str) -> Iterator[Cause]:
    lowest, highest = BOUNDS.get(schema.format, (None, None))
    lowest = schema.minimum if schema.minimum is not None else lowest
    if lowest is not None and value < lowest:
        yield Cause(path, f"Invalid value: {value}: should be greater than or equal to {lowest}")
    if highest is not None and value > highest:
        yield Cause(path, f"Invalid value: {value}: should be less than or equal to {highest}")


class Unknown(NamedTuple):
    """A field nobody knows, and what may have been meant."""

    path: str
    hint: str

    def __str__(self) -> str:
        text = f'unknown field "{self.path}"'
        return f"{text} ({self.hint})" if self.hint else text


def unknown_fields(value: object, schema: Schema) -> list[Unknown]:
    return sorted(_unknown(value, schema, ""))


def _unknown(value: object, schema: Schema, path: str) -> Iterator[Unknown]:
    if isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _unknown(item, schema.items, f"{path}[{index}]")
    if not isinstance(value, dict) or schema.type != "object":
        return
    for name, inner in value.items():
        place = f"{path}.{name}" if path else name
        known = schema.properties.get(name, schema.additional)
        if known is not None:
            yield from _unknown(inner, known, place)
        elif not schema.preserve_unknown:
            yield Unknown(place, _meant(name, schema))


def _meant(name: str, schema: Schema) -> str:
    """A misspelling, or a right word at the wrong indentation."""
    for place, inner in schema.properties.items():
        if name in inner.properties and place not in ("metadata", "status"):
            return f'it belongs in "{place}"'
    return did_you_mean(name, schema.properties)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return f'did you mean "{by_lower[close[0]]}"?' if close else ""


def pruned(value: Any, schema: Schema) -> Any:
    """The value without unknown and null fields. What has the wrong type stays: that is a complaint."""
    if isinstance(value, dict) and schema.type == "object":
        kept: Json = {}
        for name, inner in value.items():
            known = schema.properties.get(name, schema.additional)
            if inner is None and not schema.preserve_unknown:
                continue
            if known is not None:
                kept[name] = pruned(inner, known) if isinstance(inner, dict | list) else inner
            elif schema.preserve_unknown:
                kept[name] = inner
        return kept
    if isinstance(value, list) and schema.items is not None:
        return [pruned(item, schema.items) for item in value]
    return value


def with_defaults(value: Any, schema: Schema) -> Any:
    """The value with the schema's defaults in the objects it has; none is made up to hold one."""
    if not schema.has_defaults:
        return value
    if isinstance(value, dict) and schema.type == "object":
        filled = {
            name: with_defaults(inner, known)
            if (known := schema.properties.get(name, schema.additional))
            else inner
            for name, inner in value.items()
        }
        for name, known in schema.properties.items():
            if known.default is not None and filled.get(name) is None:
                filled[name] = known.default
        return filled
    if isinstance(value, list) and schema.items is not None:
        return [with_defaults(item, schema.items) for item in value]
    return value


def openapi(schema: Schema, components: Json | None = None) -> Json:
    """The schema as OpenAPI v3, all in one piece as a CustomResourceDefinition wants it.

    With `components`, every named type goes there once and is pointed to, and lists say how they merge.
    """
    if components is None or not schema.name:
        return _openapi(schema, components)
    if schema.name not in components:
        components[schema.name] = {}
        components[schema.name] = _openapi(schema, components)
    pointer = {"$ref": f"#/components/schemas/{schema.name}"}
    return {"description": schema.description, "allOf": [pointer]} if schema.description else pointer


def _openapi(schema: Schema, components: Json | None) -> Json:
    inner = {
        "properties": {name: openapi(known, components) for name, known in schema.properties.items()},
        "additionalProperties": openapi(schema.additional, components) if schema.additional else None,
        "items": openapi(schema.items, components) if schema.items else None,
    }
    words = {
        **_type_words(schema),
        "description": schema.description,
        "format": schema.format,
        "pattern": schema.pattern,
        "enum": list(schema.enum),
        "required": list(schema.required),
        **inner,
        "x-kubernetes-preserve-unknown-fields": schema.preserve_unknown or schema.type == "any",
        "x-kubernetes-map-type": "atomic" if schema.atomic else "",
        **_list_words(schema, pairing=components is not None),
    }
    said = {word: value for word, value in words.items() if value}
    # These two may well be zero or false.
    limits = {"minimum": schema.minimum, "default": schema.default}
    return said | {word: value for word, value in limits.items() if value is not None}


def _type_words(schema: Schema) -> Json:
    if schema.type in MIXED:
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return {} if schema.type == "any" else {"type": schema.type}


def _list_words(schema: Schema, *, pairing: bool) -> Json:
    # A custom resource's list may be told apart only by fields that every element is sure to have.
    told_apart = schema.list_type == "map" and (
        pairing or all(_is_sure(schema.items, key) for key in schema.list_keys)
    )
    return {
        "x-kubernetes-list-type": "atomic"
        if schema.list_type == "map" and not told_apart
        else schema.list_type,
        "x-kubernetes-list-map-keys": list(schema.list_keys) if told_apart else [],
        "x-kubernetes-patch-merge-key": schema.merge_key if pairing else "",
        "x-kubernetes-patch-strategy": schema.patch_strategy if pairing else "",
    }


def _is_sure(items: Schema | None, key: str) -> bool:
    known = items.properties.get(key) if items else None
    return items is not None and known is not None and (key in items.required or known.default is not None)
