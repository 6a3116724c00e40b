"""The GPUs of one node: each is whole in one pod's hands, shared by several, or untouched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fullrank.scheduling.amounts import Ask

ALL_CORES = 100  # per cent


@dataclass(slots=True)
class _Card:
    memory: int  # megabytes; 0 for a card that is held but not there any more
    holders: int = 0
    whole: int = 0  # of the holders, those who have all of it
    filled: int = 0  # of the holders, those who have all of its memory
    used: int = 0  # megabytes, by the others
    cores: int = 0

    def has_room_for(self, ask: Ask) -> bool:
        if self.whole or self.filled or self.cores >= ALL_CORES:
            return False
        if self.holders and (ask.cores >= ALL_CORES or not ask.memory):
            return False
        return self.used + ask.memory <= self.memory and self.cores + ask.cores <= ALL_CORES


@dataclass(slots=True)
class Cards:
    """By name, in the order in which they are handed out."""

    _present: list[str] = field(default_factory=list)
    _cards: dict[str, _Card] = field(default_factory=dict)

    @property
    def untouched(self) -> int:
        return sum(1 for name in self._present if not self._cards[name].holders)

    def install(self, memories: Mapping[str, int]) -> None:
        """These are the cards now; what is held of cards that went stays held."""
        for name, card in self._cards.items():
            card.memory = memories.get(name, 0)
        for name in memories:
            self._cards.setdefault(name, _Card(memories[name]))
        self._present = list(memories)

    def could_ever_share(self, ask: Ask) -> bool:
        return sum(1 for name in self._present if self._cards[name].memory >= ask.memory) >= ask.shared

    def choose(self, ask: Ask, kept: int) -> tuple[str, ...] | None:
        """Whole ones first, then the parts; `kept` untouched ones are somebody else's. None if there are not enough."""
        untouched = [name for name in self._present if not self._cards[name].holders]
        if len(untouched) - kept < ask.whole_cards:
            return None
        whole, rest = untouched[: ask.whole_cards], untouched[ask.whole_cards : len(untouched) - kept]
        parts = self._parts(ask, rest) if ask.shared else []
        return (*whole, *parts) if len(parts) == ask.shared else None

    def _parts(self, ask: Ask, untouched: Sequence[str]) -> list[str]:
        """Cards that are shared already are filled up before another one is broken into."""
        begun = [name for name in self._present if self._cards[name].holders]
        begun.sort(key=lambda name: -self._cards[name].used)
        fit = [name for name in (*begun, *untouched) if self._cards[name].has_room_for(ask)]
        return fit[: ask.shared]

    def book(self, ask: Ask, names: Sequence[str], sign: int) -> None:
        for position, name in enumerate(names):
            card = self._cards.setdefault(name, _Card(0))
            card.holders += sign
            if position < ask.whole_cards:
                card.whole += sign
            else:
                card.filled += sign * (not ask.memory)
                card.used += sign * ask.memory
                card.cores += sign * ask.cores
