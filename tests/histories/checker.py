"""Whether what clients saw can have happened: every object a register with versions, every watch a story without gaps.

Revisions count all writes of a home, so they are the order in which writes must have taken effect. That leaves three
questions. Can each write be given a moment between its question and its answer, in that order, so that every read
returned what was current at some moment of its own? Did each compare-and-set find the very version it names? Did each
watcher see every change after the one before, once? The answers are complaints; none means that all is well. Pure.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from math import inf
from typing import Literal

Outcome = Literal["ok", "conflict", "exists", "absent", "unknown"]
Verb = Literal["create", "update", "delete", "get"]


@dataclass(frozen=True, slots=True)
class Asked:
    """One request about one object. `tag` is what a write wrote (and nobody else), or what a read found."""

    verb: Verb
    name: str
    begun: float
    ended: float = inf
    outcome: Outcome = "unknown"
    tag: str = ""
    base: int | None = None  # the version that a compare-and-set names
    version: int = 0  # the version that a write made or a read returned


@dataclass(frozen=True, slots=True)
class Listed:
    """All objects as of one revision."""

    begun: float
    ended: float
    revision: int
    found: dict[str, tuple[int, str]]  # name: version, tag


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of a watch; a bookmark has no name."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    version: int
    at: float = inf
    name: str = ""
    tag: str = ""


@dataclass(slots=True)
class Story:
    """What one watcher saw, from a list on (and from another one after each 410); `side` is its selector."""

    who: str
    seen: list[Listed | Seen] = field(default_factory=list)
    side: str = ""


@dataclass(slots=True)
class History:
    asked: list[Asked] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    stories: list[Story] = field(default_factory=list)
    final: int = 0  # the revision when everybody had finished


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one object; an empty tag is its absence."""

    version: int
    name: str
    tag: str


def side_of(tag: str) -> str:
    """What watchers with a selector choose by: it changes with every write, more or less."""
    return "even" if sum(tag.encode()) % 2 == 0 else "odd"


def complaints(history: History) -> list[str]:
    truth = Truth(history)
    return [*truth.problems, *truth.timing(), *truth.answers(), *truth.lists(), *truth.watches()]


