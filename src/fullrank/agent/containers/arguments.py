"""From a `Launch` to the words of an engine's command line. Pure.

No value of a variable is among them: they would be seen by everybody in the list of processes.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fullrank.agent.containers import holder
from fullrank.agent.runtime import Attempt, Launch, Mount

HOME_LABEL, POD_LABEL = "fullrank.dev/home", "fullrank.dev/pod"
NAME = re.compile(r"fullrank-([0-9a-f-]{36})(-.*)?")
LEAST_CPU = 0.01  # engines take no less


@dataclass(frozen=True, slots=True)
class Ways:
    """How containers are made on this machine; what of it works was found out by trying."""

    engine: str  # podman or docker
    tool: tuple[str, ...]  # the program, and what it must be told always
    options: tuple[str, ...] = ()  # of every container
    network: str = ""  # pods' own; without one they have the machine's
    home: str = ""  # whose containers these are


def holder_name(pod_uid: str) -> str:
    return f"fullrank-{pod_uid}"


def container_name(attempt: Attempt) -> str:
    return f"fullrank-{attempt.pod_uid}-{attempt.container}-{attempt.number}"


def pod_of(name: str) -> str:
    """The uid of the pod that a container of ours belongs to."""
    found = NAME.fullmatch(name)
    return found.group(1) if found else ""


def holder_words(
    ways: Ways, pod_uid: str, hostname: str, address: str, aliases: Iterable[str] = ()
) -> list[str]:
    """The pod's network, as long as this container runs: an address, and the names that the engine's DNS knows."""
    place = [f"--network={ways.network}"]
    if address:
        place += [f"--ip={address}", *(f"--network-alias={name}" for name in aliases)]
    return [
        "run", "--detach", f"--name={holder_name(pod_uid)}", *_labels(ways, pod_uid), "--pull=never",
        *place, f"--hostname={hostname}", "--ipc=shareable",
        "--stop-signal=KILL", "--log-driver=none", *ways.options, holder.NAME,
    ]  # fmt: skip


def container_words(ways: Ways, launch: Launch, variables: Path) -> list[str]:
    """A container that is not started yet. `variables` is a file of those that fit in one (see `split`)."""
    first, *rest = launch.argv
    return [
        "create", f"--name={container_name(launch.attempt)}", *_labels(ways, launch.attempt.pod_uid), "--pull=never",
        *_log(ways, launch), f"--env-file={variables}",
        *(f"--env={name}" for name in split(launch.env)[1]), *_place(ways, launch), *_identity(launch),
        *_limits(launch), *_powers(launch), *_devices(ways, launch), *_mounts(launch),
        *_root(ways, launch), f"--workdir={launch.working_dir}", *ways.options,
        f"--entrypoint={first}", launch.image, *rest,
    ]  # fmt: skip


def split(variables: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The text of a file of variables, and those that cannot be in one because they have several lines."""
    long = {name: value for name, value in variables.items() if "\n" in value or "\r" in value}
    return "".join(f"{name}={value}\n" for name, value in variables.items() if name not in long), long


def _log(ways: Ways, launch: Launch) -> Iterator[str]:
    """Podman writes the kept log itself: what it is asked for while a container writes much, it tells with gaps."""
    if ways.engine == "docker":
        yield "--log-driver=json-file"
    else:
        yield from ("--log-driver=k8s-file", f"--log-opt=path={launch.log}")


def _labels(ways: Ways, pod_uid: str) -> tuple[str, ...]:
    return f"--label={HOME_LABEL}={ways.home}", f"--label={POD_LABEL}={pod_uid}"


def _place(ways: Ways, launch: Launch) -> Iterator[str]:
    if ways.network and launch.address:
        held = f"container:{holder_name(launch.attempt.pod_uid)}"
        yield from (f"--network={held}", f"--ipc={held}")
        if ways.engine == "docker":
            return  # there a container that joins another's network has its name as well
    else:
        yield "--network=host"
    yield f"--hostname={launch.hostname}"


def _identity(launch: Launch) -> Iterator[str]:
    if launch.user is not None or launch.group is not None:
        group = "" if launch.group is None else f":{launch.group}"
        yield f"--user={launch.user or 0}{group}"
    for further in launch.groups:
        yield f"--group-add={further}"


def _limits(launch: Launch) -> Iterator[str]:
    limits = launch.limits
    if limits.memory is not None:
        yield from (f"--memory={limits.memory}b", f"--memory-swap={limits.memory}b")
    if limits.cpu is not None:
        yield f"--cpus={max(limits.cpu, LEAST_CPU):g}"


def _powers(launch: Launch) -> Iterator[str]:
    powers = launch.powers
    if powers.all:
        yield "--privileged"
    if not powers.grow:
        yield "--security-opt=no-new-privileges"
    yield from (f"--cap-drop={name}" for name in powers.dropped)
    yield from (f"--cap-add={name}" for name in powers.added)


def _devices(ways: Ways, launch: Launch) -> Iterator[str]:
    if not launch.devices:
        return
    if ways.engine == "docker":
        yield f'--gpus="device={",".join(launch.devices)}"'
    else:
        yield from (f"--device=nvidia.com/gpu={name}" for name in launch.devices)


def _mounts(launch: Launch) -> Iterator[str]:
    """Outer folders before what is mounted in them."""
    names = [Mount(launch.names / "hosts", "/etc/hosts")] if launch.names else []
    for mount in sorted((*launch.mounts, *names), key=lambda mount: mount.target):
        fields = [
            "type=bind",
            f"source={mount.source}",
            f"target={mount.target}",
            *(["readonly"] if mount.read_only else []),
        ]
        yield f"--mount={','.join(_quoted(field) for field in fields)}"


def _quoted(field: str) -> str:
    """As a field of comma-separated values, which engines take mounts for."""
    return '"' + field.replace('"', '""') + '"' if {",", '"'} & {*field} else field


def _root(ways: Ways, launch: Launch) -> Iterator[str]:
    if launch.read_only:
        yield "--read-only"
        if ways.engine == "podman":
            yield "--read-only-tmpfs=false"
