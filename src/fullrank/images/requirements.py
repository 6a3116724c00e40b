"""Files of requirements as pip's users write them, down to the lines that name packages."""

import re
from collections.abc import Iterator
from pathlib import Path

from fullrank.errors import BadRequest

INCLUDE = re.compile(r"(?:-r\s*|--requirement(?:\s+|=))(?P<file>\S.*)")
COMMENT = re.compile(r"(^|\s)#.*$")
DEEPEST = 10


def requirements_in(file: Path, depth: int = 0) -> Iterator[str]:
    """The packages a file asks for, those of files that it includes among them; BadRequest names file and line."""
    if depth > DEEPEST:
        raise BadRequest(f"{file}: is included by itself, or more than {DEEPEST} files deep")
    for number, line in _lines(file):
        if included := INCLUDE.fullmatch(line):
            yield from requirements_in(file.parent / included["file"], depth + 1)
        elif line.startswith("-"):
            raise BadRequest(
                f"{file}:{number}: {line.split()[0]} is not taken here: only packages and -r FILE are; "
                "indexes, find-links and certificates come from pip's own configuration"
            )
        else:
            yield _absolute(line, file.parent)


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """Whole lines with the number they begin at, without comments."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: is not a text file") from error
    begun, since = "", 1
    for number, piece in enumerate(text.splitlines(), start=1):
        since = since if begun else number
        if piece.endswith("\\") and not piece.lstrip().startswith("#"):
            begun += piece[:-1]
            continue
        line, begun = " ".join(COMMENT.sub("", begun + piece).split()), ""
        if line:
            yield since, line
    if begun.strip():
        yield since, " ".join(begun.split())


def _absolute(line: str, folder: Path) -> str:
    """A package of this machine, wherever uv is started."""
    return str((folder / line).resolve()) if line.startswith(("./", "../")) else line
