"""All members of a gang find a seat, or none does and the gang learns what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fullrank.scheduling.amounts import Amounts, shown, total


@dataclass(frozen=True, slots=True)
class Room:
    """A node's capacity and what is taken of it."""

    name: str
    capacity: Amounts
    taken: Amounts

    def free(self) -> dict[str, int]:
        return {name: amount - self.taken.get(name, 0) for name, amount in self.capacity.items()}


@dataclass(frozen=True, slots=True)
class Placement:
    """Which node each pod goes to."""

    seats: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why a gang waits, with numbers."""

    reason: str


def place(
    asks: Mapping[str, Amounts], rooms: Sequence[Room], holders: Mapping[str, Amounts]
) -> Placement | Shortfall:
    """Seats every pod of `asks` (by name) in the rooms, the hungriest first; `holders` are who has what now."""
    if not rooms:
        return Shortfall("no node is ready")
    free = {room.name: room.free() for room in rooms}
    seats: dict[str, str] = {}
    for pod, needs in sorted(asks.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        node = next((name for name, left in free.items() if _fits(needs, left)), None)
        if node is None:
            return _shortfall(asks, rooms, holders)
        seats[pod] = node
        for name, amount in needs.items():
            free[node][name] -= amount
    return Placement(seats)


def _fits(needs: Amounts, left: Amounts) -> bool:
    return all(amount <= left.get(name, 0) for name, amount in needs.items() if amount)


def _shortfall(
    asks: Mapping[str, Amounts], rooms: Sequence[Room], holders: Mapping[str, Amounts]
) -> Shortfall:
    needed = total(asks.values())
    capacity, free = total(room.capacity for room in rooms), total(room.free() for room in rooms)
    short = [name for name, amount in needed.items() if amount > free.get(name, 0)]
    if not short:
        return Shortfall(f"needs {len(asks)} seats that no node has in one piece")
    return Shortfall(
        "; ".join(
            _lack(name, needed[name], free.get(name, 0), capacity.get(name, 0), holders)
            for name in sorted(short)
        )
    )


def _lack(name: str, needed: int, free: int, capacity: int, holders: Mapping[str, Amounts]) -> str:
    text = f"needs {shown(name, needed)} {name}, {shown(name, max(free, 0))} free of {shown(name, capacity)}"
    held = sorted(
        ((amounts.get(name, 0), who) for who, amounts in holders.items() if amounts.get(name, 0)),
        reverse=True,
    )
    who = ", ".join(f"{who} ({shown(name, amount)})" for amount, who in held[:3])
    more = f" and {len(held) - 3} more" if len(held) > 3 else ""
    return f"{text}; held by {who}{more}" if held else text
