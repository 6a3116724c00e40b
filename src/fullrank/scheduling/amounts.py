"""What nodes have and pods ask for, as whole numbers of thousandths: cores, bytes, devices, seats."""

from collections.abc import Iterable, Mapping

from fullrank.api.meta import Json
from fullrank.api.quantity import Quantity, from_bytes, from_milli, milli

Amounts = Mapping[str, int]
SEATS = "pods"
BYTES = ("memory", "ephemeral-storage")


def amounts_of(quantities: Mapping[str, Quantity] | None) -> dict[str, int]:
    return {name: milli(quantity) for name, quantity in (quantities or {}).items()}


def asked_by(pod: Json) -> dict[str, int]:
    """What a pod needs to be seated: its containers together or its hungriest init container, and a seat."""
    spec: Json = pod["spec"]
    asked = total(_container_asks(one) for one in spec.get("containers") or ())
    for one in spec.get("initContainers") or ():
        for name, amount in _container_asks(one).items():
            asked[name] = max(asked.get(name, 0), amount)
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


def shown(name: str, amount: int) -> str:
    """The amount as people write it: `500m` cores, `4Gi` of memory, 3 devices."""
    return from_bytes(amount // 1000) if name in BYTES else from_milli(amount)
