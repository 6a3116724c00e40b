"""A further program in a container that already runs (`kubectl exec`): the same namespaces, environment and user."""

import fcntl
import json
import os
import select
import signal
import termios
from typing import Any, NoReturn

from . import kernel
from .parent import become_user, enter_control_groups, execute, waking_pipe

JOINED = {"root": ("ipc", "uts", "pid", "mnt"), "user": ("user", "ipc", "uts", "pid", "mnt"), "none": ()}


def visit(folder: str, argv: list[str], streams: list[int], result: int, level: str) -> NoReturn:
    """Runs the program to its end, in a process forked for it alone, and writes what came of it to `result`."""
    try:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        os.setsid()
        os.write(result, json.dumps(_run(folder, argv, streams, result, level)).encode())
    except OSError as problem:
        os.write(result, json.dumps({"code": 126, "message": str(problem)}).encode())
    finally:
        os._exit(0)


def _run(folder: str, argv: list[str], streams: list[int], result: int, level: str) -> dict[str, object]:
    if os.path.exists(f"{folder}/exit.json"):
        return {"code": 126, "message": "the container does not run any more"}
    with open(f"{folder}/launch.json", encoding="utf-8") as file:
        launch = json.load(file)
    with open(f"{folder}/started.json", encoding="utf-8") as file:
        host = json.load(file)["container"]
    enter_control_groups(launch["control_groups"])
    # All are opened before the first is entered: in another mount namespace there may be no such path.
    doors = [os.open(f"/proc/{host}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in JOINED[level]]
    for door in doors:
        kernel.join(door)
    woken, waker = waking_pipe()
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    report, reporter = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            _become(launch, argv, streams, reporter, level)
        except OSError as problem:
            os.write(reporter, str(problem).encode())
        finally:
            os._exit(127)
    os.close(reporter)
    for stream in streams:
        os.close(stream)
    message = b""
    while piece := os.read(report, 4096):
        message += piece
    code = _await(child, woken, result)
    return {"code": 128 - code if code < 0 else code, "message": message.decode(errors="replace")}


def _become(launch: dict[str, Any], argv: list[str], streams: list[int], reporter: int, level: str) -> None:
    os.setsid()
    signal.set_wakeup_fd(-1)
    env = launch["env"]
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    if os.isatty(0):
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        env = {"TERM": "xterm", **env}
    os.chdir(launch["working_dir"])
    if level != "user" and os.getuid() == 0:
        become_user(launch["user"], launch["group"], launch["groups"])
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    execute(argv, env, reporter)


def _await(child: int, woken: int, result: int) -> int:
    """The program's end; should whoever asked for it be gone before, it is told as by a terminal that hangs up."""
    poll = select.poll()
    poll.register(woken, select.POLLIN)
    poll.register(result, 0)
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status)
        for source, _ in poll.poll():
            if source == result:
                os.killpg(child, signal.SIGHUP)
                poll.unregister(result)
            else:
                os.read(woken, 64)
