"""Ports on one machine: pods share its network, so two members that want the same port cannot both have it.

A member keeps the port its manifest names as long as nobody else on the machine holds it; only otherwise is it given
another one, and then the job says so in an annotation.
"""

from collections.abc import Callable, Iterator
from itertools import chain

from fullrank.frameworks.contract import Gang

FIRST, LAST = 20000, 29999  # below the ports that systems hand out by themselves


class PortBook:
    def __init__(self, is_free: Callable[[int], bool]) -> None:
        self._is_free = is_free
        self._holders: dict[int, str] = {}
        self._next = FIRST

    def assign(self, gang: Gang) -> dict[str, int]:
        """The ports that differ from what the manifest says, by pod name; what the job already holds stays."""
        given = {}
        for member in gang.framework.listeners(gang):
            name, wanted = gang.name(member), gang.port(member)
            port = wanted if self._take(wanted, name, gang) else self._another(name, gang)
            if port != gang.declared_port(member):
                given[name] = port
        return given

    def hold(self, gang: Gang) -> None:
        """Notes the ports of a job that is running already."""
        for member in gang.framework.listeners(gang):
            self._holders[gang.port(member)] = _holder(gang, gang.name(member))

    def release(self, uid: str) -> None:
        for port in [port for port, holder in self._holders.items() if holder.startswith(uid)]:
            del self._holders[port]

    def _take(self, port: int, name: str, gang: Gang) -> bool:
        me = _holder(gang, name)
        if self._holders.get(port) == me:
            return True
        if port in self._holders or not self._is_free(port):
            return False
        self._holders[port] = me
        return True

    def _another(self, name: str, gang: Gang) -> int:
        # Round and round: a port that was just given up may still have messages on the way to it.
        for port in self._round():
            self._next = port + 1 if port < LAST else FIRST
            if self._take(port, name, gang):
                return port
        raise RuntimeError(f"all ports from {FIRST} to {LAST} are taken")

    def _round(self) -> Iterator[int]:
        start = self._next
        return chain(range(start, LAST + 1), range(FIRST, start))


def _holder(gang: Gang, name: str) -> str:
    return f"{gang.job.uid}/{name}"
