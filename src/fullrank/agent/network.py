"""Names and addresses on one machine: a loopback address for each pod, and a `hosts` file for each namespace.

All pods share the host's network. An address from 127.64.0.0/10 makes each of them somebody on it, and the file maps
pods' and services' names to these addresses. It is renamed into place: containers see its folder, and so follow it.
"""

import errno
import os
import socket
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path

from fullrank.agent.launching import hostname_of
from fullrank.agent.links import has_links, links
from fullrank.agent.places import Places
from fullrank.api.meta import Json, labels_of, name_of, namespace_of, uid_of

FIRST, LAST = int(IPv4Address("127.64.0.1")), int(IPv4Address("127.127.255.254"))
HAS_MANY_ADDRESSES = sys.platform == "linux"
NO_SUCH_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
HOST_FILE = Path("/etc/hosts")
TITLE, HOST_NETWORK_TITLE = (
    "# Kubernetes-managed hosts file.",
    "# Kubernetes-managed hosts file (host network).",
)


class Network:
    """Who is where, kept up to date by the agent; `settle` writes what changed since it was last called."""

    def __init__(
        self,
        places: Places,
        *,
        many: bool = HAS_MANY_ADDRESSES,
        subnet: IPv4Network | None = None,
        whole: bool = False,
        start: int = 0,
    ) -> None:
        """`subnet`: where pods have a network of their own; `whole`: where they have a root of their own; `start`:
        any number, another one for each home, since two homes' pods with the same address would be in each other's way.

        There the hosts file itself is mounted: it is written to in place, and says nothing of what the host knows.
        """
        self._places = places
        self._many = many or subnet is not None
        self._first, self._last = (int(subnet[2]), int(subnet[-3])) if subnet else (FIRST, LAST)
        self._whole = whole
        self._pods: dict[str, Json] = {}
        self._services: dict[str, Json] = {}
        self._linked: dict[str, Json] = {}  # the few of them that become variables
        self._addresses: dict[str, str] = {}
        self._held: set[str] = set()
        self._next = self._first + start % (self._last - self._first)
        self._stale: set[str] = set()
        self._resolved: dict[str, dict[str, list[str]]] = {}  # by namespace, until something changes there

    def seat(self, pod: Json, *, host: str = "") -> str:
        """The pod's address: the host's, what its status says, or one that was free for as long as possible."""
        uid = uid_of(pod)
        if uid not in self._addresses:
            told = (pod.get("status") or {}).get("podIP") or ""
            self._addresses[uid] = host or (told if self._could_have(told) else self._free())
            if not host:
                self._held.add(self._addresses[uid])
            self._pods[uid] = pod
            self._change(namespace_of(pod))
        return self._addresses[uid]

    def _could_have(self, address: str) -> bool:
        """A pod's address from before; what ran it then may have been another runtime."""
        return (
            bool(address)
            and address not in self._held
            and (not self._many or self._first <= int(IPv4Address(address)) <= self._last)
        )

    def unseat(self, pod: Json) -> None:
        if self._pods.pop(uid_of(pod), None) is not None:
            self._held.discard(self._addresses.pop(uid_of(pod)))
            self._change(namespace_of(pod))

    def learn_service(self, service: Json) -> None:
        self._services[uid_of(service)] = service
        if has_links(service):
            self._linked[uid_of(service)] = service
        self._change(namespace_of(service))

    def forget_service(self, service: Json) -> None:
        self._linked.pop(uid_of(service), None)
        if self._services.pop(uid_of(service), None) is not None:
            self._change(namespace_of(service))

    def _change(self, namespace: str) -> None:
        self._stale.add(namespace)
        self._resolved.pop(namespace, None)

    def names(self, namespace: str) -> Mapping[str, list[str]]:
        """Every name that can be resolved in a namespace, and its addresses."""
        if namespace not in self._resolved:
            self._resolved[namespace] = self._resolve(namespace)
        return self._resolved[namespace]

    def _resolve(self, namespace: str) -> dict[str, list[str]]:
        pods = [pod for pod in self._pods.values() if namespace_of(pod) == namespace]
        services = [service for service in self._services.values() if namespace_of(service) == namespace]
        return resolve(namespace, pods, services, lambda pod: self._addresses[uid_of(pod)])

    def aliases(self, pod: Json) -> tuple[str, ...]:
        """The names that lead to a pod."""
        own = self._addresses[uid_of(pod)]
        return tuple(sorted(name for name, behind in self.names(namespace_of(pod)).items() if own in behind))

    def links(self, namespace: str) -> dict[str, str]:
        """The namespace's services as variables."""
        services = [service for service in self._linked.values() if namespace_of(service) == namespace]
        if not services:
            return {}
        pods = [pod for pod in self._pods.values() if namespace_of(pod) == namespace]
        return dict(links(services, pods, lambda pod: self._addresses[uid_of(pod)]))

    def folder(self, pod: Json) -> Path:
        """Where the pod's hosts file lies: those that say nothing of their own share one."""
        return (
            self._places.own_names(uid_of(pod))
            if _has_own_file(pod)
            else self._places.names(namespace_of(pod))
        )

    def settle(self) -> None:
        """Writes the hosts files of namespaces in which something changed."""
        for namespace in sorted(self._stale):
            names, host = self.names(namespace), [] if self._whole else _lines_of_the_host()
            write = _write_in_place if self._whole else _write
            write(self._places.names(namespace), render(names, host))
            for pod in self._pods.values():
                if namespace_of(pod) == namespace and _has_own_file(pod):
                    title = HOST_NETWORK_TITLE if pod["spec"].get("hostNetwork") else TITLE
                    aliases = pod["spec"].get("hostAliases") or []
                    write(self.folder(pod), render(names, host, title=title, aliases=aliases))
            self._stale.discard(namespace)

    def _free(self) -> str:
        if not self._many:
            return "127.0.0.1"
        while (address := str(IPv4Address(self._next))) in self._held or address.endswith((".0", ".255")):
            self._advance()
        self._advance()
        return address

    def _advance(self) -> None:
        self._next = self._next + 1 if self._next < self._last else self._first


