"""Services as variables in a container's environment, as kubelets have always put them there. Pure.

Nothing stands between a service and its pods on one machine: where a cluster would name the service's own address,
these name a pod behind it and the port on which that pod really listens.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fullrank.api.meta import Json, labels_of, name_of


class Port(NamedTuple):
    name: str
    number: int  # the service's, which variables are called by
    protocol: str
    real: int  # the pod's


def links(
    services: Iterable[Json], pods: Iterable[Json], address: Callable[[Json], str]
) -> Iterator[tuple[str, str]]:
    """The variables of those services of a namespace (all of them with links) that have a pod here."""
    pods = list(pods)
    for service in services:
        selector = service["spec"]["selector"]
        behind = [pod for pod in pods if selector.items() <= labels_of(pod).items()]
        if behind:
            first = min(behind, key=address)
            ports = [_port(port, first) for port in service["spec"]["ports"]]
            yield from service_variables(name_of(service), address(first), ports).items()


def has_links(service: Json) -> bool:
    """Whether it has an address of its own in a cluster, and so variables."""
    spec: Json = service["spec"]
    is_addressed = spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName"
    return bool(is_addressed and spec.get("selector") and spec.get("ports"))


def service_variables(name: str, host: str, ports: list[Port]) -> dict[str, str]:
    prefix = _variable(name)
    found = {f"{prefix}_SERVICE_HOST": host, f"{prefix}_SERVICE_PORT": str(ports[0].real)}
    found |= {f"{prefix}_SERVICE_PORT_{_variable(port.name)}": str(port.real) for port in ports if port.name}
    bracketed = f"[{host}]" if ":" in host else host
    for position, port in enumerate(ports):
        protocol = port.protocol.lower()
        url = f"{protocol}://{bracketed}:{port.real}"
        if position == 0:
            found[f"{prefix}_PORT"] = url
        words = f"{prefix}_PORT_{port.number}_{port.protocol.upper()}"
        found |= {words: url, f"{words}_PROTO": protocol}
        found |= {f"{words}_PORT": str(port.real), f"{words}_ADDR": host}
    return found


def _port(port: Json, pod: Json) -> Port:
    target = port.get("targetPort") or port["port"]
    if isinstance(target, str):
        named = (
            one
            for container in pod["spec"]["containers"]
            for one in container.get("ports") or []
            if one.get("name") == target
        )
        target = next((one["containerPort"] for one in named), port["port"])
    return Port(port.get("name", ""), port["port"], port.get("protocol") or "TCP", target)


def _variable(name: str) -> str:
    return re.sub(r"[-.]", "_", name).upper()