class Truth:
    """The changes in their order, pieced together from all that anybody was told."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.problems: list[str] = []
        steps: dict[int, Step] = {}
        for step in _told(history):
            known = steps.setdefault(step.version, step)
            if known != step:
                self.problems.append(f"revision {step.version} is both {known} and {step}")
        self._steps = [steps[version] for version in sorted(steps)]
        self._versions = [step.version for step in self._steps]
        self._of: defaultdict[str, list[Step]] = defaultdict(list)
        for step in self._steps:
            self._of[step.name].append(step)
        self._writes = {each.tag: each for each in history.asked if each.verb in ("create", "update")}
        self._check_origins()
        self._earliest, self._latest = self._bounds()

    def _check_origins(self) -> None:
        """Every change is somebody's, once."""
        seen: dict[str, int] = {}
        for step in self._steps:
            if not step.tag:
                continue
            write = self._writes.get(step.tag)
            if write is None or write.name != step.name:
                self.problems.append(f"revision {step.version}: nobody wrote {step.tag} to {step.name}")
            elif write.outcome not in ("ok", "unknown"):
                self.problems.append(f"revision {step.version}: {write} was refused and is there")
            if step.tag in seen:
                self.problems.append(f"{step.tag} is there twice: at {seen[step.tag]} and {step.version}")
            seen[step.tag] = step.version

    # --- moments ---

    def _bounds(self) -> tuple[list[float], list[float]]:
        """For each step the earliest and the latest moment at which it can have taken effect."""
        earliest, latest = [self._asked_for(step) for step in self._steps], [inf] * len(self._steps)
        for version, begun, ended in self._revelations():
            number = bisect_right(self._versions, version) - 1
            if number >= 0:
                latest[number] = min(latest[number], ended)
            if begun is not None and number + 1 < len(earliest):
                earliest[number + 1] = max(earliest[number + 1], begun)
        for each in self._history.asked:
            if each.verb == "get" and each.outcome == "ok" and (after := self._next(each.name, each.version)):
                number = self._place(after)
                earliest[number] = max(earliest[number], each.begun)
        return list(accumulate(earliest, max)), list(accumulate(reversed(latest), min))[::-1]

    def _asked_for(self, step: Step) -> float:
        if step.tag:
            return self._writes[step.tag].begun if step.tag in self._writes else -inf
        return min((each.begun for each in self._deletes(step)), default=-inf)

    def _revelations(self) -> Iterator[tuple[int, float | None, float]]:
        """When a revision was known to be there; and, from lists, since when it can have been the last one."""
        for each in self._history.asked:
            if each.outcome == "ok" and each.version:
                yield each.version, None, each.ended
        for listed in self._history.listed:
            yield listed.revision, listed.begun, listed.ended
        for story in self._history.stories:
            for one in story.seen:
                if isinstance(one, Listed):
                    yield one.revision, one.begun, one.ended
                else:
                    yield one.version, None, one.at

    def _deletes(self, step: Step) -> list[Asked]:
        """Who may have deleted it: a delete names the version it wants to delete."""
        before = self._before(step)
        return [
            each
            for each in self._history.asked
            if each.verb == "delete"
            and each.name == step.name
            and each.outcome in ("ok", "unknown")
            and before is not None
            and each.base == before.version
        ]

    def timing(self) -> Iterator[str]:
        for step, earliest, latest in zip(self._steps, self._earliest, self._latest, strict=True):
            if earliest > latest:
                yield (
                    f"{step} cannot have happened: not before {earliest:.6f}, as what came before it shows, "
                    f"and not after {latest:.6f}, when it had been seen"
                )

    # --- answers ---

    def answers(self) -> Iterator[str]:
        for each in self._history.asked:
            match each.outcome:
                case "ok":
                    yield from self._ok(each)
                case "conflict":
                    if not any(step.version != each.base for step in self._current_during(each)):
                        yield f"{each} was refused though {each.base} was current all the time"
                case "exists":
                    if not any(step.tag for step in self._current_during(each)):
                        yield f"{each} was refused though there was none"
                case "absent":
                    if all(step.tag for step in self._current_during(each)):
                        yield f"{each} found nothing though it was there all the time"

    def _ok(self, each: Asked) -> Iterator[str]:
        if each.verb == "delete":
            after = self._next(each.name, each.base or 0)
            if after is None or after.tag:
                yield f"{each} was answered, but {each.base} was not what was deleted: {after}"
            return
        step = self._at(each.name, each.version)
        if step is None or step.tag != each.tag:
            yield f"{each} was answered, but at that revision there is {step}"
            return
        before = self._before(step)
        if each.verb == "create" and before is not None and before.tag:
            yield f"{each} was created over {before}"
        if each.verb == "update" and (before is None or not before.tag):
            yield f"{each} updated what was not there"
        if each.verb == "update" and each.base is not None and before and before.version != each.base:
            yield f"{each} names {each.base}, but overwrote {before}: an update is lost"

    def _current_during(self, each: Asked) -> Iterator[Step]:
        """The states that an object can have had at some moment of a request."""
        steps = [Step(0, each.name, ""), *self._of[each.name]]
        for number, step in enumerate(steps):
            since = self._earliest[self._place(step)] if step.version else -inf
            until = self._latest[self._place(steps[number + 1])] if number + 1 < len(steps) else inf
            if since <= each.ended and until >= each.begun:
                yield step

    def _place(self, step: Step) -> int:
        return bisect_left(self._versions, step.version)

    def _at(self, name: str, version: int) -> Step | None:
        return next((step for step in self._of[name] if step.version == version), None)

    def _before(self, step: Step) -> Step | None:
        steps = self._of[step.name]
        number = bisect_left(steps, step.version, key=_version)
        return steps[number - 1] if number else None

    def _next(self, name: str, version: int) -> Step | None:
        steps = self._of[name]
        number = bisect_right(steps, version, key=_version)
        return steps[number] if number < len(steps) else None

    # --- lists and watches ---

    def at(self, revision: int) -> dict[str, tuple[int, str]]:
        state: dict[str, tuple[int, str]] = {}
        for step in self._steps[: bisect_right(self._versions, revision)]:
            if step.tag:
                state[step.name] = (step.version, step.tag)
            else:
                state.pop(step.name, None)
        return state

    def lists(self) -> Iterator[str]:
        for each in self._history.listed:
            yield from self._list(each, "a list", "")

    def _list(self, listed: Listed, who: str, side: str) -> Iterator[str]:
        wanted = {
            name: held for name, held in self.at(listed.revision).items() if side in ("", side_of(held[1]))
        }
        for name in sorted(wanted.keys() | listed.found.keys()):
            if wanted.get(name) != listed.found.get(name):
                found = listed.found.get(name)
                yield f"{who} at {listed.revision} has {name} as {found}, not as {wanted.get(name)}"

    def watches(self) -> Iterator[str]:
        for story in self._history.stories:
            yield from self._story(story)

    def _story(self, story: Story) -> Iterator[str]:
        position = 0
        for one in story.seen:
            if isinstance(one, Listed):
                yield from self._list(one, story.who, story.side)
                if one.revision < position:
                    yield f"{story.who} was at {position} and then listed {one.revision}"
                position = one.revision
                continue
            reached = one.version if one.type == "BOOKMARK" else one.version - 1
            for missed in islice(self._events(position, reached, story.side), 1):
                yield f"{story.who} went from {position} to {one.version} without {missed}"
            if one.version <= position and one.type != "BOOKMARK":
                yield f"{story.who} was at {position} and was told {one} again"
            if one.type != "BOOKMARK":
                due = [each[:4] for each in self._events(one.version - 1, one.version, story.side)]
                told = (one.type, one.version, one.name, one.tag)
                if due != [told]:
                    yield f"{story.who} was told {told}, where {due} is true"
            position = max(position, one.version)
        for missed in islice(self._events(position, self._history.final, story.side), 1):
            yield f"{story.who} ended at {position} without {missed}"

    def _events(self, since: int, until: int, side: str) -> Iterator[tuple[str, int, str, str]]:
        """What a watcher is told of the steps after one revision up to another."""
        first, last = bisect_right(self._versions, since), bisect_right(self._versions, until)
        for step in self._steps[first:last]:
            before = self._before(step)
            was = before.tag if before else ""
            chosen_before = bool(was) and side in ("", side_of(was))
            chosen = bool(step.tag) and side in ("", side_of(step.tag))
            if chosen:
                yield "MODIFIED" if chosen_before else "ADDED", step.version, step.name, step.tag
            elif chosen_before:
                yield "DELETED", step.version, step.name, was


def _version(step: Step) -> int:
    return step.version


def _told(history: History) -> Iterator[Step]:
    for each in history.asked:
        if each.outcome == "ok" and each.version:
            yield Step(each.version, each.name, each.tag)
    for story in history.stories:
        for one in story.seen:
            if isinstance(one, Seen) and one.name and not story.side:
                yield Step(one.version, one.name, "" if one.type == "DELETED" else one.tag)
