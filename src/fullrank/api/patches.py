"""Changing an object by saying what changes: JSON merge patch, JSON patch, strategic merge patch.

Every function returns a new object and leaves its arguments alone (unchanged parts are shared).
"""

from collections.abc import Callable, Iterable
from typing import Any

from fullrank.api.meta import Json
from fullrank.api.schema import Schema
from fullrank.errors import BadRequest, Cause, Invalid

DIRECTIVE = "$patch"
RETAIN = "$retainKeys"
ORDER = "$setElementOrder/"
DELETE = "$deleteFromPrimitiveList/"
LONGEST_INDEX = 9  # digits: no list has more elements


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: fields given replace those there were, null removes, lists are taken whole."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: Json, operations: list[Json]) -> Json:
    """RFC 6902: all of the operations, in order, or none; Invalid names the one that cannot be done."""
    document: Any = target
    for number, operation in enumerate(operations):
        try:
            document = _applied(document, operation)
        except _CannotBeDone as problem:
            raise Invalid("the patch", [Cause(f"[{number}]", str(problem))]) from None
    if not isinstance(document, dict):
        raise Invalid("the patch", [Cause("", "leaves no object behind")])
    return document


class _CannotBeDone(Exception):
    pass


def _applied(document: Any, operation: Json) -> Any:
    verb, path = operation.get("op"), operation.get("path")
    if not isinstance(path, str):
        raise _CannotBeDone(f'operation "{verb}" lacks a path')
    tokens = _tokens(path)
    match verb:
        case "add":
            return _set(document, tokens, _value(operation), insert=True)
        case "replace":
            return _set(document, tokens, _value(operation), insert=False)
        case "remove":
            return _removed(document, tokens)
        case "test":
            if _found(document, tokens) != _value(operation):
                raise _CannotBeDone(f"testing value {path} failed")
            return document
        case "copy" | "move":
            origin = _tokens(str(operation.get("from", "")))
            value = _found(document, origin)
            if verb == "move":
                if tokens[: len(origin)] == origin and tokens != origin:
                    raise _CannotBeDone(f"{path} is inside of what is moved there")
                document = _removed(document, origin)
            return _set(document, tokens, value, insert=True)
    raise _CannotBeDone(
        f'unexpected kind of operation "{verb}": use add, remove, replace, move, copy or test'
    )


def _value(operation: Json) -> Any:
    if "value" not in operation:
        raise _CannotBeDone(f'operation "{operation["op"]}" of {operation["path"]} lacks a value')
    return operation["value"]


def _tokens(pointer: str) -> list[str]:
    if pointer and not pointer.startswith("/"):
        raise _CannotBeDone(f'path "{pointer}" does not start with "/"')
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _found(document: Any, tokens: list[str]) -> Any:
    for token in tokens:
        document = _child(document, token)
    return document


def _child(container: Any, token: str) -> Any:
    if isinstance(container, dict) and token in container:
        return container[token]
    if isinstance(container, list):
        return container[_index(token, len(container) - 1)]
    raise _CannotBeDone(f'there is no "{token}"')


def _index(token: str, highest: int) -> int:
    if not token.isdecimal() or len(token) > LONGEST_INDEX or int(token) > highest:
        raise _CannotBeDone(f'there is no element "{token}" in a list of {highest + 1}')
    return int(token)


def _changed(document: Any, tokens: list[str], change: Callable[[Any, str], Any]) -> Any:
    """The document with `change` done to the container in which the last token names a place."""
    first, *rest = tokens
    if not rest:
        return change(document, first)
    child = _changed(_child(document, first), rest, change)
    if isinstance(document, dict):
        return document | {first: child}
    position = int(first)
    return [*document[:position], child, *document[position + 1 :]]


def _set(document: Any, tokens: list[str], value: Any, *, insert: bool) -> Any:
    def change(container: Any, token: str) -> Any:
        if isinstance(container, dict):
            return container | {token: value}
        if not isinstance(container, list):
            raise _CannotBeDone(f'there is no place for "{token}"')
        if not insert:
            position = _index(token, len(container) - 1)
            return [*container[:position], value, *container[position + 1 :]]
        position = len(container) if token == "-" else _index(token, len(container))
        return [*container[:position], value, *container[position:]]

    return _changed(document, tokens, change) if tokens else value


