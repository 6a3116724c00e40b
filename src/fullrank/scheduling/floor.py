"""The floor: who sits where, who waits, and what is to be done about it. No I/O, no clock.

It is told of gangs, nodes and queues as they change, and asked to decide; what a decision costs follows what changed.

Rule 1: a gang is seated whole or not at all. Members that are replaced come back to the seats they had.
Rule 2: the first in line that finds no room is the head. What it needs is set aside, and whoever is seated before it
        must fit beside that. Only a higher priority takes its place, so everybody who is head gets a seat in the end.
Rule 3: a queue's quota works the same way for the queue: the first that it keeps waiting has its amount set aside.
Rule 4: the head may send away those of lower priority, as few as possible, and only if that really seats it.
Rule 5: whoever could not be seated even on an empty floor is nobody's head, and says so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from fullrank.scheduling import words
from fullrank.scheduling.amounts import GPU, SHARED, Amounts, Ask, asked_together
from fullrank.scheduling.gang import Admit, Decision, Gang, Preempt, Resume, Tally, Wait
from fullrank.scheduling.line import Entry, Line, Outcome, Queue, QueuePolicy
from fullrank.scheduling.preempt import fewest
from fullrank.scheduling.rooms import Rooms, Seat, Seats, hungriest_first, shapes_of

ROUNDS = 3  # looks at the line in one decision: whoever is put aside may open a chance for those before


class Floor:
    def __init__(self) -> None:
        self._rooms = Rooms()
        self._line = Line()
        self._queues: dict[str, Queue] = {}
        self._entries: dict[str, Entry] = {}
        self._held: dict[str, dict[str, int]] = {}  # resource → who → how much
        self._by_priority: dict[int, dict[str, Entry]] = {}  # those who may be sent away
        self._leaving: dict[str, Entry] = {}
        self._fresh: dict[str, Entry] = {}  # whoever is to be told something, or might sit at once
        self._aside: dict[str, Entry] = {}  # whoever cannot be seated as things are
        self._returning: dict[str, Entry] = {}
        self._head: Entry | None = None
        self._plan: dict[str, str] = {}
        self._behind_head = ""  # what those behind it are told
        self._stirred = (
            False  # something became free, or the order changed: everybody in line may have a chance
        )
        self._arrivals = 0
        self._out: list[Decision] = []
        self._told: dict[str, Wait] = {}

    # -- what is seen ----------------------------------------------------------------------------------------------

    def furnish(
        self, node: str, capacity: Amounts, cards: Mapping[str, int] | None = None, *, is_open: bool = True
    ) -> None:
        """A node as it is now: what it has, its cards with their megabytes, and whether it takes pods."""
        self._rooms.furnish(node, capacity, cards, is_open=is_open)
        self._look_around()

    def close(self, node: str) -> None:
        self._rooms.close(node)
        self._look_around()

    def _look_around(self) -> None:
        """Nodes have changed: nothing that was concluded from them holds any more."""
        self._dethrone()
        for queue in self._queues.values():
            queue.weigh(self._rooms.capacity)
            self._line.refresh(queue)
        self._reconsider()

    def open_queue(self, name: str, policy: QueuePolicy) -> None:
        queue = self._queue(name)
        if queue.policy != policy:
            queue.policy = policy
            self._fresh |= {entry.gang.uid: entry for _, entry in queue.waiting}
            queue.weigh(self._rooms.capacity)
            self._line.refresh(queue)
            self._reconsider()

    def close_queue(self, name: str) -> None:
        """It has no rules of its own any more."""
        self.open_queue(name, QueuePolicy())

    def _reconsider(self) -> None:
        self._line.unpark(self._queues.values())
        for entry in list(self._aside.values()):
            del self._aside[entry.gang.uid]
            self._fresh[entry.gang.uid] = entry
            self._line.enter(entry)
        self._stirred = True

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue(name)
        return self._queues[name]

    def see(self, gang: Gang) -> None:
        """A gang as it is now."""
        entry = self._entries.get(gang.uid)
        if entry is None:
            self._arrivals += 1
            entry = self._entries[gang.uid] = Entry(gang, self._queue(gang.queue), self._arrivals)
        elif entry.gang == gang and self._is_as_seen(entry):
            self._note_returning(entry)
            return
        seats, need = self._seats_of(entry, gang), {}
        if not (gang.standing == "active" and not gang.complete):
            need = _need_of(gang, seats)
        known = entry.waits and entry.need == need and entry.queue is self._queue(gang.queue)
        stays = known and (entry.gang.priority, bool(entry.seats)) == (gang.priority, bool(seats))
        if not stays:
            self._step_out(entry)
        self._settle(entry, gang, seats)
        if need:
            self._fresh[gang.uid] = entry
            if not stays:
                entry.need, entry.total = need, asked_together(need.values())
                entry.shapes = shapes_of(need)
                self._line.enter(entry)
        else:
            entry.reason = ""
        self._note_returning(entry)

    def _is_as_seen(self, entry: Entry) -> bool:
        """False if something was decided about it since that did not come to pass."""
        gang = entry.gang
        sent_away = gang.standing == "active" and entry.leaving
        called_back = gang.standing == "parked" and entry.seats and not gang.seated
        return not (sent_away or called_back)

    def untold(self, uid: str) -> None:
        """What it was to be told could not be said: it will be said again."""
        if entry := self._entries.get(uid):
            entry.reason = ""
            self._stirred = True

    def forget(self, uid: str) -> None:
        """There is nothing left of the gang."""
        entry = self._entries.get(uid)
        if entry is not None:
            self._step_out(entry)
            self._settle(entry, Gang(uid, entry.gang.title, standing="over"), {})
            del self._entries[uid]

    def _seats_of(self, entry: Entry, gang: Gang) -> dict[str, tuple[Seat, Ask]]:
        """Where its pods sit, and the seats it keeps for members that are being replaced."""
        seats = {pod: (seat, gang.asks[pod]) for pod, seat in gang.seated.items()}
        if gang.standing == "active":
            for pod, (seat, ask) in entry.seats.items():
                wanted = gang.asks.get(pod, ask)
                if pod in gang.members and pod not in seats and wanted == ask and self._rooms.has(seat.node):
                    seats[pod] = (seat, ask)
        return seats

    def _settle(self, entry: Entry, gang: Gang, seats: dict[str, tuple[Seat, Ask]]) -> None:
        """Books what changed about where a gang sits and whom that counts for."""
        self._count(entry, -1)
        freed = False
        for pod, (seat, ask) in entry.seats.items():
            if seats.get(pod) != (seat, ask):
                self._rooms.leave(seat, ask)
                freed = True
        for pod, (seat, ask) in seats.items():
            if entry.seats.get(pod) != (seat, ask):
                self._rooms.book(seat, ask)
        old = entry.queue
        entry.gang, entry.queue, entry.seats = gang, self._queue(gang.queue), seats
        entry.held = asked_together(ask for _, ask in seats.values())
        entry.leaving = gang.standing in ("leaving", "parked") and bool(seats)
        self._count(entry, 1)
        if freed or old is not entry.queue:
            self._stirred = True
            self._line.unpark((old, entry.queue))

    def _count(self, entry: Entry, sign: int) -> None:
        gang, queue = entry.gang, entry.queue
        for name, amount in entry.held.items():
            queue.used[name] = queue.used.get(name, 0) + sign * amount
            holders = self._held.setdefault(name, {})
            holders[gang.title] = holders.get(gang.title, 0) + sign * amount
            if not holders[gang.title]:
                del holders[gang.title]
        peers, active = self._by_priority.setdefault(gang.priority, {}), gang.standing == "active"
        if sign > 0 and entry.seats:
            queue.holders[gang.uid] = entry
            if entry.leaving:
                self._leaving[gang.uid] = entry
            elif gang.suspendable and active:
                peers[gang.uid] = entry
        else:
            for index in (queue.holders, self._leaving, peers):
                index.pop(gang.uid, None)
            if not peers:
                del self._by_priority[gang.priority]
        if entry.held:
            queue.weigh(self._rooms.capacity)
            self._line.refresh(queue)

    def _note_returning(self, entry: Entry) -> None:
        gang = entry.gang
        back = gang.standing == "active" and gang.complete
        if back and any(pod in entry.seats for pod in gang.asks if pod not in gang.seated):
            self._returning[gang.uid] = entry

    def _step_out(self, entry: Entry) -> None:
        """Out of the line, for whatever reason; whoever waited for it may have a chance."""
        uid = entry.gang.uid
        for index in (self._fresh, self._aside, self._returning):
            index.pop(uid, None)
        if entry.waits:
            self._line.leave(entry)
        entry.need, entry.total = {}, {}
        if entry.queue.first is entry:
            entry.queue.first = None
            self._line.unpark((entry.queue,))
            self._stirred = True
        if self._head is entry:
            self._dethrone()

    def _dethrone(self) -> None:
        if self._head is not None:
            self._rooms.keep_nothing()
            self._head, self._plan, self._stirred = None, {}, True
            self._behind_head = ""

    # -- what is told ----------------------------------------------------------------------------------------------

    def tallies(self) -> tuple[dict[str, Tally], dict[str, Tally]]:
        """By ClusterQueue, and by LocalQueue (`namespace/name`)."""
        by_queue, by_local = dict[str, list[Entry]](), dict[str, list[Entry]]()
        for entry in self._entries.values():
            by_queue.setdefault(entry.queue.name, []).append(entry)
            if entry.gang.local_queue:
                by_local.setdefault(entry.gang.local_queue, []).append(entry)
        return (
            {name: self._tally(entries) for name, entries in by_queue.items()},
            {name: self._tally(entries) for name, entries in by_local.items()},
        )

    def _tally(self, entries: list[Entry]) -> Tally:
        seated = [entry for entry in entries if entry.seats]
        pending = sum(
            1 for entry in entries if not entry.seats and (entry.waits or entry.gang.uid in self._aside)
        )
        used: dict[str, int] = {}
        for entry in seated:
            for name, amount in entry.held.items():
                used[name] = used.get(name, 0) + amount
        return Tally(pending, len(seated), used)

    # -- what is decided -------------------------------------------------------------------------------------------

    def decide(self) -> list[Decision]:
        """What is to be done now. What is decided counts as done; `see` the gang again to say how it went."""
        self._out, self._told = [], {}
        for entry in self._returning.values():
            gang = entry.gang
            back = {
                pod: entry.seats[pod][0] for pod in gang.asks if pod in entry.seats and pod not in gang.seated
            }
            self._out.append(Admit(gang.uid, back))
        self._returning = {}
        for _ in range(ROUNDS):
            if self._stirred or len(self._fresh) > 1:
                self._stirred = False
                self._line.walk(self._examine_after_the_head())
        for entry in sorted(self._fresh.values(), key=lambda one: one.place):
            if self._examine(entry) == "no room":
                self._line.unpark((entry.queue,))
        return [*self._out, *self._told.values()]

    def _examine_after_the_head(self) -> Callable[[Entry], Outcome]:
        """The head comes first among its peers, wherever its queue's share has moved it since."""
        head = self._head

        def examine(entry: Entry) -> Outcome:
            nonlocal head
            if head is not None and not entry.rank < head.rank:
                first, head = head, None
                if first is not entry and first.waits:
                    self._examine(first)
            return self._examine(entry)

        return examine

    def _examine(self, entry: Entry) -> Outcome:
        if self._fresh.pop(entry.gang.uid, None) and (reason := self._hindrance(entry)):
            return self._put_aside(entry, reason)
        if self._head and entry.reason == self._behind_head and self._rooms.is_hopeless(entry.shapes):
            return "no room"  # nothing has changed for it
        if ahead := self._ahead_in_queue(entry):
            self._wait(entry, words.behind(ahead.gang.title, ahead.gang.priority, entry.queue.name))
            return "no quota"
        if short := self._short_of_quota(entry):
            return self._wait_for_quota(entry, short)
        if entry.queue.first is entry:
            entry.queue.first = None
        head = self._head
        if head is not None and head is not entry and not entry.rank < head.rank:
            seats = self._rooms.place(
                entry.need, entry.shapes, entry.total
            )  # beside what is set aside for the head
            if seats is None:
                self._wait(entry, self._behind_head)
                return "no room"
            return self._seat(entry, seats)
        return self._examine_first(entry)

    def _hindrance(self, entry: Entry) -> str:
        if entry.gang.hindrance:
            return entry.gang.hindrance
        for name, quota in entry.queue.policy.quota.items():
            amount = entry.total.get(name, 0) + entry.held.get(name, 0)
            if entry.total.get(name, 0) and amount > quota:
                return words.beyond_quota(entry.queue.name, name, amount, quota)
        return ""

    def _put_aside(self, entry: Entry, reason: str) -> Outcome:
        need, total = entry.need, entry.total
        self._step_out(entry)
        entry.need, entry.total = need, total
        self._aside[entry.gang.uid] = entry
        self._wait(entry, reason)
        return "aside"

    # -- quota

    def _ahead_in_queue(self, entry: Entry) -> Entry | None:
        """In a strict queue, whoever is before this one."""
        first = entry.queue.waiting[0][1]
        return first if entry.queue.policy.strict and first is not entry else None

    def _short_of_quota(self, entry: Entry) -> str:
        """The resource of which the queue has too little left, beside what is set aside for those before."""
        queue, before = entry.queue, list[Entry]()
        if queue.first and queue.first is not entry and queue.first.is_before(entry):
            before.append(queue.first)
        head = self._head
        if head and head is not entry and head.queue is queue and not entry.rank < head.rank:
            before.append(head)
        for name in queue.policy.quota:
            if amount := entry.total.get(name, 0):
                set_aside = sum(other.total.get(name, 0) for other in before)
                if amount > queue.left(name) - set_aside:
                    return name
        return ""

    def _wait_for_quota(self, entry: Entry, short: str) -> Outcome:
        queue, first = entry.queue, entry.queue.first
        if first is not None and first is not entry and first.is_before(entry):
            if self._head is entry:
                self._dethrone()
            self._wait(entry, words.behind(first.gang.title, first.gang.priority, queue.name))
            return "no quota"
        queue.first = entry
        left, quota, used = (
            queue.left(short),
            queue.policy.quota[short],
            _held_of(queue.holders.values(), short),
        )
        reason = words.no_quota(queue.name, short, entry.total[short], left, quota, used)
        self._wait(entry, reason + self._making_room(entry, self._rivals(entry)))
        return "no quota"

    def _rivals(self, entry: Entry) -> list[Entry]:
        """Those of the same queue who must make way for the first that its quota keeps waiting."""
        policy, mine = entry.queue.policy.preemption, entry.gang
        if policy == "Never":
            return []
        return [
            one
            for one in entry.queue.holders.values()
            if one.gang.priority < mine.priority
            or (
                policy == "LowerOrNewerEqualPriority"
                and one.gang.priority == mine.priority
                and one.gang.created > mine.created
            )
        ]

    # -- room

    def _examine_first(self, entry: Entry) -> Outcome:
        """Nobody's seats need to be left alone: it is the head, or it may become the head."""
        head, plan = self._head, self._plan
        self._rooms.keep_nothing()
        seats = self._rooms.place_as_planned(plan, entry.need) if head is entry else None
        seats = seats or self._rooms.place(entry.need, entry.shapes, entry.total)
        if seats is not None:
            if head is not None and head is not entry:
                self._set_aside_for(head)
            return self._seat(entry, seats)
        reason = self._why_no_room(entry)
        mine = plan if head is entry else self._rooms.plan(entry.need)
        if not mine:
            if head is not None:
                self._rooms.keep(plan, head.need)
            return self._put_aside(entry, self._why_never(entry))
        self._crown(entry, mine)
        lower = [
            one
            for priority, peers in self._by_priority.items()
            if priority < entry.gang.priority
            for one in peers.values()
        ]
        self._wait(entry, reason + self._making_room(entry, lower))
        return "no room"

    def _set_aside_for(self, entry: Entry) -> None:
        """Makes it the head, with seats planned for it; or nobody, if there could not be any."""
        if plan := self._rooms.plan(entry.need):
            self._crown(entry, plan)
        else:
            self._dethrone()

    def _crown(self, entry: Entry, plan: dict[str, str]) -> None:
        self._head, self._plan = entry, plan
        self._behind_head = words.behind(entry.gang.title, entry.gang.priority)
        self._rooms.keep(plan, entry.need)

    def _why_no_room(self, entry: Entry) -> str:
        return words.lack(entry.total, entry.need.values(), self._rooms, self._held)

    def _why_never(self, entry: Entry) -> str:
        if not any(True for _ in self._rooms):
            return words.NO_NODE
        return words.never(entry.total, entry.need.values(), self._rooms)

    # -- making room

    def _making_room(self, entry: Entry, candidates: list[Entry]) -> str:
        """Says who makes room for it, sending away as many as it takes, and keeps for it what they leave.

        Whoever makes room for nobody's seat would be called back at once, and so on for ever.
        """
        leaving, gone = list(self._leaving.values()), list[Entry]()
        if self._head in (None, entry) or entry.rank < self._head.rank:
            if leaving and self._is_enough(entry, leaving):
                gone = leaving
            elif victims := self._victims(entry, leaving, candidates):
                gone = [*leaving, *victims]
                self._send_away(victims, entry)
        if gone and (plan := self._plan_without(gone, entry)):
            self._crown(entry, plan)
        elif self._head is entry and entry.queue.first is entry:
            self._dethrone()  # it is its quota that it waits for: room is of no use to it
        return words.making_room(sorted(one.gang.title for one in gone)) if gone else ""

    def _victims(self, entry: Entry, leaving: list[Entry], candidates: list[Entry]) -> Sequence[Entry]:
        if not entry.gang.preempts:
            return ()
        fit = [one for one in candidates if one.gang.suspendable and not one.leaving]
        fit.sort(key=lambda one: (one.gang.priority, _descending(one.gang.created), -one.arrival))
        return fewest(fit, lambda gone: self._is_enough(entry, [*leaving, *gone]))

    def _send_away(self, victims: Sequence[Entry], entry: Entry) -> None:
        news = words.suspends((one.gang.title, one.gang.priority) for one in victims)
        why = words.suspended_for(entry.gang.title, entry.gang.priority)
        for one in victims:
            self._count(one, -1)
            one.leaving = True
            self._count(one, 1)
            self._out.append(Preempt(one.gang.uid, entry.gang.uid, why, news))

    def _is_enough(self, entry: Entry, gone: Sequence[Entry]) -> bool:
        """Whether it could sit if these were gone, by its queue's quota and by the room there is."""
        queue = entry.queue
        for name in queue.policy.quota:
            back = sum(one.held.get(name, 0) for one in gone if one.queue is queue)
            if entry.total.get(name, 0) > queue.left(name) + back:
                return False
        free = self._rooms.free
        for name, amount in entry.total.items():
            # A part of a card that is given back may free all of it.
            names = (GPU, SHARED) if name == GPU else (name,)
            back = sum(one.held.get(each, 0) for one in gone for each in names)
            if name in free and amount > free[name] + back:
                return False
        return self._plan_without(gone, entry) is not None

    def _plan_without(self, gone: Sequence[Entry], entry: Entry) -> dict[str, str] | None:
        """Where it could sit if these were gone."""
        rooms = self._rooms
        rooms.keep_nothing()
        for one in gone:
            for seat, ask in one.seats.values():
                rooms.leave(seat, ask)
        seats = rooms.place(entry.need, entry.shapes, entry.total)
        if seats is not None:
            rooms.undo(seats, entry.need)
        for one in gone:
            for seat, ask in one.seats.values():
                rooms.book(seat, ask)
        if self._head is not None:
            rooms.keep(self._plan, self._head.need)
        return None if seats is None else {pod: seat.node for pod, seat in seats.items()}

    # -- what comes of it

    def _seat(self, entry: Entry, seats: Seats) -> Outcome:
        gang, need, stirred = entry.gang, entry.need, self._stirred
        self._step_out(entry)
        self._stirred = stirred  # it was before all whom it held up, and they are yet to be looked at
        self._count(entry, -1)
        entry.seats |= {pod: (seat, need[pod]) for pod, seat in seats.items()}
        entry.held = asked_together(ask for _, ask in entry.seats.values())
        entry.reason = ""
        self._told.pop(gang.uid, None)
        self._count(entry, 1)
        self._out.append(Resume(gang.uid) if gang.standing == "parked" else Admit(gang.uid, seats))
        return "seated"

    def _wait(self, entry: Entry, reason: str) -> None:
        if entry.reason != reason:
            entry.reason = reason
            self._told[entry.gang.uid] = Wait(entry.gang.uid, reason)


def _need_of(gang: Gang, seats: Mapping[str, object]) -> dict[str, Ask]:
    if gang.standing == "active" or (gang.standing == "parked" and not gang.seated):
        return hungriest_first({pod: ask for pod, ask in gang.asks.items() if pod not in seats})
    return {}


def _held_of(holders: Iterable[Entry], name: str) -> dict[str, int]:
    return {one.gang.title: one.held[name] for one in holders if one.held.get(name)}


def _descending(stamp: str) -> tuple[int, ...]:
    return tuple(-ord(letter) for letter in stamp)
