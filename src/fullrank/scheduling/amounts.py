"""What nodes have and pods ask for, as whole numbers of thousandths: cores, bytes, devices, seats."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from fullrank.api.meta import Json
from fullrank.api.quantity import Quantity, from_bytes, from_milli, milli

Amounts = Mapping[str, int]
SEATS = "pods"
BYTES = ("memory", "ephemeral-storage")
GPU, SHARED = "nvidia.com/gpu", "nvidia.com/vgpu"
SHARED_MEMORY, SHARED_CORES = (
    "nvidia.com/gpumem",
    "nvidia.com/gpucores",
)  # of each shared card: megabytes, per cent
BY_CARD = (SHARED, SHARED_MEMORY, SHARED_CORES)  # not sums over a machine: a card has them or has not
UNCOUNTED = ("ephemeral-storage",)  # disks are not shared out


@dataclass(frozen=True)
class Ask:
    """What one pod asks for; equal asks are one shape, and what is known of a shape holds for all of them."""

    amounts: tuple[tuple[str, int], ...]  # as written, but for zeros and what is not counted; sorted
    shared: int = 0  # cards to have a part of
    memory: int = 0  # megabytes of each of them; 0 is all of it
    cores: int = 0  # per cent of each of them; 0 is whatever is left by the others

    @classmethod
    def of(cls, amounts: Amounts) -> "Ask":
        counted = tuple(
            sorted((name, amount) for name, amount in amounts.items() if amount > 0 and name not in UNCOUNTED)
        )
        shared, memory, cores = (_units(amounts.get(name, 0)) for name in BY_CARD)
        return _known(cls(counted, shared, memory, cores) if shared else cls(counted))

    @cached_property
    def of_a_room(self) -> tuple[tuple[str, int], ...]:
        """What adds up over the pods in a room."""
        return tuple((name, amount) for name, amount in self.amounts if name not in BY_CARD)

    @cached_property
    def booked(self) -> tuple[tuple[str, int], ...]:
        """What is booked by amount; cards are booked by name."""
        return tuple((name, amount) for name, amount in self.of_a_room if name != GPU)

    @cached_property
    def set_aside(self) -> dict[str, int]:
        """What a room keeps for it while it waits; a part of a card is kept as a whole one."""
        kept = dict(self.of_a_room)
        if self.shared:
            kept[GPU] = kept.get(GPU, 0) + self.shared * 1000
        return kept

    @cached_property
    def whole_cards(self) -> int:
        return _units(dict(self.amounts).get(GPU, 0))

    @cached_property
    def weight(self) -> tuple[int, int]:
        """Who is seated first: those with many cards, then the hungry."""
        return self.whole_cards + self.shared, sum(amount for _, amount in self.amounts)

    @cached_property
    def _hash(self) -> int:
        return hash((self.amounts, self.shared, self.memory, self.cores))

    def __hash__(self) -> int:
        return self._hash


@lru_cache(maxsize=4096)
def _known(ask: Ask) -> Ask:
    """The first that was equal to it: to find one's shape again is then to find the very same thing."""
    return ask


def _units(thousandths: int) -> int:
    return -(-thousandths // 1000)


def amounts_of(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: milli(quantity) for name, quantity in (quantities or {}).items()}


def asked_by(spec: Json) -> dict[str, int]:
    """What a pod needs to be seated: its containers together or its hungriest init container, and a seat."""
    asked = total(_container_asks(one) for one in spec.get("containers") or ())
    for one in spec.get("initContainers") or ():
        for name, amount in _container_asks(one).items():
            asked[name] = max(asked.get(name, 0), amount)
    # Memory and cores of shared cards are said per card, however many containers say it.
    for name in (SHARED_MEMORY, SHARED_CORES):
        if name in asked:
            asked[name] = max(_container_asks(one).get(name, 0) for one in spec["containers"])
    return asked | {SEATS: 1000}


def _container_asks(container: Json) -> dict[str, int]:
    """Requests; what is only limited is asked for in full."""
    resources: Json = container.get("resources") or {}
    return amounts_of(resources.get("limits")) | amounts_of(resources.get("requests"))


def total(several: Iterable[Amounts]) -> dict[str, int]:
    result: dict[str, int] = {}
    for amounts in several:
        for name, amount in amounts.items():
            result[name] = result.get(name, 0) + amount
    return result


def asked_together(asks: Iterable[Ask]) -> dict[str, int]:
    return total(dict(ask.amounts) for ask in asks)


def shown(name: str, amount: int) -> str:
    """The amount as people write it: `500m` cores, `4Gi` of memory, 3 devices."""
    return from_bytes(amount // 1000) if name in BYTES else from_milli(amount)
