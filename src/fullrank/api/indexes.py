"""Sets of members' indexes as a status remembers them: `0-3,7`, as Kubernetes writes the indexes of a Job."""

from collections.abc import Iterable

DIGITS = 5  # nobody has more members, and a status is only as trustworthy as those who may write it


def written(indexes: Iterable[int]) -> str:
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def read(text: object) -> frozenset[int]:
    """The indexes of a text; what makes no sense in it counts as nothing."""
    found: set[int] = set()
    for part in str(text or "").split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first.isdecimal() and last.isdecimal() and max(len(first), len(last)) <= DIGITS:
            found.update(range(int(first), int(last) + 1))
    return frozenset(found)
