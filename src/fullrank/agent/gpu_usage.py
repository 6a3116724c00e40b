"""What the machine's GPUs are doing, as the driver tells it. Of a card that several share, each is shown all of it."""

import shutil
import subprocess
from dataclasses import dataclass

PATIENCE = 5.0  # seconds the driver has to answer


@dataclass(frozen=True, slots=True)
class CardUsage:
    busy: float  # of the last moments, the part in which something ran: 0 to 1
    memory: int  # bytes


def card_usage() -> dict[str, CardUsage]:
    """Every card by its name; nothing where there is no driver, or it does not answer."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return {}
    words = [program, "--query-gpu=uuid,utilization.gpu,memory.used", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    return parsed_usage(answer.stdout)


def parsed_usage(answer: str) -> dict[str, CardUsage]:
    """`GPU-5c3e…, 87, 1024` for each card, in per cent and mebibytes; what a card will not say counts as none."""
    found = {}
    for line in answer.splitlines():
        name, *numbers = (part.strip() for part in line.split(","))
        if name and len(numbers) == 2:
            busy, memory = (int(number) if number.isdecimal() else 0 for number in numbers)
            found[name] = CardUsage(busy / 100, memory << 20)
    return found
