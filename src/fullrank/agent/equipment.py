"""What a node runs its pods with: a runtime, the images it understands, and the network that pods then have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from fullrank.agent.containers.engine import Engine
from fullrank.agent.containers.images import ContainerImages
from fullrank.agent.containers.runtime import ContainerRuntime
from fullrank.agent.network import Network
from fullrank.agent.places import Places
from fullrank.agent.processes import ProcessRuntime
from fullrank.agent.supervisor import ImageSource
from fullrank.clock import Clock
from fullrank.images.catalogue import Images


@dataclass(frozen=True, slots=True)
class Equipment:
    """Whole once the runtime is open: only then is it known what the machine allows."""

    runtime: ProcessRuntime | ContainerRuntime
    images: ImageSource
    network: Callable[[], Network]
    gateway: Callable[
        [], str
    ]  # the address at which pods on a network of their own find this machine; else ""


def equipment(
    choice: str, home: Path, clock: Clock, *, environ: Mapping[str, str], strict: bool
) -> Equipment:
    """`podman` or `docker`, or else processes; Unavailable if there is no such program here."""
    if choice not in ("podman", "docker"):
        return Equipment(
            ProcessRuntime(home, clock),
            Images(home, environ=environ, strict=strict),
            lambda: Network(Places(home), start=crc32(bytes(home.resolve()))),
            lambda: "",
        )
    engine = Engine(choice, home, environ)
    return Equipment(
        ContainerRuntime(home, clock, engine),
        ContainerImages(engine),
        lambda: Network(Places(home), subnet=engine.subnet, whole=True),
        lambda: str(engine.subnet[1]) if engine.subnet else "",
    )
