"""GPUs in annotations: those of a node with their memory, and those that a pod was given."""

from collections.abc import Iterable, Mapping

import msgspec

from fullrank.api.annotations import DEVICES
from fullrank.api.meta import Json, annotations_of


def written_cards(cards: Mapping[str, int]) -> str:
    """The annotation of a node: its cards by name, each with its megabytes."""
    return msgspec.json.encode(dict(cards)).decode()


def cards_of(node: Json) -> dict[str, int] | None:
    """The cards of a node, in their order. Anybody may write an annotation: nonsense counts as none."""
    try:
        return msgspec.json.decode(annotations_of(node).get(DEVICES, ""), type=dict[str, int])
    except msgspec.DecodeError:
        return None


def written_devices(names: Iterable[str]) -> str:
    """The annotation of a pod: the cards it has, its containers' in their order."""
    return ",".join(names)


def devices_of(pod: Json) -> tuple[str, ...]:
    return tuple(name for name in annotations_of(pod).get(DEVICES, "").split(",") if name)
