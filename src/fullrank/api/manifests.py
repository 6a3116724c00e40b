"""YAML as people write it, into objects; what is wrong is told with its line, and no bomb goes off."""

import re
from collections.abc import Iterator
from typing import Any

import yaml

from fullrank.api.meta import Json
from fullrank.errors import BadRequest

LARGEST = 3 * 1024 * 1024  # bytes of text
MOST_NODES = 500_000  # once every alias is written out
DEEPEST = 200
LEAST, MOST = -(2**63), 2**64 - 1  # whole numbers
HALF_CHARACTER = re.compile("[\ud800-\udfff]")


class _Loader(yaml.SafeLoader):
    """Dates stay the text they are: JSON has none."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def documents(text: str, source: str) -> list[Json]:
    """The objects in a YAML (or JSON) text, empty documents left out; BadRequest names the source and the line."""
    if len(text) > LARGEST:
        raise BadRequest(f"{source}: is larger than {LARGEST // 1024 // 1024} MiB")
    try:
        found = [one for one in yaml.load_all(text, Loader=_Loader) if one is not None]
    except yaml.YAMLError as error:
        raise BadRequest(f"{source}: {_what_is_wrong(error)}") from error
    except RecursionError as error:
        raise BadRequest(f"{source}: is nested too deeply") from error
    for number, one in enumerate(found, start=1):
        _check(one, source, number)
    return found


def _what_is_wrong(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        return f"line {mark.line + 1}, column {mark.column + 1}: not YAML: {error.problem}"
    return f"not YAML: {error}"


def _check(one: Any, source: str, number: int) -> None:
    if not isinstance(one, dict):
        raise BadRequest(f"{source}: document {number} is not an object but {type(one).__name__}")
    for count, (depth, value) in enumerate(_nodes(one)):
        if count > MOST_NODES or depth > DEEPEST:
            raise BadRequest(f"{source}: document {number} is too large once its aliases are written out")
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            odd = next(key for key in value if not isinstance(key, str))
            raise BadRequest(f"{source}: document {number}: the key {odd!r} is not text: put it in quotes")
        if problem := _unlike_json(value):
            raise BadRequest(f"{source}: document {number}: {problem}")


def _unlike_json(value: Any) -> str:
    """Why a value cannot be one of JSON's, if it cannot; YAML has bytes, sets, times and numbers of any length."""
    if isinstance(value, str | dict):
        texts = (value,) if isinstance(value, str) else value
        halves = any(not text.isascii() and HALF_CHARACTER.search(text) for text in texts)
        return "a text has half a character (a lone surrogate) in it" if halves else ""
    if isinstance(value, int) and not LEAST <= value <= MOST:
        return f"a number of {value.bit_length()} bits is too large"
    if isinstance(value, list | int | float | None):
        return ""
    return f"JSON has no {type(value).__name__}: write it as text"


def _nodes(root: Any) -> Iterator[tuple[int, Any]]:
    found = [(0, root)]
    while found:
        depth, value = found.pop()
        yield depth, value
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        found += [(depth + 1, one) for one in inner]
