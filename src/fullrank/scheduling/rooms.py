"""Nodes as rooms with seats: what is free, what is set aside for whoever is next, and where a shape fits.

Looking for a room costs little however many there are: for each shape that is asked for, the rooms where it fits are
remembered, and only rooms that changed since are looked at again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import NamedTuple

from fullrank.scheduling.amounts import BY_CARD, GPU, Amounts, Ask
from fullrank.scheduling.cards import Cards

REMEMBERED = 20_000  # changes of rooms; a shape that nobody asked about for so long is forgotten


class Seat(NamedTuple):
    """A node, and the cards there that go with the seat."""

    node: str
    cards: tuple[str, ...] = ()


Need = Mapping[str, Ask]  # by pod name, in the order in which they are seated
Seats = dict[str, Seat]
Shapes = frozenset[tuple[Ask, int]]  # how many of each


class Room:
    __slots__ = ("capacity", "cards", "free", "is_open", "kept", "name", "number", "taken")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number
        self.is_open = False
        self.capacity: dict[str, int] = {}
        self.taken: dict[str, int] = {}
        self.free: dict[str, int] = {}
        self.kept: dict[str, int] = {}  # set aside for the head of the line
        self.cards = Cards()

    def furnish(self, capacity: Amounts, cards: Mapping[str, int], *, is_open: bool) -> None:
        self.is_open = is_open
        self.capacity = dict(capacity)
        self.cards.install(cards)
        names = chain(capacity, self.taken)
        self.free = {name: self.capacity.get(name, 0) - self.taken.get(name, 0) for name in names}
        self._count_cards()

    def fits(self, ask: Ask) -> bool:
        """Whether it fits beside what is set aside."""
        if not self.is_open:
            return False
        free, kept = self.free, self.kept
        for name, amount in ask.of_a_room:
            if free.get(name, 0) - kept.get(name, 0) < amount:
                return False
        return not ask.shared or self.choose_cards(ask) is not None

    def would_fit(self, ask: Ask, planned: Amounts) -> bool:
        """Whether it would fit if nobody but those planned were here."""
        if not self.is_open:
            return False
        kept = ask.set_aside
        return all(
            self.capacity.get(name, 0) - planned.get(name, 0) >= amount for name, amount in kept.items()
        ) and (not ask.shared or self.cards.could_ever_share(ask))

    def choose_cards(self, ask: Ask) -> tuple[str, ...] | None:
        return self.cards.choose(ask, self.kept.get(GPU, 0) // 1000)

    def book(self, ask: Ask, cards: tuple[str, ...], sign: int) -> None:
        for name, amount in ask.booked:
            self.taken[name] = self.taken.get(name, 0) + sign * amount
            self.free[name] = self.free.get(name, 0) - sign * amount
        if cards:
            self.cards.book(ask, cards, sign)
            self._count_cards()

    def _count_cards(self) -> None:
        self.free[GPU] = self.cards.untouched * 1000


class _Shape:
    """The rooms where one ask fits, the first of them at hand."""

    __slots__ = ("inside", "line", "seen")

    def __init__(self, rooms: Iterable[int], seen: int) -> None:
        self.line = list(rooms)
        self.inside = set(self.line)
        self.seen = seen
        heapify(self.line)

    def note(self, room: int, *, fits: bool) -> None:
        if not fits:
            self.inside.discard(room)
        elif room not in self.inside:
            self.inside.add(room)
            heappush(self.line, room)

    def first(self) -> int | None:
        while self.line and self.line[0] not in self.inside:
            heappop(self.line)
        return self.line[0] if self.line else None


class Rooms:
    def __init__(self) -> None:
        self._rooms: list[Room] = []
        self._numbers: dict[str, int] = {}
        self._shapes: dict[Ask, _Shape] = {}
        self._changes: list[int] = []
        self._forgotten = 0  # how many changes are no longer remembered
        self._kept: list[Room] = []
        self._latest = 0  # the room that was left last
        self._hopeless: set[Shapes] = set()  # what found no seats since anything became free
        self.capacity: dict[str, int] = {}
        self.free: dict[str, int] = {}

    def __iter__(self) -> Iterator[Room]:
        return (room for room in self._rooms if room.is_open)

    def has(self, node: str) -> bool:
        number = self._numbers.get(node)
        return number is not None and self._rooms[number].is_open

    # -- what there is

    def furnish(
        self, node: str, capacity: Amounts, cards: Mapping[str, int] | None = None, *, is_open: bool = True
    ) -> None:
        """A node as it is now; without names, its cards are called by their numbers."""
        named = cards if cards is not None else {str(one): 0 for one in range(capacity.get(GPU, 0) // 1000)}
        room = self._room(node)
        self._add_up(room, -1)
        room.furnish(capacity, named, is_open=is_open)
        self._add_up(room, 1)
        self._hopeless.clear()
        self._changed(room)

    def close(self, node: str) -> None:
        """The node is gone; who sat there is still booked, should it come back."""
        self.furnish(node, {}, {}, is_open=False)

    def _room(self, node: str) -> Room:
        number = self._numbers.setdefault(node, len(self._rooms))
        if number == len(self._rooms):
            self._rooms.append(Room(node, number))
        return self._rooms[number]

    def _add_up(self, room: Room, sign: int) -> None:
        if room.is_open:
            for sums, amounts in ((self.capacity, room.capacity), (self.free, room.free)):
                for name, amount in amounts.items():
                    sums[name] = sums.get(name, 0) + sign * amount

    def _changed(self, room: Room) -> None:
        self._changes.append(room.number)
        if len(self._changes) > REMEMBERED:
            half = REMEMBERED // 2
            del self._changes[:half]
            self._forgotten += half
            self._shapes = {
                ask: shape for ask, shape in self._shapes.items() if shape.seen >= self._forgotten
            }

    # -- taking and leaving seats

    def book(self, seat: Seat, ask: Ask) -> None:
        self._book(seat, ask, 1)

    def leave(self, seat: Seat, ask: Ask) -> None:
        self._book(seat, ask, -1)
        self._latest = self._numbers[seat.node]
        self._hopeless.clear()

    def _book(self, seat: Seat, ask: Ask, sign: int) -> None:
        room = self._room(seat.node)
        cards_before = room.free.get(GPU, 0)
        room.book(ask, seat.cards, sign)
        if room.is_open:
            for name, amount in ask.booked:
                self.free[name] = self.free.get(name, 0) - sign * amount
            self.free[GPU] = self.free.get(GPU, 0) + room.free.get(GPU, 0) - cards_before
        self._changed(room)

    # -- finding seats

    def is_hopeless(self, shapes: Shapes) -> bool:
        """Whether such a gang was looked at already since anything became free."""
        return shapes in self._hopeless

    def place(self, need: Need, shapes: Shapes, total: Amounts) -> Seats | None:
        """Seats for all, booked; or none at all. Each sits in the first room where it fits."""
        if shapes in self._hopeless:
            return None
        free = self.free
        if any(amount > free.get(name, 0) for name, amount in total.items() if name not in BY_CARD):
            self._hopeless.add(shapes)
            return None
        seats, unseated = self._place_many(need, whole=True)
        if not unseated:
            return seats
        self.undo(seats, need)
        self._hopeless.add(shapes)
        return None

    def undo(self, seats: Seats, need: Need) -> None:
        for pod, seat in seats.items():
            self._book(seat, need[pod], -1)

    def place_as_planned(self, plan: Mapping[str, str], need: Need) -> Seats | None:
        seats: Seats = {}
        for pod, node in plan.items():
            room = self._room(node)
            if not room.fits(need[pod]):
                self.undo(seats, need)
                return None
            seats[pod] = self._with_cards(room, need[pod])
            self.book(seats[pod], need[pod])
        return seats

    def _place_many(self, need: Need, *, whole: bool) -> tuple[Seats, list[str]]:
        """As many as find a seat, and the others; a gang that must be whole is given up with the first of those."""
        seats: Seats = {}
        unseated = []
        for pod, ask in need.items():
            number = self._first_fit(ask)
            if number is None:
                unseated.append(pod)
                if whole:
                    break
                continue
            seats[pod] = self._with_cards(self._rooms[number], ask)
            self.book(seats[pod], ask)
        return seats, unseated

    def _first_fit(self, ask: Ask) -> int | None:
        shape, now = self._shapes.get(ask), self._forgotten + len(self._changes)
        if shape is None:
            shape = self._shapes[ask] = _Shape((room.number for room in self._rooms if room.fits(ask)), now)
        else:
            for number in self._changes[shape.seen - self._forgotten :]:
                shape.note(number, fits=self._rooms[number].fits(ask))
            shape.seen = now
        return shape.first()

    def _with_cards(self, room: Room, ask: Ask) -> Seat:
        cards = room.choose_cards(ask) if ask.whole_cards or ask.shared else ()
        return Seat(room.name, cards or ())

    # -- setting aside

    def plan(self, need: Need) -> dict[str, str] | None:
        """Where all could sit if the rooms emptied, as near as may be to what is free now; None if they never could."""
        seats, unseated = self._place_many(need, whole=False)
        self.undo(seats, need)
        planned: dict[str, dict[str, int]] = {}
        plan: dict[str, str] = {}
        for pod in chain(seats, unseated):
            rooms = (self._rooms[self._numbers[seats[pod].node]],) if pod in seats else self._from_latest()
            room = next((one for one in rooms if one.would_fit(need[pod], planned.get(one.name, {}))), None)
            if room is None:
                return self._plan_afresh(need)
            _add(planned.setdefault(room.name, {}), need[pod].set_aside)
            plan[pod] = room.name
        return plan

    def _plan_afresh(self, need: Need) -> dict[str, str] | None:
        """What is free now may lead into a dead end: once more as if every room were empty."""
        planned: dict[str, dict[str, int]] = {}
        plan: dict[str, str] = {}
        for pod in need:
            room = next(
                (one for one in self._rooms if one.would_fit(need[pod], planned.get(one.name, {}))), None
            )
            if room is None:
                return None
            _add(planned.setdefault(room.name, {}), need[pod].set_aside)
            plan[pod] = room.name
        return plan

    def _from_latest(self) -> Iterator[Room]:
        return chain(self._rooms[self._latest :], self._rooms[: self._latest])

    def keep(self, plan: Mapping[str, str], need: Need) -> None:
        """Sets aside what the plan needs, in place of what was set aside before."""
        self.keep_nothing()
        for pod, node in plan.items():
            room = self._room(node)
            if not room.kept:
                self._kept.append(room)
            _add(room.kept, need[pod].set_aside)
        for room in self._kept:
            self._changed(room)

    def keep_nothing(self) -> None:
        if self._kept:
            self._hopeless.clear()
        for room in self._kept:
            room.kept = {}
            self._changed(room)
        self._kept = []


def shapes_of(need: Need) -> Shapes:
    return frozenset(Counter(need.values()).items())


def hungriest_first(asks: Mapping[str, Ask]) -> dict[str, Ask]:
    """The order in which they find seats most easily; among equals by rank, so that cards are in its order."""
    by_rank = sorted(asks.items(), key=lambda item: (len(item[0]), item[0]))
    return dict(sorted(by_rank, key=lambda item: item[1].weight, reverse=True))


def _add(sums: dict[str, int], amounts: Amounts) -> None:
    for name, amount in amounts.items():
        sums[name] = sums.get(name, 0) + amount
