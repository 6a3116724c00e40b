"""Whom to ask to leave, and whom to spare: as few as possible, the least important and the youngest first."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

V = TypeVar("V")


def fewest(candidates: Iterable[V], suffices: Callable[[Sequence[V]], bool]) -> tuple[V, ...]:
    """Of `candidates`, the least important first, as many as suffice, and none that could be spared; or nobody."""
    chosen: list[V] = []
    for one in candidates:
        chosen.append(one)
        if suffices(chosen):
            return tuple(_without_the_spared(chosen, suffices))
    return ()


def _without_the_spared(chosen: list[V], suffices: Callable[[Sequence[V]], bool]) -> list[V]:
    for one in reversed(chosen):  # the most important first
        rest = [other for other in chosen if other is not one]
        if rest and suffices(rest):
            chosen = rest
    return chosen
