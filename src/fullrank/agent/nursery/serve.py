"""The nursery's own loop: one request, one fork."""

import _socket
import array
import gc
import json
import os
import signal
import sys
from typing import NoReturn

from . import kernel, roots
from .keeper import keep
from .parent import FURNISH, enter_pids, tend
from .visitor import visit

LONGEST_REQUEST = 1 << 17


def serve(home: str, levels: list[str]) -> NoReturn:
    """Tells which isolation this machine allows, then takes requests from standard input until it is closed."""
    gate = _socket.socket(fileno=0)
    level = find_isolation(f"{home}/pods/.rehearsal", levels)
    gate.send(f"{level}\n".encode())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # parents are never waited for: the kernel reaps them
    kernel.adopt_orphans()
    gc.disable()
    gc.freeze()  # a collection in a parent would copy every page that it now shares with us
    while True:
        request, ancillary, _, _ = gate.recvmsg(LONGEST_REQUEST, _socket.CMSG_SPACE(4 * 4))
        if not request:
            os._exit(0)
        ends = array.array("i")
        for _, _, packed in ancillary:
            ends.frombytes(packed)
        if os.fork() == 0:
            gate.close()
            for stream in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC), stream)
            for end in ends:
                os.set_inheritable(end, False)
            asked = json.loads(request)
            if "argv" in asked:
                visit(asked["folder"], asked["argv"], list(ends[:3]), ends[3], level)
            if asked["kind"] == "container":
                keep(asked["folder"], ends[0])
            tend(asked["folder"], ends[0], level)
        for end in ends:
            os.close(end)


def find_isolation(stage: str, levels: list[str]) -> str:
    """The first of these levels that this machine allows, by a rehearsal of each; else `none`."""
    if sys.platform != "linux":
        return "none"
    return next((level for level in levels if _rehearse(level, stage)), "none")


def _rehearse(level: str, stage: str) -> bool:
    verdict, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.makedirs(stage, exist_ok=True)
            enter_pids(level)
            mounts = [[stage, "/fullrank/rehearsal", False]]
            launch = {
                "mounts": mounts,
                "names": stage,
                "hostname": "rehearsal",
                "user": None,
                "folders": [],
                "read_only": False,
            }
            roots.move_in(launch, stage, FURNISH[level])
            os.write(told, b"y")
        except OSError:
            os._exit(1)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(told)
    works = os.read(verdict, 1) == b"y"
    os.close(verdict)
    return works


def main() -> NoReturn:
    serve(sys.argv[1], sys.argv[2:])
