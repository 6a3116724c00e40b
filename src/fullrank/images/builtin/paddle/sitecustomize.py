"""What every Python program in this image begins with.

Paddle's launcher takes `run_check` for a test of two nodes at least, and a single node waits for the second for ever.
Here, a single node checks itself: the launcher gets a script that does so.
"""

import os
import sys
from pathlib import Path

LAUNCHER = ["-m", "paddle.distributed.launch"]


def _checks_one_node(words):
    is_check = words[:2] == LAUNCHER and words[-1] == "run_check"
    return is_check and os.environ.get("PADDLE_NNODES", "1") == "1" and not any(word.startswith("--nnodes") for word in words)


if _checks_one_node(sys.orig_argv[1:]):
    check = Path(__file__).with_name("run_check.py")
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:-1], str(check)])

# This Paddle knows no GPUs, but its launcher takes them for given where this is set, be it to nothing.
os.environ.pop("CUDA_VISIBLE_DEVICES", None)

# A launcher opens the meeting point only where it finds its own address, which a host's name need not lead to.
if "POD_IP_DUMMY" in os.environ:
    os.environ.setdefault("POD_IP", os.environ["POD_IP_DUMMY"])
