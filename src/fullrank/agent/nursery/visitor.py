"""A further program in a container that already runs (`kubectl exec`): the same namespaces, environment and user."""

import fcntl
import json
import os
import signal
import termios
from typing import NoReturn

from . import kernel
from .parent import become_user, execute

JOINED = {"root": ("ipc", "uts", "pid", "mnt"), "user": ("user", "ipc", "uts", "pid", "mnt"), "none": ()}


def visit(folder: str, argv: list[str], streams: list[int], result: int, level: str) -> NoReturn:
    """Runs the program to its end, in a process forked for it alone, and writes what came of it to `result`."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.write(result, json.dumps(_run(folder, argv, streams, level)).encode())
    except OSError as problem:
        os.write(result, json.dumps({"code": 126, "message": str(problem)}).encode())
    finally:
        os._exit(0)


def _run(folder: str, argv: list[str], streams: list[int], level: str) -> dict[str, object]:
    with open(f"{folder}/launch.json", encoding="utf-8") as file:
        launch = json.load(file)
    with open(f"{folder}/started.json", encoding="utf-8") as file:
        host = json.load(file)["container"]
    # All are opened before the first is entered: in another mount namespace there may be no such path.
    doors = [os.open(f"/proc/{host}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in JOINED[level]]
    for door in doors:
        kernel.join(door)
    report, reporter = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            for number, stream in enumerate(streams):
                os.dup2(stream, number)
            if os.isatty(0):
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            os.chdir(launch["working_dir"])
            if level != "user" and os.getuid() == 0:
                become_user(launch["user"], launch["group"])
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            execute(argv, launch["env"], reporter)
        finally:
            os._exit(127)
    os.close(reporter)
    for stream in streams:
        os.close(stream)
    message = b""
    while piece := os.read(report, 4096):
        message += piece
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {"code": 128 - code if code < 0 else code, "message": message.decode(errors="replace")}
