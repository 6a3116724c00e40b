"""GPUs of this machine: what there is, what the node offers of it, and what a container sees.

Whole cards are told apart by the driver's own names for them, so that `CUDA_VISIBLE_DEVICES` means the same card
whatever the order. Pretended ones (`--gpus fake:4`) let GPU manifests be tried: they are handed out like real ones,
and their containers see no GPU at all.
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from fullrank.api.annotations import DEVICES
from fullrank.api.devices import devices_of, written_cards
from fullrank.api.meta import Json
from fullrank.api.quantity import Quantity, whole

GPU, SHARED = "nvidia.com/gpu", "nvidia.com/vgpu"
SHARED_MEMORY, SHARED_CORES = "nvidia.com/gpumem", "nvidia.com/gpucores"
FAKE = "fake-"
FAKE_MEMORY = 81920  # megabytes: no manifest asks for more of one card
PATIENCE = 10.0  # seconds the driver has to answer


def gpus_of(choice: str, devices: Path = Path("/dev")) -> dict[str, int]:
    """The cards that the node is to offer, each with its megabytes: found (`auto`), pretended (`fake:N`) or none."""
    if choice.startswith("fake:"):
        return {f"{FAKE}{index}": FAKE_MEMORY for index in range(int(choice.removeprefix("fake:")))}
    return _found(devices) if choice == "auto" else {}


def resources_of(cards: Mapping[str, int]) -> dict[str, str]:
    """What the node says it has."""
    if not cards:
        return {}
    return {
        GPU: str(len(cards)),
        SHARED: str(len(cards)),
        SHARED_MEMORY: str(sum(cards.values())),
        SHARED_CORES: str(100 * len(cards)),
    }


def annotations_for(cards: Mapping[str, int]) -> dict[str, str]:
    return {DEVICES: written_cards(cards)}


def _found(devices: Path) -> dict[str, int]:
    if program := shutil.which("nvidia-smi"):
        words = [program, "--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits"]
        try:
            answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
            return parsed(answer.stdout)
        except (OSError, subprocess.SubprocessError):
            pass  # a driver that does not answer: what the kernel shows must do
    numbers = (path.name.removeprefix("nvidia") for path in devices.glob("nvidia*"))
    return dict.fromkeys(sorted(filter(str.isdecimal, numbers), key=int), 0)


def parsed(answer: str) -> dict[str, int]:
    """`GPU-5c3e…, 81559` for each card; a card that will not say how much memory it has is counted without."""
    cards = {}
    for line in answer.splitlines():
        name, _, memory = (part.strip() for part in line.partition(","))
        if name:
            cards[name] = int(memory) if memory.isdecimal() else 0
    return cards


def device_variables(pod: Json, container: Json) -> dict[str, str]:
    """What a container is to see of the GPUs: those it was given and no others, also when it asked for none."""
    mine = _share_of(pod, container)
    seen = ",".join(real_devices(pod, container))
    variables = {"CUDA_VISIBLE_DEVICES": seen, "NVIDIA_VISIBLE_DEVICES": seen or "void"}
    limits = _asked(container)
    if seen and (memory := whole(limits.get(SHARED_MEMORY, 0))):
        shared = range(whole(limits.get(GPU, 0)), len(mine))
        variables |= {f"CUDA_DEVICE_MEMORY_LIMIT_{index}": f"{memory}m" for index in shared}
    if seen and (cores := whole(limits.get(SHARED_CORES, 0))):
        variables["CUDA_DEVICE_SM_LIMIT"] = str(cores)
    return variables


def real_devices(pod: Json, container: Json) -> tuple[str, ...]:
    """The cards a container was given, without pretended ones."""
    return tuple(name for name in _share_of(pod, container) if not name.startswith(FAKE))


def _share_of(pod: Json, container: Json) -> list[str]:
    """The pod's devices are whole ones first, then shared ones; containers take theirs in their order."""
    spec: Json = pod["spec"]
    names, containers = list(devices_of(pod)), list(spec["containers"])
    if container["name"] not in (one["name"] for one in containers):
        # Init containers run before the others and one at a time: each may have whatever it asked for.
        containers = [container]
    wanted = [(one["name"], _asked(one)) for one in containers]
    mine = []
    for resource in (GPU, SHARED):
        for name, asked in wanted:
            count = whole(asked.get(resource, 0))
            taken, names = names[:count], names[count:]
            mine += taken if name == container["name"] else []
    return mine


def _asked(container: Json) -> Mapping[str, Quantity]:
    resources: Json = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
