"""YAML as people write it, into objects; what is wrong is told with its line, and no bomb goes off."""

from collections.abc import Iterator
from typing import Any

import yaml

from fullrank.api.meta import Json
from fullrank.errors import BadRequest

LARGEST = 3 * 1024 * 1024  # bytes of text
MOST_NODES = 500_000  # once every alias is written out
DEEPEST = 200


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


def _nodes(root: Any) -> Iterator[tuple[int, Any]]:
    found = [(0, root)]
    while found:
        depth, value = found.pop()
        yield depth, value
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        found += [(depth + 1, one) for one in inner]
