"""An entry of the image catalogue: which images it stands for, and what they hold.

Reading one names everything that is wrong with it, not just the first thing.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

import yaml

DOCKER_HUB = re.compile(r"^(?:(?:index\.)?docker\.io/)?(?:library/(?=[^/]+$))?")
PYTHON_VERSION = re.compile(r"3\.\d+")
VARIABLE = re.compile(r"[^=\0]+")


@dataclass(frozen=True, slots=True)
class Recipe:
    """A Python environment to build; an empty `python` is the version that fullrank itself runs on."""

    requirements: tuple[str, ...] = ()
    python: str = ""


@dataclass(frozen=True, slots=True)
class File:
    """A file that the image would contain."""

    target: str
    source: Path
    mode: int

    @property
    def is_command(self) -> bool:
        return posixpath.basename(posixpath.dirname(self.target)) in ("bin", "sbin") and bool(
            self.mode & 0o111
        )


@dataclass(frozen=True, slots=True)
class Entry:
    origin: Path
    patterns: tuple[str, ...]
    recipe: Recipe | None = None
    files: tuple[File, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: int | None = None
    working_dir: str = ""

    def matches(self, reference: str) -> bool:
        return any(fnmatchcase(canonical(reference), canonical(pattern)) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Complaint:
    """One thing that is wrong in one file of the catalogue."""

    origin: Path
    path: str
    message: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (str(self.origin), self.path, self.message)))


def canonical(reference: str) -> str:
    """One spelling for all names of an image: without Docker Hub's prefixes, with a tag or else its digest."""
    name, _, digest = DOCKER_HUB.sub("", reference.strip(), count=1).partition("@")
    if ":" in name.rpartition("/")[2]:
        return name
    return f"{name}:{digest or 'latest'}"


def read_entry(origin: Path) -> Entry | list[Complaint]:
    """The entry that a file holds, or every complaint about it."""
    try:
        document = yaml.safe_load(origin.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError) as error:
        return [Complaint(origin, "", f"cannot be read: {error}")]
    except yaml.YAMLError as error:
        return [Complaint(origin, "", f"is not YAML: {' '.join(str(error).split())}")]
    if not isinstance(document, dict):
        return [Complaint(origin, "", "must be a mapping with `images` in it")]
    complaints = [Complaint(origin, path, message) for path, message in _complaints(document, origin)]
    return complaints or _entry(document, origin)


Remarks: TypeAlias = Iterator[tuple[str, str]]


def _complaints(document: dict[Any, Any], origin: Path) -> Remarks:
    for key in document:
        if key not in CHECKS:
            yield str(key), f"is not a field of an entry (fields are {', '.join(CHECKS)})"
    if not document.get("images"):
        yield "images", "is required: a list of image patterns such as `example/train:*`"
    for key, check in CHECKS.items():
        if document.get(key) is not None:
            yield from check(document[key], key, origin)


def _check_texts(value: Any, path: str, _origin: Path) -> Remarks:
    if not isinstance(value, list):
        yield path, f"must be a list of strings, is {_named(value)}"
        return
    for index, text in enumerate(value):
        if not isinstance(text, str) or not text.strip() or "\0" in text or "\n" in text:
            yield f"{path}[{index}]", f"must be a non-empty string of one line, is {_named(text)}"


def _check_environment(value: Any, path: str, origin: Path) -> Remarks:
    if not isinstance(value, dict):
        yield path, f"must be a mapping with `requirements`, is {_named(value)}"
        return
    for key in value:
        if key not in ("python", "requirements"):
            yield f"{path}.{key}", "is not a field of an environment (fields are python, requirements)"
    python = value.get("python")
    if python is not None and not (isinstance(python, str) and PYTHON_VERSION.fullmatch(python)):
        yield f"{path}.python", f'must be a version such as "3.11", in quotes, is {_named(python)}'
    requirements = value.get("requirements")
    if requirements is not None:
        yield from _check_texts(requirements, f"{path}.requirements", origin)
        for index, line in enumerate(requirements if isinstance(requirements, list) else ()):
            if isinstance(line, str) and line.lstrip().startswith("-"):
                yield f"{path}.requirements[{index}]", f"must name a package, {line!r} is an option"