def resolve(
    namespace: str, pods: Iterable[Json], services: Iterable[Json], address: Callable[[Json], str]
) -> dict[str, list[str]]:
    """Names and addresses as a cluster's DNS would answer within the namespace; a pod's own name always wins. Pure."""
    pods = list(pods)
    labelled = _by_label(pods)
    found: dict[str, list[str]] = {}
    for service in services:
        selector = service["spec"].get("selector") or {}
        candidates = min((labelled.get(item, ()) for item in selector.items()), key=len, default=())
        behind = sorted(address(pod) for pod in candidates if selector.items() <= labels_of(pod).items())
        if behind:
            for name in _spellings(name_of(service), namespace):
                found[name] = behind
    for pod in pods:
        subdomain = pod["spec"].get("subdomain")
        if subdomain:
            for name in _spellings(f"{hostname_of(pod)}.{subdomain}", namespace):
                found[name] = [address(pod)]
        for name in {name_of(pod), hostname_of(pod)}:
            found[name] = [address(pod)]
    return found


def _by_label(pods: Iterable[Json]) -> Mapping[tuple[str, str], Sequence[Json]]:
    """A job has as many services as pods: to look at all pods for each of them would be felt."""
    found: defaultdict[tuple[str, str], list[Json]] = defaultdict(list)
    for pod in pods:
        for label in labels_of(pod).items():
            found[label].append(pod)
    return found


def _spellings(name: str, namespace: str) -> Iterator[str]:
    for suffix in ("", f".{namespace}", f".{namespace}.svc", f".{namespace}.svc.cluster.local"):
        yield name + suffix


def _has_own_file(pod: Json) -> bool:
    return bool(pod["spec"].get("hostAliases") or pod["spec"].get("hostNetwork"))


def _write(folder: Path, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / "hosts.part"
    part.write_text(text, encoding="utf-8")
    part.chmod(0o644)
    part.rename(folder / "hosts")


def _write_in_place(folder: Path, text: str) -> None:
    """For those who see this very file; it is never empty."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "hosts", os.O_WRONLY | os.O_CREAT, 0o644)
    with open(handle, "wb") as file:
        file.write(text.encode())
        file.truncate()


def render(
    names: Mapping[str, list[str]], others: Iterable[str], *, title: str = TITLE, aliases: Iterable[Json] = ()
) -> str:
    """A hosts file: this machine, the namespace's names by address, what the host knows, and the pod's own wishes."""
    by_address: dict[str, list[str]] = {}
    for name, addresses in names.items():
        for address in addresses:
            by_address.setdefault(address, []).append(name)
    lines = [title, "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    for address, known in sorted(by_address.items()):
        lines.append(" ".join([address, *sorted(known, key=lambda name: (name.count("."), name))]))
    lines += others
    if added := ["\t".join([alias["ip"], *(alias.get("hostnames") or [])]) for alias in aliases]:
        lines += ["", "# Entries added by HostAliases.", *added]
    return "\n".join([*lines, ""])


def _lines_of_the_host() -> list[str]:
    try:
        text = HOST_FILE.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def port_is_free(port: int) -> bool:
    """Whether a program could listen there on every address, as most frameworks do."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
        except OSError as problem:
            if problem.errno in NO_SUCH_FAMILY:
                continue
            return False
    return True
