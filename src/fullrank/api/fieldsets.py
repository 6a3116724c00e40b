"""Sets of fields as managedFields writes them (FieldsV1): a tree of path elements, worked on as it is.

An element is `f:name` (a field), `k:{"name":"a"}` (the list element with that key) or `v:"a"` (the element of a set).
An element is in the set if there is nothing below it, or if a `.` stands beside what is. The root never is.
"""

from collections.abc import Iterator
from typing import Any, TypeAlias

import msgspec

Fields: TypeAlias = dict[str, Any]

SELF = "."
DEEPEST = 64


def is_member(node: Fields) -> bool:
    return not node or SELF in node


def below(node: Fields) -> Fields:
    return {step: inner for step, inner in node.items() if step != SELF}


def put(fields: Fields, step: str, inner: Fields, *, member: bool) -> None:
    """Writes one element into a tree under construction; what is neither a member nor has any below it is left out."""
    if inner:
        fields[step] = {SELF: {}, **inner} if member else inner
    elif member:
        fields[step] = {}


def union(one: Fields, other: Fields) -> Fields:
    if not one or not other:
        return one or other
    joined = dict(one)
    for step, node in other.items():
        if step in one:
            mine = one[step]
            member = is_member(mine) or is_member(node)
            put(joined, step, union(below(mine), below(node)), member=member)
        else:
            joined[step] = node
    return joined


def difference(one: Fields, other: Fields) -> Fields:
    """Without those members of the other set; what is below them stays."""
    if not one or not other:
        return one
    rest: Fields = {}
    for step, node in one.items():
        taken = other.get(step)
        if taken is None:
            rest[step] = node
        else:
            member = is_member(node) and not is_member(taken)
            put(rest, step, difference(below(node), below(taken)), member=member)
    return rest


def intersection(one: Fields, other: Fields) -> Fields:
    shared: Fields = {}
    for step, node in one.items():
        if step in other:
            member = is_member(node) and is_member(other[step])
            put(shared, step, intersection(below(node), below(other[step])), member=member)
    return shared


def paths(fields: Fields, before: str = "") -> Iterator[str]:
    """`.spec.containers[name="a"].image`: the members as people read them, those of each level before what is below."""
    ordered = sorted(fields.items(), key=lambda item: _rank(item[0]))
    yield from (before + spoken(step) for step, node in ordered if is_member(node))
    for step, node in ordered:
        yield from paths(below(node), before + spoken(step))


def _rank(step: str) -> tuple[int, str]:
    return "fkvi".find(step[:1]), step


def spoken(step: str) -> str:
    sort, _, word = step.partition(":")
    if sort == "f":
        return f".{word}"
    if sort == "k":
        keys = ",".join(
            f"{name}={msgspec.json.encode(value).decode()}"
            for name, value in sorted(msgspec.json.decode(word).items())
        )
        return f"[{keys}]"
    return f"[={word}]" if sort == "v" else f"[{word}]"


def is_wellformed(fields: object, depth: int = 0) -> bool:
    """Whether what a client sent as fieldsV1 is such a tree at all."""
    if not isinstance(fields, dict) or depth > DEEPEST:
        return False
    return all(_is_step(step) and is_wellformed(inner, depth + 1) for step, inner in fields.items())


def _is_step(step: str) -> bool:
    if step == SELF:
        return True
    sort, colon, word = step.partition(":")
    if not colon or sort not in ("f", "k", "v", "i"):
        return False
    if sort == "f":
        return True
    try:
        value = msgspec.json.decode(word)
    except msgspec.DecodeError:
        return False
    return isinstance(value, dict) if sort == "k" else True
