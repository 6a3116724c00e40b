"""Which build of PyTorch a machine gets: PyPI's for Linux brings gigabytes of CUDA, of no use where there is no GPU."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

TORCH = re.compile(r"torch\s*(?:\[[^]]*])?\s*(?P<rest>[^A-Za-z0-9._-].*)?$", re.IGNORECASE)
PIN = re.compile(r"={2,3}\s*(?P<version>[^\s;,*]+)")
CPU_WHEEL = re.compile(
    r"torch-(?P<version>[0-9.]+\+cpu)-(?P<python>cp[0-9]+)-(?P<abi>cp[0-9]+)-(?P<platform>.+)\.whl",
    re.IGNORECASE,
)


def asks_for_a_build(requirements: Iterable[str]) -> bool:
    """Whether somebody names the build of PyTorch: a local version such as +cu130, or an address."""
    rests = (found["rest"] or "" for line in requirements if (found := TORCH.match(line.strip())))
    return any("+" in rest.partition(";")[0] or "@" in rest for rest in rests)


def pinned_version(requirements: Iterable[str]) -> str:
    for line in requirements:
        if (found := TORCH.match(line.strip())) and (pin := PIN.match((found["rest"] or "").strip())):
            return pin["version"]
    return ""


def cpu_wheel_version(requirements: Sequence[str], wheels: Iterable[str], python: str, machine: str) -> str:
    """The version of the CPU wheel to take among those at hand, or nothing when none fits."""
    tag = f"cp{python.replace('.', '')}"
    versions = [
        wheel["version"]
        for name in wheels
        if (wheel := CPU_WHEEL.fullmatch(name))
        and wheel["python"] == wheel["abi"] == tag
        and machine in wheel["platform"]
    ]
    pin = pinned_version(requirements)
    fitting = [version for version in versions if not pin or version.partition("+")[0] == pin]
    return max(fitting, key=_in_order, default="")


def has_nvidia_gpu(root: Path = Path("/")) -> bool:
    """The driver's own traces: on a plain machine, in a container, under WSL."""
    return any(
        (root / trace).exists() for trace in ("proc/driver/nvidia/version", "dev/nvidiactl", "dev/dxg")
    )


def _in_order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("+")[0].split(".") if part)
