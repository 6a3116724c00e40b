"""The line of those who wait: by priority, then by how little their queue has, then by age.

Within a queue the order is fixed; between queues it moves with their shares. So each queue keeps its own line, and only
the first of each stand in the common one.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, TypeAlias

from fullrank.scheduling.amounts import SEATS, Amounts, Ask
from fullrank.scheduling.gang import Gang
from fullrank.scheduling.rooms import Seat, Shapes

LOOKAHEAD = 64  # how many that find no room are looked at before the rest is left for another time
QUEUE_LOOKAHEAD = 32  # the same within a queue whose quota is used up

Rank: TypeAlias = tuple[int, bool]
Place: TypeAlias = tuple[Rank, str, int]
Outcome: TypeAlias = Literal["seated", "aside", "no quota", "no room"]
Preemption: TypeAlias = Literal["Never", "LowerPriority", "LowerOrNewerEqualPriority"]


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """What a ClusterQueue says. What the quota does not name is not limited."""

    quota: Mapping[str, int] = field(default_factory=dict)
    strict: bool = False  # nobody passes the first one
    preemption: Preemption = "Never"  # among its own jobs, when the quota is used up
    weight: float = 1.0


class Queue:
    def __init__(self, name: str, policy: QueuePolicy = QueuePolicy()) -> None:  # noqa: B008  # a value
        self.name = name
        self.policy = policy
        self.used: dict[str, int] = {}
        self.holders: dict[str, Entry] = {}
        self.waiting: list[tuple[Place, Entry]] = []
        self.first: Entry | None = None  # the first that its quota keeps waiting
        self.parked = False  # all that it can offer wait for its quota
        self.share = 0.0
        self.front: tuple[Rank, float, str, int, str] | None = None  # where it stands in the common line

    def left(self, name: str) -> int:
        return self.policy.quota[name] - self.used.get(name, 0)

    def weigh(self, capacity: Amounts) -> None:
        """The dominant share: of what it has most of, how much of all there is."""
        shares = (
            used / capacity[name]
            for name, used in self.used.items()
            if name != SEATS and capacity.get(name, 0) > 0
        )
        self.share = max(shares, default=0.0) / self.policy.weight


class Entry:
    """A gang on the floor: what it holds, and what it waits for."""

    __slots__ = (
        "arrival", "gang", "held", "leaving", "need", "place", "queue", "reason", "seats", "shapes", "total", "waits",
    )  # fmt: skip

    def __init__(self, gang: Gang, queue: Queue, arrival: int) -> None:
        self.gang = gang
        self.queue = queue
        self.arrival = arrival
        self.seats: dict[str, tuple[Seat, Ask]] = {}
        self.held: dict[str, int] = {}
        self.need: dict[str, Ask] = {}
        self.total: dict[str, int] = {}  # of what it needs
        self.shapes: Shapes = frozenset()
        self.leaving = False
        self.waits = False  # stands in line
        self.reason = ""
        self.place = self.due_place

    @property
    def due_place(self) -> Place:
        """Lower is earlier: those of higher priority; among equals, those who already have some of their seats."""
        return (-self.gang.priority, not self.seats), self.gang.created, self.arrival

    @property
    def rank(self) -> Rank:
        return self.place[0]

    def is_before(self, other: "Entry") -> bool:
        return self.place < other.place


@dataclass(slots=True)
class _Cursor:
    queue: Queue
    at: int = 0
    no_quota: int = 0
    no_room: int = 0

    def next(self) -> Entry | None:
        blocked = self.no_quota + self.no_room
        if self.no_quota >= QUEUE_LOOKAHEAD or (self.queue.policy.strict and blocked > 0):
            return None
        waiting = self.queue.waiting
        return waiting[self.at][1] if self.at < len(waiting) else None

    def step(self, entry: Entry) -> None:
        """Past this one, who may have left the line meanwhile, and others too."""
        waiting = self.queue.waiting
        if self.at < len(waiting) and waiting[self.at][1] is entry:
            self.at += 1
        else:
            self.at = bisect_right(waiting, (entry.place, entry))


class Line:
    def __init__(self) -> None:
        self._fronts: list[tuple[tuple[Rank, float, str, int, str], Queue]] = []

    def enter(self, entry: Entry) -> None:
        entry.waits, entry.place = True, entry.due_place
        insort(entry.queue.waiting, (entry.place, entry))  # no two places are the same
        self.refresh(entry.queue)

    def leave(self, entry: Entry) -> None:
        waiting = entry.queue.waiting
        del waiting[bisect_left(waiting, (entry.place, entry))]
        entry.waits = False
        self.refresh(entry.queue)

    def refresh(self, queue: Queue) -> None:
        """Puts the queue where it belongs now."""
        front = None
        if queue.waiting and not queue.parked:
            rank, created, arrival = queue.waiting[0][0]
            front = (rank, queue.share, created, arrival, queue.name)
        if front == queue.front:
            return
        if queue.front is not None:
            del self._fronts[bisect_left(self._fronts, (queue.front, queue))]
        queue.front = front
        if front is not None:
            insort(self._fronts, (front, queue))

    def unpark(self, queues: Iterable[Queue]) -> None:
        for queue in queues:
            if queue.parked:
                queue.parked = False
                self.refresh(queue)

    def walk(self, examine: Callable[[Entry], Outcome]) -> None:
        """Shows those who wait one by one, in order, until too many have found no room."""
        fronts, at, crowd = list(self._fronts), 0, 0
        begun: list[tuple[tuple[Rank, float, str, int, str], _Cursor]] = []
        while crowd < LOOKAHEAD and (at < len(fronts) or begun):
            if begun and (at == len(fronts) or begun[0][0] < fronts[at][0]):
                cursor = heappop(begun)[1]
            else:
                cursor = _Cursor(fronts[at][1])
                at += 1
            entry = cursor.next()
            if entry is not None:
                outcome = examine(entry)
                cursor.step(entry)
                cursor.no_quota += outcome == "no quota"
                cursor.no_room += outcome == "no room"
                crowd += outcome == "no room"
            self._go_on(cursor, begun)

    def _go_on(self, cursor: _Cursor, begun: list[tuple[tuple[Rank, float, str, int, str], _Cursor]]) -> None:
        queue, following = cursor.queue, cursor.next()
        if following is not None:
            rank, created, arrival = following.place
            heappush(begun, ((rank, queue.share, created, arrival, queue.name), cursor))
        elif cursor.no_quota and not cursor.no_room:
            queue.parked = True
            self.refresh(queue)
