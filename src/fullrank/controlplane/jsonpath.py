"""The simple JSONPaths of printer columns: `.status.conditions[-1:].type`, `.spec.ports[?(@.name=="http")].port`."""

import re
from functools import lru_cache
from typing import Any

STEP = re.compile(
    r"""
    \.(?P<field>(?:[^.\[\\]|\\.)+)
    | \[\s*'(?P<quoted>[^']*)'\s*\]
    | \[\s*(?P<index>-?\d+)\s*\]
    | \[\s*(?P<start>-?\d+)?\s*:\s*(?P<stop>-?\d+)?\s*\]
    | \[\s*\?\(\s*@\.(?P<left>[^=\s]+)\s*==\s*["'](?P<right>[^"']*)["']\s*\)\s*\]
    | (?P<all>\[\s*\*\s*\])
    """,
    re.VERBOSE,
)


def found_at(obj: Any, path: str) -> list[Any]:
    """Everything the path leads to; nothing where it leads nowhere."""
    found = [obj]
    for step in _steps(path):
        found = [inner for value in found for inner in _taken(value, step)]
    return found


@lru_cache(maxsize=512)
def _steps(path: str) -> tuple[re.Match[str], ...]:
    steps, position = [], 0
    while position < len(path):
        step = STEP.match(path, position)
        if step is None:
            raise ValueError(f'"{path}" is not a column path: what is "{path[position:]}"?')
        steps.append(step)
        position = step.end()
    return tuple(steps)


def _taken(value: Any, step: re.Match[str]) -> list[Any]:
    field = step["field"] or step["quoted"]
    if field is not None:
        name = field.replace("\\", "")
        return [value[name]] if isinstance(value, dict) and name in value else []
    if not isinstance(value, list):
        return list(value.values()) if isinstance(value, dict) and step["all"] else []
    if step["index"] is not None:
        index = int(step["index"])
        return [value[index]] if -len(value) <= index < len(value) else []
    if step["left"] is not None:
        return [
            item for item in value if isinstance(item, dict) and str(item.get(step["left"])) == step["right"]
        ]
    return (
        value
        if step["all"]
        else value[slice(*(int(end) if end else None for end in step.group("start", "stop")))]
    )
