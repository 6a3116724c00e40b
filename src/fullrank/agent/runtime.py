"""The seam to whatever runs containers: processes of this machine, or a container engine.

One *attempt* is one run of one container of one pod. Attempts outlive the agent: after a crash the next agent finds
them on disk, and `start` of an attempt that was ever started does not start it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol


class Attempt(NamedTuple):
    pod_uid: str
    container: str
    number: int


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine, and where the container sees it."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    memory: int | None = None  # bytes
    cpu: float | None = None  # cores


@dataclass(frozen=True, slots=True)
class Usage:
    cpu_seconds: float  # since the container began
    memory: int  # bytes, without what the kernel could drop at once


@dataclass(frozen=True, slots=True)
class Powers:
    """What a container's programs may do, where an engine can say so: capabilities by their names in manifests."""

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    all: bool = False  # privileged
    grow: bool = True  # a program may gain more than its parent has


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything one attempt needs, resolved: no manifest and no API is looked at after this."""

    attempt: Attempt
    argv: tuple[str, ...]
    env: Mapping[str, str]
    log: Path
    hostname: str
    working_dir: str = "/"
    user: int | None = None
    group: int | None = None
    groups: tuple[int, ...] = ()  # further ones
    read_only: bool = False  # but for its volumes
    limits: Limits = Limits()
    mounts: tuple[Mount, ...] = ()
    folders: tuple[Path, ...] = ()  # of this machine, seen where they are by whomever the program runs as
    identity: frozenset[str] = frozenset(
        {"HOSTNAME"}
    )  # variables that say who the pod is, not how to reach it
    names: Path | None = None  # a folder with a `hosts` file that follows the namespace's services
    addresses: Mapping[str, str] = field(
        default_factory=dict
    )  # names → addresses, where names cannot be resolved
    image: str = ""  # an engine's id of it
    address: str = ""  # the pod's own; without one it has the machine's
    aliases: tuple[str, ...] = ()  # the names that lead to this address
    stop_signal: str = ""  # the image's wish
    powers: Powers = Powers()
    devices: tuple[str, ...] = ()  # GPUs


@dataclass(frozen=True, slots=True)
class Exit:
    """How an attempt ended; `code` is 128+n for a signal, as shells and kubelets say it."""

    code: int
    started_at: datetime
    finished_at: datetime
    reason: str = (
        ""  # "" = by the code: Completed or Error; else e.g. OOMKilled, StartError, ContainerStatusUnknown
    )
    message: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that was started, and how it ended if it has."""

    attempt: Attempt
    started_at: datetime
    exit: Exit | None = None
    engine: str = "process"  # what ran it


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of a further program in a container: its code and, if it could not be run, why."""

    code: int
    message: str = ""


class Runtime(Protocol):
    @property
    def engine(self) -> str:
        """What runs containers, as in their ids: `process`, `podman`, `docker`."""

    async def start(self, launch: Launch) -> datetime:
        """Starts the attempt unless it ever was; tells when it began. Failing to start is an Exit, not an exception."""

    async def wait(self, attempt: Attempt) -> Exit:
        """Returns when the attempt has ended, however long ago."""

    async def stop(self, attempt: Attempt, grace: float) -> None:
        """SIGTERM, then after `grace` seconds SIGKILL, to everything the attempt started. Returns when it is over."""

    async def runs(self, pod_uid: str) -> tuple[Run, ...]:
        """What was ever started for a pod, oldest first."""

    def pods(self) -> tuple[str, ...]:
        """The uids of all pods of which something is kept."""

    async def forget(self, pod_uid: str) -> None:
        """Drops what is kept of a pod whose attempts have all ended (its logs stay)."""

    async def execute(
        self, attempt: Attempt, argv: Sequence[str], streams: tuple[int, int, int]
    ) -> Execution:
        """Runs a further program in a running container, on these open files; they are closed once it has them.

        Cancelled, it hangs up on the program.
        """

    def usage(self, attempt: Attempt) -> Usage | None:
        """What a running attempt uses now, where that is known."""

    def unenforced(self, limits: Limits, /) -> str:
        """Which of these limits this machine does not keep, and what is done instead, in a sentence; empty if none."""

    async def shortcomings(self) -> str:
        """What this machine keeps the runtime from giving to containers, in a sentence; empty if nothing."""
