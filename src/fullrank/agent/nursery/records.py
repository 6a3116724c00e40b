"""What parents leave on disk of an attempt."""

import json
import os
import time
from typing import Any

NOT_STARTED = 128


def not_started(why: str) -> dict[str, Any]:
    return {
        "code": NOT_STARTED,
        "startedAt": 0,
        "finishedAt": time.time_ns(),
        "reason": "StartError",
        "message": why,
    }


def record(folder: str, name: str, content: dict[str, Any]) -> None:
    """Writes a record in one rename. On a full disk it is tried until it succeeds: nobody else knows what it says."""
    while True:
        try:
            with open(f"{folder}/{name}.part", "w", encoding="utf-8") as file:
                json.dump(content, file)
            os.rename(f"{folder}/{name}.part", f"{folder}/{name}")
        except FileNotFoundError:
            return  # the folder is gone: nobody wants to know
        except OSError:
            time.sleep(1)
        else:
            return
