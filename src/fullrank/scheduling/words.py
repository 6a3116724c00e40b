"""Why somebody waits, with numbers and names: the one place where the scheduler's sentences are made."""

from collections.abc import Iterable, Mapping
from itertools import islice

from fullrank.scheduling.amounts import GPU, SEATS, SHARED, SHARED_CORES, SHARED_MEMORY, Amounts, Ask, shown
from fullrank.scheduling.rooms import Rooms

NAMED = 3  # of the holders of something
FEW = 64  # so many holders are worth sorting

NO_NODE = "no node is ready"


def lack(total: Amounts, need: Iterable[Ask], rooms: Rooms, held: Mapping[str, Mapping[str, int]]) -> str:
    """What is missing now; `held` is who has how much, by resource."""
    short = [
        name for name, amount in sorted(total.items()) if _adds_up(name) and amount > rooms.free.get(name, 0)
    ]
    if not short:
        return _in_one_piece(need, rooms)
    texts = []
    for name in short:
        free, capacity = max(rooms.free.get(name, 0), 0), rooms.capacity.get(name, 0)
        text = f"needs {shown(name, total[name])} {name}, {shown(name, free)} free of {shown(name, capacity)}"
        texts.append(text + _by(name, "held by", held.get(name, {})))
    return "; ".join(texts)


def _in_one_piece(need: Iterable[Ask], rooms: Rooms) -> str:
    """In all there is enough, but not where one pod needs it."""
    open_rooms = list(rooms)
    for ask in sorted(set(need), key=lambda one: one.weight, reverse=True):
        for name, amount in ask.of_a_room:
            if not any(room.free.get(name, 0) >= amount for room in open_rooms):
                most, where = max(
                    ((room.free.get(name, 0), room.name) for room in open_rooms), default=(0, "")
                )
                return (
                    f"a pod needs {shown(name, amount)} {name} on one node, "
                    f"the most free on one is {shown(name, max(most, 0))} ({where})"
                )
        if ask.shared and not any(room.fits(ask) for room in open_rooms):
            return f"a pod needs {_part(ask)}, no node has so much free"
    return "what is free does not lie together as its pods need it"


def _part(ask: Ask) -> str:
    memory = f"{ask.memory} {SHARED_MEMORY}" if ask.memory else "all of the memory"
    cores = f" and {ask.cores} {SHARED_CORES}" if ask.cores else ""
    return f"{ask.shared} {SHARED} with {memory}{cores} of each card"


def never(total: Amounts, need: Iterable[Ask], rooms: Rooms) -> str:
    """Why it cannot run even if everybody else left."""
    machines = list(rooms)
    has = "the machine has" if len(machines) == 1 else f"the {len(machines)} machines have"
    for name, amount in sorted(total.items()):
        capacity = rooms.capacity.get(name, 0)
        if _adds_up(name) and amount > capacity:
            text = f"needs {shown(name, amount)} {name}, {has} {shown(name, capacity)}"
            return f"{text}: it can never run here; {_remedy(name, amount, capacity)}"
    for ask in set(need):
        for name, amount in ask.of_a_room:
            most = max((room.capacity.get(name, 0) for room in machines), default=0)
            if amount > most:
                text = (
                    f"a pod needs {shown(name, amount)} {name}, no machine has more than {shown(name, most)}"
                )
                return f"{text}: it can never run here; {_remedy(name, amount, most)}"
        if ask.shared and not any(room.cards.could_ever_share(ask) for room in machines):
            return f"a pod needs {_part(ask)}, no machine has that: it can never run here; lower the request"
    return "its pods do not fit together even on empty machines: it can never run here; lower the requests"


def _remedy(name: str, amount: int, capacity: int) -> str:
    if name == GPU:
        return f"lower the request or start with --gpus fake:{shown(name, amount)}"
    if name == "cpu" and capacity:
        return "lower the request or start with a larger --cpu-overcommit"
    return "lower the request"


def beyond_quota(queue: str, name: str, amount: int, quota: int) -> str:
    text = f"queue {queue}: needs {shown(name, amount)} {name}, its quota is {shown(name, quota)}"
    remedy = f"lower the request or raise the quota of ClusterQueue {queue}"
    return f"{text}: it can never run there; {remedy}"


def no_quota(queue: str, name: str, amount: int, left: int, quota: int, used: Mapping[str, int]) -> str:
    numbers = f"{shown(name, max(left, 0))} left of {shown(name, quota)}"
    return f"queue {queue}: needs {shown(name, amount)} {name}, {numbers}{_by(name, 'used by', used)}"


def behind(title: str, priority: int, queue: str = "") -> str:
    text = f"waits behind {title} (priority {priority})"
    return f"queue {queue}: {text}" if queue else text


def making_room(titles: Iterable[str]) -> str:
    listed = list(titles)
    return f"; {_listed(listed)} {'makes' if len(listed) == 1 else 'make'} room"


def suspended_for(title: str, priority: int) -> str:
    return f"Suspended to make room for {title} (priority {priority}); it goes on when there is room again"


def suspends(victims: Iterable[tuple[str, int]]) -> str:
    return f"Suspends {_listed(f'{title} (priority {priority})' for title, priority in victims)} to have its room"


def _listed(titles: Iterable[str]) -> str:
    return ", ".join(titles)


def _adds_up(name: str) -> bool:
    return name not in (SHARED, SHARED_MEMORY, SHARED_CORES)


def _by(name: str, verb: str, holders: Mapping[str, int]) -> str:
    if not holders or name == SEATS:
        return ""
    # Whoever has most is named first, where that is quickly found.
    some = sorted(holders.items(), key=lambda item: (-item[1], item[0])) if len(holders) <= FEW else None
    named = islice(some if some is not None else holders.items(), NAMED)
    text = _listed(f"{who} ({shown(name, amount)})" for who, amount in named)
    more = f" and {len(holders) - NAMED} more" if len(holders) > NAMED else ""
    return f"; {verb} {text}{more}"
