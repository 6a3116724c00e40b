"""Ports on one machine: pods share its network, so two members that want the same port cannot both have it.

A member keeps the port its manifest names as long as nobody else on the machine holds it; only otherwise is it given
another one, and then the job says so in an annotation.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import chain

from fullrank.frameworks.contract import Gang

FIRST, LAST = 20000, 29999  # below the ports that systems hand out by themselves


class PortBook:
    def __init__(self, is_free: Callable[[int], bool], *, shared: bool = True) -> None:
        """Where pods have networks of their own, nothing is `shared` and every port is as its manifest says."""
        self._is_free = is_free
        self._shared = shared
        self._holders: dict[int, str] = {}
        self._held: defaultdict[str, set[int]] = defaultdict(set)  # by the uid of a job or a program
        self._next = FIRST

    def assign(self, gang: Gang) -> dict[str, int]:
        """The ports that differ from what the manifest says, by pod name; what the job already holds stays."""
        given: dict[str, int] = {}
        for member in gang.framework.listeners(gang) if self._shared else ():
            name, wanted = gang.name(member), gang.port(member)
            me = _holder(gang, name)
            port = wanted if self._take(wanted, me) else self._another(me)
            if port != gang.declared_port(member):
                given[name] = port
        return given

    def hold(self, gang: Gang) -> None:
        """Notes the ports of a job that is running already."""
        for member in gang.framework.listeners(gang):
            self._give(gang.port(member), _holder(gang, gang.name(member)))

    def lend(self, uid: str, wanted: int) -> int:
        """A port for a program that is about to start: the one it had, the one it wants, or another."""
        if not self._shared:
            return wanted
        had = next(iter(self._held.get(uid, ())), None)
        if had is not None and self._is_free(had):
            return had
        self.release(uid)
        return wanted if self._take(wanted, uid) else self._another(uid)

    def note(self, uid: str, port: int) -> None:
        """Notes the port of a program that is running already."""
        self._give(port, uid)

    def release(self, uid: str) -> None:
        for port in self._held.pop(uid, ()):
            del self._holders[port]

    def _give(self, port: int, holder: str) -> None:
        if before := self._holders.get(port):
            self._held[_owner(before)].discard(port)
        self._holders[port] = holder
        self._held[_owner(holder)].add(port)

    def _take(self, port: int, me: str) -> bool:
        if self._holders.get(port) == me:
            return True
        if port in self._holders or not self._is_free(port):
            return False
        self._give(port, me)
        return True

    def _another(self, me: str) -> int:
        # Round and round: a port that was just given up may still have messages on the way to it.
        for port in self._round():
            self._next = port + 1 if port < LAST else FIRST
            if self._take(port, me):
                return port
        raise RuntimeError(f"all ports from {FIRST} to {LAST} are taken")

    def _round(self) -> Iterator[int]:
        start = self._next
        return chain(range(start, LAST + 1), range(FIRST, start))


def _holder(gang: Gang, name: str) -> str:
    return f"{gang.job.uid}/{name}"


def _owner(holder: str) -> str:
    return holder.partition("/")[0]