def _check_files(value: Any, path: str, origin: Path) -> Remarks:
    if not isinstance(value, dict):
        yield path, f"must be a mapping of paths in the image to files beside this one, is {_named(value)}"
        return
    for target, file in value.items():
        where = f"{path}[{target}]"
        if not isinstance(target, str) or not _is_clean_absolute(target):
            yield where, "must be an absolute path without `..`, in the image"
        if isinstance(file, dict):
            for key in file:
                if key not in ("source", "mode"):
                    yield f"{where}.{key}", "is not a field of a file (fields are source, mode)"
            if file.get("mode") is not None and _mode(file["mode"]) is None:
                yield f"{where}.mode", f'must be an octal mode such as "0755", is {_named(file["mode"])}'
            yield from _check_source(file.get("source"), f"{where}.source", origin)
        else:
            yield from _check_source(file, where, origin)


def _check_source(value: Any, path: str, origin: Path) -> Remarks:
    if not isinstance(value, str) or not value:
        yield path, f"must name a file beside {origin.name}, is {_named(value)}"
    elif not (origin.parent / value).resolve().is_relative_to(origin.parent.resolve()):
        yield path, f"must stay in the folder of {origin.name}, {value!r} leaves it"
    elif not (origin.parent / value).is_file():
        yield path, f"names {value!r}, and there is no such file in {origin.parent}"


def _check_env(value: Any, path: str, _origin: Path) -> Remarks:
    if not isinstance(value, dict):
        yield path, f"must be a mapping of variables to strings, is {_named(value)}"
        return
    for name, text in value.items():
        if not isinstance(name, str) or not VARIABLE.fullmatch(name):
            yield f"{path}[{name}]", "is not the name of a variable"
        if not isinstance(text, str) or "\0" in text:
            yield f"{path}.{name}", f"must be a string, is {_named(text)}: put it in quotes"


def _check_user(value: Any, path: str, _origin: Path) -> Remarks:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        yield path, f"must be a user's number, is {_named(value)}"


def _check_working_dir(value: Any, path: str, _origin: Path) -> Remarks:
    if not isinstance(value, str) or not _is_clean_absolute(value):
        yield path, f"must be an absolute path without `..`, is {_named(value)}"


CHECKS: Mapping[str, Callable[[Any, str, Path], Remarks]] = {
    "images": _check_texts,
    "environment": _check_environment,
    "files": _check_files,
    "env": _check_env,
    "entrypoint": _check_texts,
    "command": _check_texts,
    "user": _check_user,
    "workingDir": _check_working_dir,
}


def _entry(document: dict[str, Any], origin: Path) -> Entry:
    environment = document.get("environment")
    return Entry(
        origin=origin,
        patterns=tuple(document["images"]),
        recipe=None if environment is None else _recipe(environment),
        files=tuple(_file(target, file, origin) for target, file in (document.get("files") or {}).items()),
        env=document.get("env") or {},
        entrypoint=tuple(document.get("entrypoint") or ()),
        command=tuple(document.get("command") or ()),
        user=document.get("user"),
        working_dir=document.get("workingDir") or "",
    )


def _recipe(environment: dict[str, Any]) -> Recipe:
    return Recipe(tuple(environment.get("requirements") or ()), environment.get("python") or "")


def _file(target: str, file: str | dict[str, Any], origin: Path) -> File:
    source = file if isinstance(file, str) else file["source"]
    mode = None if isinstance(file, str) else _mode(file.get("mode"))
    return File(target, origin.parent / source, 0o644 if mode is None else mode)


def _mode(value: Any) -> int | None:
    """`0755` is a number to YAML and `"0755"` a string; both mean the same."""
    if isinstance(value, str) and re.fullmatch("0?[0-7]{3}", value):
        return int(value, 8)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 0o777 else None


def _is_clean_absolute(path: str) -> bool:
    return path.startswith("/") and posixpath.normpath(path) == path and path != "/" and "\0" not in path


def _named(value: Any) -> str:
    return "missing" if value is None else repr(value)
