"""What a container leaves to be read in its pod's status: its termination message, as kubelets take it."""

import os
from dataclasses import replace
from pathlib import Path

from fullrank.agent.logs import last_lines
from fullrank.agent.runtime import Exit
from fullrank.api.meta import Json

USUAL_PATH = "/dev/termination-log"
LONGEST_MESSAGE = 4096
MOST_LINES, LONGEST_EXCERPT = 80, 2048


def message_path(container: Json) -> str:
    return container.get("terminationMessagePath") or USUAL_PATH


def prepare_message_file(path: Path) -> Path:
    """A file that the container may write to, whoever it runs as."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o666)
    return path


def with_last_words(ended: Exit, container: Json, file: Path, log: Path) -> Exit:
    """The exit with what the container itself had to say; if it failed silently and so wishes, the end of its log."""
    if ended.message:
        return ended
    message = _end_of(file)
    if (
        not message
        and ended.code != 0
        and container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    ):
        message = last_lines(log, MOST_LINES)[-LONGEST_EXCERPT:].decode(errors="replace")
    return replace(ended, message=message)


def _end_of(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, os.SEEK_END) - LONGEST_MESSAGE))
            return opened.read().decode(errors="replace")
    except OSError:
        return ""