def _removed(document: Any, tokens: list[str]) -> Any:
    def change(container: Any, token: str) -> Any:
        _child(container, token)
        if isinstance(container, dict):
            return {name: value for name, value in container.items() if name != token}
        return [item for position, item in enumerate(container) if position != int(token)]

    return _changed(document, tokens, change) if tokens else None


def strategic_merge_patch(target: Json, patch: Json, schema: Schema) -> Json:
    """A merge patch that knows which lists are really maps, and the `$` words that kubectl sends along."""
    directive = patch.get(DIRECTIVE, "merge")
    if directive == "replace":
        return {name: value for name, value in patch.items() if name != DIRECTIVE}
    if directive == "delete":
        return {}
    if directive != "merge":
        raise BadRequest(f"unknown patch type: {directive}")
    kept, lists = _list_word(patch, RETAIN), _lists_told(patch)
    merged = {name: value for name, value in target.items() if kept is None or name in kept}
    for name, value in patch.items():
        if name.startswith("$"):
            continue
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value, schema.properties.get(name, schema.additional))
    for name in lists:
        told = merged.get(name)
        if isinstance(told, list):
            known = schema.properties.get(name)
            merged[name] = _arranged(
                told, target.get(name) or [], name, patch, known.merge_key if known else ""
            )
    return merged


def _merged(old: Any, new: Any, schema: Schema | None) -> Any:
    if isinstance(new, dict):
        return strategic_merge_patch(old if isinstance(old, dict) else {}, new, schema or Schema("object"))
    if isinstance(new, list) and schema is not None and schema.patch_strategy and schema.items is not None:
        before = old if isinstance(old, list) else []
        return _merged_objects(before, new, schema) if schema.merge_key else _united(before, new)
    return new


def _united(old: list[Any], new: list[Any]) -> list[Any]:
    return [*old, *(item for item in new if item not in old)]


def _merged_objects(old: list[Any], new: list[Any], schema: Schema) -> list[Any]:
    key = schema.merge_key
    if any(isinstance(item, dict) and item.get(DIRECTIVE) == "replace" for item in new):
        return [item for item in new if not (isinstance(item, dict) and item.get(DIRECTIVE) == "replace")]
    merged = list(old)
    for item in new:
        if not isinstance(item, dict) or key not in item:
            raise BadRequest(f"a list element of the patch does not contain the declared merge key: {key}")
        position = next((i for i, was in enumerate(merged) if was.get(key) == item[key]), None)
        if item.get(DIRECTIVE) == "delete":
            merged = [was for was in merged if was.get(key) != item[key]]
        elif position is None:
            merged.append(_merged({}, item, schema.items))
        else:
            merged[position] = _merged(merged[position], item, schema.items)
    return merged


def _lists_told(patch: Json) -> Iterable[str]:
    """The lists that `$` words beside them reorder or shorten."""
    words = [name for name in patch if name.startswith((ORDER, DELETE))]
    for word in words:
        _list_word(patch, word)
    return {word.partition("/")[2] for word in words}


def _arranged(items: list[Any], before: list[Any], name: str, patch: Json, key: str) -> list[Any]:
    removed = _list_word(patch, DELETE + name) or []
    items = [item for item in items if item not in removed]
    told_order = _list_word(patch, ORDER + name)
    if told_order is None:
        return items
    order = [_identity(item, key) for item in told_order]
    place = {_identity(item, key): index for index, item in enumerate(before)}
    told = sorted(
        (i for i in items if _identity(i, key) in order), key=lambda i: order.index(_identity(i, key))
    )
    others = [item for item in items if _identity(item, key) not in order]
    arranged: list[Any] = []
    # What only the server has keeps its place among those whose old place is known; newcomers go before it.
    while told and others:
        ours, theirs = place.get(_identity(told[0], key), -1), place.get(_identity(others[0], key), -1)
        arranged.append(told.pop(0) if ours < theirs else others.pop(0))
    return [*arranged, *told, *others]


def _list_word(patch: Json, word: str) -> list[Any] | None:
    value = patch.get(word)
    if value is not None and not isinstance(value, list):
        raise BadRequest(f"{word} in the patch must be a list")
    return value


def _identity(item: Any, key: str) -> str:
    return str(item.get(key)) if key and isinstance(item, dict) else str(item)
