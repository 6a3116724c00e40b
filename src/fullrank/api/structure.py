"""What two versions of an object have in common, seen through their schema: which fields there are, which differ, and
what comes out when one is laid over the other. Lists are taken whole unless the schema says how to tell elements apart.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

from fullrank.api.fieldsets import Fields, below, is_member, put, spoken
from fullrank.api.meta import Json
from fullrank.api.schema import Schema
from fullrank.errors import BadRequest


class _Missing:
    pass


MISSING = _Missing()
Shape = Literal["leaf", "map", "list"]


class Difference(NamedTuple):
    changed: Fields  # what the new one has and the old one has not, or has otherwise
    removed: Fields  # what only the old one has


def fields_of(value: Any, schema: Schema | None) -> Fields:
    """The fields a configuration speaks of."""
    found: Fields = {}
    match _shape(value, schema):
        case "map":
            for name, inner in value.items():
                named = schema is not None and name in schema.properties
                known = _inner(schema, name)
                leaf = _shape(inner, known) == "leaf" or inner == {}
                put(found, f"f:{name}", fields_of(inner, known), member=leaf or not named)
        case "list" if schema is not None:
            for step, inner in keyed(value, schema).items():
                put(found, step, fields_of(inner, schema.items), member=True)
    return found


def compared(old: Any, new: Any, schema: Schema | None) -> Difference:
    found = Difference({}, {})
    if old is new:
        return found
    pairs: Iterable[tuple[str, Any, Any, Schema | None]] = ()
    if "map" in (_shape(old, schema), _shape(new, schema)):
        pairs = _fields_side_by_side(_as_dict(old), _as_dict(new), schema)
    elif schema is not None and "list" in (_shape(old, schema), _shape(new, schema)):
        pairs = _elements_side_by_side(_as_list(old), _as_list(new), schema)
    for step, before, after, known in pairs:
        inner = _compared_element(before, after, known)
        for fields, part in zip(found, inner, strict=True):
            if part is not None:
                fields[step] = part
    return found


def _compared_element(old: Any, new: Any, schema: Schema | None) -> tuple[Fields | None, Fields | None]:
    """What changed and what was removed at one element: a node each, or None for nothing."""
    if old is new:
        return None, None
    shapes = {_shape(each, schema) for each in (old, new) if each is not MISSING}
    if len(shapes) > 1 or "leaf" in shapes or _has_twins((old, new), schema):
        if new is MISSING:
            return None, {}
        return (None if old is not MISSING and old == new else {}), None
    changed, removed = compared(old, new, schema)
    holder: Fields = {}
    put(holder, "changed", changed, member=old is MISSING)
    put(holder, "removed", removed, member=new is MISSING)
    return holder.get("changed"), holder.get("removed")


def laid_over(live: Any, config: Any, schema: Schema | None) -> Any:
    """The live object with everything the configuration says."""
    shape = _shape(config, schema)
    if live is MISSING or shape == "leaf" or shape != _shape(live, schema):
        return config
    if shape == "map":
        merged = dict(live)
        for name, inner in config.items():
            merged[name] = laid_over(live.get(name, MISSING), inner, _inner(schema, name))
        return merged
    if schema is None or _has_twins((live, config), schema):
        return config
    theirs, ours = keyed(live, schema), keyed(config, schema)
    merged_items: list[Any] = []
    waiting = list(ours)
    for step, inner in theirs.items():
        if step not in ours:
            merged_items.append(inner)
            continue
        # The configuration decides the order of what it names; the others keep their place among them.
        while step in waiting:
            first = waiting.pop(0)
            merged_items.append(laid_over(theirs.get(first, MISSING), ours[first], schema.items))
    return merged_items + [laid_over(theirs.get(each, MISSING), ours[each], schema.items) for each in waiting]


def without(value: Any, fields: Fields, schema: Schema | None) -> Any:
    """The value without the members of the set and everything below them."""
    if isinstance(value, dict):
        kept: Json = {}
        for name, inner in value.items():
            node = fields.get(f"f:{name}")
            if node is None:
                kept[name] = inner
            elif not is_member(node):
                rest = without(inner, node, _inner(schema, name))
                if rest or not inner:
                    kept[name] = rest
        return kept
    if isinstance(value, list) and schema is not None and _shape(value, schema) == "list":
        left = []
        for step, inner in keyed(value, schema).items():
            node = fields.get(step)
            if node is None:
                left.append(inner)
            elif not is_member(node):
                left.append(without(inner, node, schema.items))
        return left
    return value


def with_named_fields(fields: Fields, schema: Schema | None) -> Fields:
    """The set and the fields around its members: who owns `a.b` owns `a`, where the type has a field `a`."""
    found: Fields = {}
    for step, node in fields.items():
        name = step.removeprefix("f:")
        named = schema is not None and step.startswith("f:") and name in schema.properties
        known = _inner(schema, name) if step.startswith("f:") else schema.items if schema else None
        put(found, step, with_named_fields(below(node), known), member=is_member(node) or named)
    return found


def keyed(items: list[Any], schema: Schema) -> dict[str, Any]:
    """The elements of a list by how they are told apart."""
    return {_step(item, schema): item for item in items}


def check_distinct(value: Any, schema: Schema | None, title: str, path: str = "") -> None:
    """BadRequest if a list of the configuration names one element twice."""
    match _shape(value, schema):
        case "map":
            for name, inner in value.items():
                check_distinct(inner, _inner(schema, name), title, f"{path}.{name}")
        case "list" if schema is not None:
            seen: set[str] = set()
            for item in value:
                step = _step(item, schema)
                if step in seen:
                    problem = f"{path}: duplicate entries for key {spoken(step)}"
                    raise BadRequest(f"failed to create typed patch object ({title}): {problem}")
                seen.add(step)
                check_distinct(item, schema.items, title, path + spoken(step))


def _step(item: Any, schema: Schema) -> str:
    if schema.list_type == "set" or not isinstance(item, dict):
        return "v:" + msgspec.json.encode(item).decode()
    keys = {}
    for name in sorted(schema.list_keys):
        known = schema.items.properties.get(name) if schema.items else None
        value = item.get(name, known.default if known else None)
        if value is not None:
            keys[name] = value
    return "k:" + msgspec.json.encode(keys).decode()


def _shape(value: Any, schema: Schema | None) -> Shape:
    if isinstance(value, dict):
        return "leaf" if schema is not None and schema.atomic else "map"
    if isinstance(value, list) and schema is not None and schema.list_type in ("set", "map"):
        return "list"
    return "leaf"


def _inner(schema: Schema | None, name: str) -> Schema | None:
    return schema.properties.get(name, schema.additional) if schema is not None else None


def _has_twins(lists: Iterable[Any], schema: Schema | None) -> bool:
    """Two elements of one list that cannot be told apart: then it is taken whole."""
    return schema is not None and any(
        isinstance(each, list) and len(keyed(each, schema)) != len(each) for each in lists
    )


def _fields_side_by_side(
    old: Json, new: Json, schema: Schema | None
) -> Iterable[tuple[str, Any, Any, Schema | None]]:
    for name in old | new:
        yield f"f:{name}", old.get(name, MISSING), new.get(name, MISSING), _inner(schema, name)


def _elements_side_by_side(
    old: list[Any], new: list[Any], schema: Schema
) -> Iterable[tuple[str, Any, Any, Schema | None]]:
    before, after = keyed(old, schema), keyed(new, schema)
    for step in before | after:
        yield step, before.get(step, MISSING), after.get(step, MISSING), schema.items


def _as_dict(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
