"""What uv writes while it builds, as short lines that people like to see; and its answer when it fails."""

import re
from collections.abc import Iterable

LINES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"Resolved (\d+ packages?) in "), r"resolved \1"),
    (re.compile(r"Downloading (\S+) \((\S+)\)$"), r"downloading \1 (\2)"),
    (re.compile(r"Downloaded (\S+)$"), r"downloaded \1"),
    (re.compile(r"Building (\S+?)(?:==(\S+)| @ .*)?$"), r"building \1 \2"),
    (re.compile(r"Built (\S+?)(?:==(\S+)| @ .*)?$"), r"built \1 \2"),
    (re.compile(r"Prepared (\d+ packages?) in "), r"fetched \1, installing"),
    (re.compile(r"Installed (\d+ packages?) in "), r"installed \1, compiling"),
    (re.compile(r"Bytecode compiled (\d+ files?) in "), r"compiled \1"),
)
PASSWORD = re.compile(r"(?<=://)[^/\s@]+@")
ANSWER_LINES = 12


def progress_line(line: str) -> str:
    """The line for people, or nothing when the line is of no interest to them."""
    for pattern, words in LINES:
        if found := pattern.match(line.strip()):
            return found.expand(words).rstrip()
    return ""


def answer(lines: Iterable[str]) -> str:
    """The end of what the resolver had to say, without what it said before it failed and without passwords."""
    said = [PASSWORD.sub("", line.rstrip()) for line in lines if line.strip() and not progress_line(line)]
    said = [line for line in said if not line.startswith(("Using ", "Creating ", "warning: "))]
    return "\n".join(said[-ANSWER_LINES:])
