"""Where we mean to differ from training-operator v1.8.1, each with its reason. Any other difference is a mistake of ours."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.oracle.compare import Difference


@dataclass(frozen=True, slots=True)
class Expected:
    reason: str
    is_meant: Callable[[Difference], bool]


TABLE: dict[str, Expected] = {}


def named(difference: Difference) -> str:
    """The entry that expects it, or nothing."""
    return next((name for name, one in TABLE.items() if one.is_meant(difference)), "")


def unexpected(found: Iterable[Difference]) -> list[Difference]:
    return [one for one in found if not named(one)]


def tally(found: Iterable[Difference]) -> Counter[str]:
    return Counter(filter(None, map(named, found)))
