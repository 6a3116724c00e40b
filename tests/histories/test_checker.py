"""The judge is judged: a history that can have happened passes, and each kind of lie is found out."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.histories.checker import Asked, History, Listed, Seen, Story, complaints


def a_true_history() -> History:
    """Made, changed by compare-and-set, looked at, lost to a rival, deleted; and three who watch."""
    asked = [
        Asked("create", "x", 1, 2, "ok", tag="a", version=1),
        Asked("update", "x", 3, 4, "ok", tag="b", base=1, version=2),
        Asked("update", "x", 3, 5, "conflict", tag="c", base=1),
        Asked("create", "x", 3, 5, "exists", tag="d"),
        Asked("get", "x", 3, 6, "ok", tag="a", version=1),
        Asked("get", "x", 6, 7, "ok", tag="b", version=2),
        Asked("update", "y", 6, tag="never", base=None),
        Asked("create", "y", 6, tag="unanswered"),
        Asked("delete", "x", 8, 9, "ok", base=2),
        Asked("get", "x", 10, 11, "absent"),
    ]
    events: list[Listed | Seen] = [
        Seen("ADDED", 1, 2.5, "x", "a"),
        Seen("MODIFIED", 2, 4.5, "x", "b"),
        Seen("ADDED", 3, 7.5, "y", "unanswered"),
        Seen("DELETED", 4, 9.5, "x", "b"),
        Seen("BOOKMARK", 5, 12),
    ]
    late: list[Listed | Seen] = [Listed(5, 6, 2, {"x": (2, "b")}), *events[2:]]
    odd: list[Listed | Seen] = [Seen("ADDED", 1, 2.5, "x", "a"), Seen("DELETED", 2, 4.5, "x", "a")]
    stories = [Story("steady", list(events)), Story("late", list(late)), Story("odd", odd, side="odd")]
    return History(asked, [Listed(10, 11, 4, {"y": (3, "unanswered")})], stories, final=5)


def test_a_history_that_can_have_happened_passes() -> None:
    history = a_true_history()
    assert complaints(history) == []


def _with(number: int, **changes: object) -> Callable[[History], None]:
    def falsify(history: History) -> None:
        history.asked[number] = replace(history.asked[number], **changes)  # type: ignore[arg-type]

    return falsify


def _a_lost_update(history: History) -> None:
    history.asked += [
        Asked("create", "z", 12, 13, "ok", tag="p", version=6),
        Asked("update", "z", 14, 15, "ok", tag="q", base=6, version=7),
        Asked("update", "z", 14, 15, "ok", tag="r", base=6, version=8),
    ]


def _a_lost_acknowledgement(history: History) -> None:
    history.asked.append(Asked("create", "z", 7, 7.1, "ok", tag="p", version=3))


def _a_write_after_the_end(history: History) -> None:
    history.final = 6
    history.asked.append(Asked("create", "z", 12, 13, "ok", tag="p", version=6))


def _skipping(number: int) -> Callable[[History], None]:
    def falsify(history: History) -> None:
        del history.stories[1].seen[number]

    return falsify


def _a_repeated_event(history: History) -> None:
    history.stories[0].seen.insert(2, history.stories[0].seen[1])


def _events_in_the_wrong_order(history: History) -> None:
    seen = history.stories[0].seen
    seen[1], seen[2] = seen[2], seen[1]


def _a_list_that_forgot(history: History) -> None:
    history.listed[0] = Listed(10, 11, 4, {})


def _a_list_from_the_past(history: History) -> None:
    history.listed.append(Listed(10, 11, 2, {"x": (2, "b")}))


def _a_bookmark_that_jumps(history: History) -> None:
    history.stories[1].seen[1] = Seen("BOOKMARK", 3, 8)


def _a_revision_that_went_back(history: History) -> None:
    history.asked.append(Asked("create", "z", 20, 21, "ok", tag="p", version=0))
    history.asked[-1] = replace(history.asked[-1], version=-1)


def _a_write_seen_before_it_was_asked_for(history: History) -> None:
    history.asked[1] = replace(history.asked[1], begun=4.6, ended=4.9)


LIES: dict[str, tuple[Callable[[History], None], str]] = {
    "a lost update": (_a_lost_update, "an update is lost"),
    "an acknowledged write that is not there": (_a_lost_acknowledgement, "is both"),
    "an acknowledged write that no watcher saw": (_a_write_after_the_end, "ended at 5 without"),
    "a stale read": (_with(5, version=1, tag="a"), "cannot have happened"),
    "a read of what was never written": (_with(5, tag="z"), "at that revision there is"),
    "a refusal without a rival": (_with(2, base=2, begun=4.6, ended=5), "was current all the time"),
    "an absence that was none": (_with(9, begun=6, ended=7), "it was there all the time"),
    "an existence that was none": (_with(3, begun=10, ended=11), "though there was none"),
    "a refused write that happened": (_with(1, outcome="conflict"), "was refused and is there"),
    "a skipped event": (_skipping(1), "without ('ADDED', 3"),
    "an event skipped at the end": (_skipping(-2), "without ('DELETED', 4"),
    "a repeated event": (_a_repeated_event, "again"),
    "events in the wrong order": (_events_in_the_wrong_order, "without"),
    "a list that forgot something": (_a_list_that_forgot, "a list at 4 has y as None"),
    "a list from the past": (_a_list_from_the_past, "cannot have happened"),
    "a bookmark that skips an event": (_a_bookmark_that_jumps, "went from 2 to 3 without ('ADDED', 3"),
    "a revision that went back": (_a_revision_that_went_back, "cannot have happened"),
    "a write seen before it was asked for": (_a_write_seen_before_it_was_asked_for, "cannot have happened"),
    "a delete of another version": (_with(8, base=1), "was not what was deleted"),
}


@pytest.mark.parametrize(("falsify", "words"), LIES.values(), ids=LIES)
def test_a_lie_is_found_out(falsify: Callable[[History], None], words: str) -> None:
    history = a_true_history()
    falsify(history)
    found = complaints(history)
    assert any(words in each for each in found), found
