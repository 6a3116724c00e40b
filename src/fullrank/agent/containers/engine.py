"""An engine's command line on this machine: found, tried out, and asked."""

import json
import logging
import os
import resource
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path
from subprocess import DEVNULL

import anyio
import psutil

from fullrank.agent.containers import holder
from fullrank.agent.containers.arguments import Ways, holder_name, holder_words
from fullrank.errors import Unavailable

logger = logging.getLogger(__name__)

INSTALL = {
    "podman": "install it (`apt-get install podman`, https://podman.io)",
    "docker": "install it and start its daemon (https://docs.docker.com/engine/install)",
}
PODMAN_RUNTIMES = ("crun", "runc")
NETWORKS = tuple(IPv4Network("10.224.0.0/12").subnets(new_prefix=20))
TRIAL = "0000-0000-0000-000000000000"  # with the home before it like a pod's uid, and none's
USUAL = ("--security-opt=label=disable", "--pids-limit=-1")
LAST_LINES = 5


@dataclass(frozen=True, slots=True)
class Answer:
    code: int
    text: str
    complaint: str

    @property
    def end(self) -> str:
        """The last lines of what went wrong."""
        return "\n".join((self.complaint or self.text).strip().splitlines()[-LAST_LINES:])

    def says(self, *words: str) -> bool:
        return any(word in self.complaint.lower() for word in words)


class Engine:
    """Podman or Docker. `open` finds out how it works here; before that it can only be asked."""

    def __init__(self, name: str, home: Path, environ: Mapping[str, str]) -> None:
        program = shutil.which(name, path=environ.get("PATH"))
        if program is None:
            raise Unavailable(
                f"{name} is not on this machine: {INSTALL[name]}, "
                f"or leave out --runtime {name} to run pods as processes"
            )
        self.environ = dict(environ)
        self.subnet: IPv4Network | None = None
        self.why_no_network = ""
        self._memory = home / "containers.json"
        self.ways = Ways(name, (program,), home=sha256(str(home).encode()).hexdigest()[:8])

    async def open(self) -> None:
        """Makes what all pods need, and tries how a container can be run; Unavailable has the engine's words."""
        await self._make_holder()
        network = f"fullrank-{self.ways.home}"
        self.subnet, self.why_no_network = await self._make_network(network)
        if self.subnet is not None:
            why = await self._find_way(replace(self.ways, network=network), str(self.subnet[-2]))
            if not why:
                return
            self.subnet, self.why_no_network = None, why
        if why := await self._find_way(replace(self.ways, network="host"), ""):
            raise Unavailable(f"{self.ways.engine} runs no container on this machine: {why}")
        self.ways = replace(self.ways, network="")

    async def close(self) -> None:
        """The network goes with the last pod: a later server makes it again."""
        if self.ways.network:
            await self.ask("network", "rm", self.ways.network)

    async def ask(
        self, *words: str, stdin: bytes | None = None, variables: Mapping[str, str] | None = None
    ) -> Answer:
        """Runs a command to its end, however long that takes; cancelled, it ends the command."""
        done = await anyio.run_process(
            [*self.ways.tool, *words],
            input=stdin,
            stdin=DEVNULL if stdin is None else None,
            check=False,
            env={**(variables or {}), **self.environ},
        )
        return Answer(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    async def _make_holder(self) -> None:
        if (await self.ask("image", "inspect", holder.NAME)).code == 0:
            return
        if not holder.can_be_made():
            raise Unavailable(f"pods of {self.ways.engine} cannot be held open on a {os.uname().machine}")
        change = f'ENTRYPOINT ["{holder.PROGRAM}"]'
        made = await self.ask("import", "--change", change, "-", holder.NAME, stdin=holder.archive())
        if made.code != 0:
            raise Unavailable(f"{self.ways.engine} does not answer as it should: {made.end}")

    async def _make_network(self, name: str) -> tuple[IPv4Network | None, str]:
        """The subnet of the pods' network, made if it is not there; or why there is none."""
        for words in (
            ("network", "inspect", "--format", "{{range .IPAM.Config}}{{.Subnet}}{{end}}", name),
            ("network", "inspect", "--format", "{{range .Subnets}}{{.Subnet}}{{end}}", name),
        ):
            found = await self.ask(*words)
            if found.code == 0:
                return IPv4Network(found.text.strip()), ""
        why = "no subnet is free"
        for subnet in free_subnets(list(_taken())):
            made = await self.ask("network", "create", "--driver=bridge", f"--subnet={subnet}", name)
            if made.code == 0:
                return subnet, ""
            why = made.end
            if not made.says("overlap", "already used", "in use"):
                break
        return None, why

    async def _find_way(self, ways: Ways, address: str) -> str:
        """Takes the first way in which a container runs; why the last one failed if there is none."""
        why, known, trial = "", self._remembered(ways), f"{ways.home}-{TRIAL}"
        for way in (*known, *candidates(ways, self.environ)):
            self.ways = way
            words = holder_words(way, trial, "trial", address)
            await self.ask("rm", "--force", holder_name(trial))
            tried = await self.ask(*words)
            await self.ask("rm", "--force", holder_name(trial))
            if tried.code == 0:
                logger.info("containers are run by `%s` with %s", " ".join(way.tool), " ".join(way.options))
                self._memory.write_text(json.dumps({"tool": way.tool, "options": way.options}))
                return ""
            why = tried.end
        self.ways = ways
        return why

    def _remembered(self, ways: Ways) -> list[Ways]:
        """What worked the last time is tried first."""
        try:
            found = json.loads(self._memory.read_text())
            tool, options = tuple(found["tool"]), tuple(found["options"])
        except (OSError, ValueError, KeyError):
            return []
        return [replace(ways, tool=tool, options=options)] if tool[:1] == ways.tool[:1] else []


def candidates(ways: Ways, environ: Mapping[str, str]) -> Iterator[Ways]:
    """What is tried, the plainest first: another low-level runtime, limits of open files that are not above our own."""
    tools = [ways.tool]
    if ways.engine == "podman":
        found = (shutil.which(name, path=environ.get("PATH")) for name in PODMAN_RUNTIMES)
        tools += [(*ways.tool, "--runtime", name) for name in found if name]
    for tool in tools:
        yield replace(ways, tool=tool, options=USUAL)
        yield replace(ways, tool=tool, options=(*USUAL, *_own_limits()))


def free_subnets(taken: list[IPv4Network]) -> Iterator[IPv4Network]:
    return (subnet for subnet in NETWORKS if not any(subnet.overlaps(other) for other in taken))


def _own_limits() -> Iterator[str]:
    """What we may have, containers may have; an engine never lets them have more processes than there are numbers."""
    _, files = resource.getrlimit(resource.RLIMIT_NOFILE)
    _, processes = resource.getrlimit(resource.RLIMIT_NPROC)
    with suppress(OSError):
        most = int(Path("/proc/sys/kernel/pid_max").read_text())
        processes = most if processes == resource.RLIM_INFINITY else min(processes, most)
    yield from (f"--ulimit=nofile={files}:{files}", f"--ulimit=nproc={processes}:{processes}")


def _taken() -> Iterator[IPv4Network]:
    for addresses in psutil.net_if_addrs().values():
        for one in addresses:
            if one.family.name == "AF_INET" and one.netmask:
                yield IPv4Interface(f"{one.address}/{one.netmask}").network
