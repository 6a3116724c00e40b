"""The same job without namespaces: what would have been at a path or behind a name is written out where it really is.

Pure. Mount targets in the command, the working directory and the environment become the folders behind them, and names
of services become addresses; a program that has such a path built in is out of luck, hence the warning on the pod.
Variables that say what the pod is called stay as they are: programs find in them who they are, not how to be reached.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from fullrank.agent.runtime import Launch


def without_namespaces(launch: Launch) -> Launch:
    moved = {
        mount.target.rstrip("/"): str(mount.source) for mount in launch.mounts if mount.target.rstrip("/")
    }
    paths = _substitution(moved, before=r"[\w./-]", after=r"[\w.-]")
    names = _substitution(launch.addresses, before=r"[\w.-]", after=r"[\w-]|\.\w")
    return replace(
        launch,
        argv=tuple(paths(word) for word in launch.argv),
        env={
            name: value if name in launch.identity else names(paths(value))
            for name, value in launch.env.items()
        },
        working_dir=paths(launch.working_dir),
        mounts=(),
        names=None,
    )


class _substitution:  # noqa: N801  # a function with a compiled memory
    """Replaces whole words, the longest first: `/data` in `/data/x` and `a:/data`, not in `/database`."""

    def __init__(self, words: Mapping[str, str], before: str, after: str) -> None:
        self._words = words
        longest_first = sorted(words, key=len, reverse=True)
        alternatives = "|".join(re.escape(word) for word in longest_first)
        self._pattern = re.compile(f"(?<!{before})(?:{alternatives})(?!{after})") if words else None

    def __call__(self, text: str) -> str:
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._words[found.group()], text)
