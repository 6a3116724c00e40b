"""A gang as the floor sees it: pods that belong together, what they ask for, where they sit; and what is decided."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from fullrank.scheduling.amounts import Ask
from fullrank.scheduling.rooms import Seat, Seats

Standing: TypeAlias = Literal[
    "active",  # its pods are to run: it may ask for seats, and keeps those of members that are being replaced
    "parked",  # it was suspended to make room, and waits to go on
    "leaving",  # its pods are on their way out
    "over",  # it has ended; pods it keeps on purpose keep their seats
]


@dataclass(frozen=True, slots=True)
class Gang:
    uid: str
    title: str  # `namespace/name`
    created: str = ""
    queue: str = ""  # the ClusterQueue that its share and quota are counted in; empty is the default one
    priority: int = 0
    preempts: bool = True
    suspendable: bool = False
    standing: Standing = "active"
    complete: bool = True  # all members have pods: until then none is seated
    asks: Mapping[str, Ask] = field(
        default_factory=dict
    )  # of pods that have or want a seat (parked: would want)
    seated: Mapping[str, Seat] = field(default_factory=dict)
    members: frozenset[str] = frozenset()  # pods, also such as are being replaced, whose seats are kept
    hindrance: str = ""  # why it may not be seated whatever there is room for
    local_queue: str = ""  # the LocalQueue through which it came to its queue, as `namespace/name`


@dataclass(frozen=True, slots=True)
class Admit:
    """Seats for all who wait; pods that are not named sit already."""

    uid: str
    seats: Seats


@dataclass(frozen=True, slots=True)
class Resume:
    """A parked gang may go on: its seats are held for it."""

    uid: str


@dataclass(frozen=True, slots=True)
class Preempt:
    """The gang is to be suspended, so that another one finds room."""

    uid: str
    by: str
    why: str  # for the one who goes
    news: str  # for the one who comes


@dataclass(frozen=True, slots=True)
class Wait:
    uid: str
    reason: str


Decision: TypeAlias = Admit | Resume | Preempt | Wait


@dataclass(frozen=True, slots=True)
class Tally:
    """How many gangs of a queue wait, how many have seats, and what these use."""

    pending: int = 0
    admitted: int = 0
    used: Mapping[str, int] = field(default_factory=dict)
