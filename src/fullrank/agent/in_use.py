"""What running containers need of this machine's folders, whichever server started them."""

import json
from collections.abc import Iterator
from pathlib import Path


def folders_in_use(home: Path) -> set[Path]:
    """Environments and files of images that a container has which was started, or is about to be, and has not ended."""
    return {Path(folder) for attempt in _attempts(home / "pods") for folder in _folders(attempt)}


def _attempts(pods: Path) -> Iterator[Path]:
    for launch in pods.glob("*/*/*/launch.json"):
        if not (launch.parent / "exit.json").exists():
            yield launch


def _folders(launch: Path) -> list[str]:
    try:
        folders: list[str] = json.loads(launch.read_text(encoding="utf-8"))["folders"]
    except (OSError, ValueError, KeyError):
        return []  # it ended while we looked
    return folders
