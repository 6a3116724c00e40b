"""A watch through selectors: what enters the selection is ADDED, what leaves it is DELETED."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import msgspec

from fullrank.api.meta import Json
from fullrank.controlplane.metadata import at_revision
from fullrank.controlplane.store import Change, Place, Record, Watch


@dataclass(frozen=True, slots=True)
class Event:
    type: Literal["ADDED", "MODIFIED", "DELETED"]
    record: Record


class Watching:
    """A watch through selectors: what enters the selection is ADDED, what leaves it is DELETED."""

    def __init__(self, watch: Watch, initial: list[Record], chosen: Callable[[Json], bool] | None) -> None:
        """Without `chosen`, everything is."""
        self._watch = watch
        self._initial = list(reversed(initial))
        self._chosen = chosen
        self._verdicts: dict[Place, tuple[int, bool]] = {}  # on the version of each object that came last

    @property
    def revision(self) -> int:
        """Everything up to here has been told: what a bookmark may say."""
        return self._watch.revision

    def __enter__(self) -> Self:
        self._watch.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._watch.__exit__()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """The next event, however long that takes; may be cancelled and asked again without loss."""
        if self._initial:
            return Event("ADDED", self._initial.pop())
        while True:
            if event := self._seen(await anext(self._watch)):
                return event

    def ready(self) -> Event | None:
        """The next event if it is there already."""
        if self._initial:
            return Event("ADDED", self._initial.pop())
        while change := self._watch.ready():
            if event := self._seen(change):
                return event
        return None

    def _seen(self, change: Change) -> Event | None:
        if self._chosen is None:
            return Event(change.type, change.record)
        before = change.previous is not None and self._was_chosen(change.place, change.previous)
        after = change.type != "DELETED" and self._chosen(change.record.obj)
        self._verdicts[change.place] = change.revision, after
        if change.type == "DELETED":
            del self._verdicts[change.place]
        if before and not after and change.type != "DELETED" and change.previous:
            # As it was when it was last selected, but at the revision at which it left.
            last = at_revision(change.previous.copy(), change.revision)
            return Event("DELETED", Record(change.revision, msgspec.json.encode(last), last))
        if before or after:
            return Event("ADDED" if not before else "MODIFIED" if after else "DELETED", change.record)
        return None

    def _was_chosen(self, place: Place, previous: Record) -> bool:
        """Known from the change before, mostly: a version that has passed is kept folded."""
        revision, verdict = self._verdicts.get(place, (0, False))
        if revision == previous.revision or self._chosen is None:
            return verdict
        return self._chosen(previous.copy())
