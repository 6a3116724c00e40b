"""The parent of one attempt: it starts the container's program, keeps what it writes, and records how it ended.

In a PID namespace the parent is process 1: it reaps whatever is orphaned, and should it die, the kernel kills the rest.
The container's program is its child and not process 1 itself, so that a SIGTERM ends programs that have no handler.
"""

import errno
import json
import os
import select
import signal
import time
from contextlib import suppress
from typing import Any, NoReturn

from . import kernel, roots
from .container_log import ContainerLog
from .memory import MemoryWatch
from .records import NOT_STARTED, not_started, record

NEVER = float("inf")
LINGER = 2.0  # seconds for pipes that something out of our reach still holds, after the container's end

FURNISH = {"root": roots.overlays, "user": roots.binds}


def tend(folder: str, alive: int, level: str) -> NoReturn:
    """Runs the attempt of this folder from beginning to end, in a process forked for it alone."""
    status = 1
    try:
        os.setsid()
        os.umask(0o077)
        with open(f"{folder}/launch.json", encoding="utf-8") as file:
            launch = json.load(file)
        if not os.path.exists(f"{folder}/started.json"):
            if level != "none":
                enter_pids(level, launch["user"], launch["group"])
            _run(folder, alive, level, launch)
        status = 0
    except OSError as problem:
        if os.path.exists(f"{folder}/started.json"):
            raise
        record(folder, "exit.json", not_started(f"failed to create container: {problem}"))
    finally:
        os._exit(status)  # whatever happened: never back into the nursery's loop


def enter_pids(level: str, user: int | None = None, group: int | None = None) -> None:
    """Goes on as process 1 of a PID namespace, and of a user namespace where that takes one."""
    if level == "user":
        uid, gid = os.getuid(), os.getgid()
        kernel.unshare(kernel.NEW_USERS | kernel.NEW_PIDS)
        for name, text in {
            "setgroups": "deny",
            "uid_map": f"{uid if user is None else user} {uid} 1",
            "gid_map": f"{gid if group is None else group} {gid} 1",
        }.items():
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    else:
        kernel.unshare(kernel.NEW_PIDS)
    if os.fork():
        os._exit(0)


def _run(folder: str, alive: int, level: str, launch: dict[str, Any]) -> None:
    control = os.open(f"{folder}/control", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    woken, waker = waking_pipe()
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    log = ContainerLog(launch["log"])
    if level == "none":
        kernel.adopt_orphans()
    began = time.time_ns()
    container, report, gate, outputs = _fork_container(folder, level, launch)
    host_pid = int(os.read(report, 16) or 0)
    record(folder, "started.json", {"startedAt": began, "parent": _host_pid(), "container": host_pid})
    os.write(gate, b"s")
    complaint = _read_all(report)
    if complaint:
        os.waitpid(container, 0)
        log.close()
        record(folder, "exit.json", not_started(complaint.decode(errors="replace")))
        return
    with suppress(
        BrokenPipeError
    ):  # nobody listens: the server is gone, and the next one reads what is on disk
        os.write(alive, b"s")
    watch = MemoryWatch(launch.get("watched_memory"), _host_pid())
    code, finished = _keep(container, host_pid, control, woken, outputs, log, watch, alone=level != "none")
    log.finish()
    starved = watch.has_been_exceeded or _ran_out_of_memory(launch["out_of_memory"])
    reason = "OOMKilled" if code and starved else ""
    record(
        folder,
        "exit.json",
        {"code": code, "startedAt": began, "finishedAt": finished, "reason": reason, "message": ""},
    )
    log.close()  # there is room on the disk now, if there was none before: also to say what was lost
    _remove_control_groups(launch["control_groups"])


def waking_pipe() -> tuple[int, int]:
    """Where signals are heard of; without `pipe2`, which not every system has."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends


def _ran_out_of_memory(records: list[str]) -> bool:
    for file_name in records:
        with suppress(OSError), open(file_name, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
            if int(counts.get("oom_kill", 0)):
                return True
    return False


def enter_control_groups(folders: list[str]) -> None:
    for folder in folders:
        with suppress(OSError), open(f"{folder}/cgroup.procs", "w", encoding="ascii") as file:
            file.write("0")


def _remove_control_groups(folders: list[str]) -> None:
    """Ours, and those above it that were made for it, unless others are in them."""
    for folder in folders:
        with suppress(OSError):
            for one in (folder, os.path.dirname(folder), os.path.dirname(os.path.dirname(folder))):
                os.rmdir(one)


def _keep(
    container: int,
    host_pid: int,
    control: int,
    woken: int,
    outputs: dict[int, str],
    log: ContainerLog,
    watch: MemoryWatch,
    *,
    alone: bool,
) -> tuple[int, int]:
    """Until the container has ended and its pipes are empty: moves output, obeys, watches, reaps."""
    poll = select.poll()
    for source in (control, woken, *outputs):
        poll.register(source, select.POLLIN)
    ended: tuple[int, int] | None = None
    deadline = NEVER
    orders = b""
    while ended is None or (outputs and time.monotonic() < deadline):
        wait = watch.wait if deadline == NEVER else max(0.0, deadline - time.monotonic()) * 1000
        for source, _ in poll.poll(wait):
            if source in outputs:
                if not _move(source, outputs, log):
                    poll.unregister(source)
            elif source == control:
                orders += os.read(control, 64)
                if b"T" in orders and ended is None:
                    _ask_to_end(container, host_pid)
            else:
                os.read(woken, 64)
        status = _reap(container)
        if status is not None:
            ended = os.waitstatus_to_exitcode(status), time.time_ns()
        # Asked to end, a shell goes at once; what it ran still has its grace, until it is over or the order to kill.
        if (ended is None and watch.look()) or b"K" in orders or (ended is not None and b"T" not in orders):
            _kill_everything(container, alone)
            deadline = time.monotonic() + LINGER if ended is not None and deadline == NEVER else deadline
    _kill_everything(container, alone)
    code, finished = ended
    return (128 - code if code < 0 else code), finished


def _move(source: int, outputs: dict[int, str], log: ContainerLog) -> bool:
    """Takes what a pipe holds; False at its end."""
    text = os.read(source, 65536)
    if text:
        log.take(outputs[source], text)
        return True
    os.close(source)
    del outputs[source]
    return False


def _ask_to_end(container: int, host_pid: int) -> None:
    """A program that awaits SIGTERM gets it alone, as in Kubernetes, and sees to its children; else its group does."""
    with suppress(ProcessLookupError):
        if _awaits(host_pid, signal.SIGTERM):
            os.kill(container, signal.SIGTERM)
        else:
            os.killpg(container, signal.SIGTERM)


def _awaits(pid: int, number: int) -> bool:
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            caught = next((line.split()[1] for line in file if line.startswith("SigCgt:")), "0")
    except OSError:
        return False
    return bool(int(caught, 16) >> (number - 1) & 1)


def _kill_everything(container: int, alone: bool) -> None:
    with suppress(OSError):  # nobody left in it
        os.killpg(container, signal.SIGKILL)
    try:
        if alone:
            os.kill(-1, signal.SIGKILL)  # as process 1: all of the namespace but ourselves
            return
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as children:
            orphans = [int(child) for child in children.read().split()]
    except OSError:
        return  # nobody left, or no /proc to find orphans in
    for orphan in orphans:
        with suppress(ProcessLookupError):
            os.kill(orphan, signal.SIGKILL)


def _reap(container: int) -> int | None:
    """Collects every child that has ended; the status of the container's program if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == container:
            found = status


def _fork_container(folder: str, level: str, launch: dict[str, Any]) -> tuple[int, int, int, dict[int, str]]:
    """Forks the container's program, which waits at a gate until its start is on disk."""
    report, reporter = os.pipe()
    gate, opener = os.pipe()
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _become(folder, level, launch, reporter, gate, out_end, err_end)
        except OSError as problem:
            os.write(reporter, f"failed to create container: {problem}".encode())
        finally:
            os._exit(NOT_STARTED)
    for end in (reporter, gate, out_end, err_end):
        os.close(end)
    return pid, report, opener, {out: "stdout", err: "stderr"}


def _become(
    folder: str, level: str, launch: dict[str, Any], reporter: int, gate: int, out: int, err: int
) -> None:
    os.setsid()
    if level == "none":
        kernel.die_with_parent(signal.SIGKILL)
    os.write(reporter, b"%16d" % _host_pid())
    os.umask(0o022)
    enter_control_groups(launch["control_groups"])
    if level in FURNISH:
        roots.move_in(launch, f"{folder}/root", FURNISH[level])
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.makedirs(launch["working_dir"], exist_ok=True)
    os.chdir(launch["working_dir"])
    if level == "root" or (level == "none" and os.getuid() == 0):
        become_user(launch["user"], launch["group"], launch["groups"])
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    if not os.read(gate, 1):
        os._exit(NOT_STARTED)
    execute(launch["argv"], launch["env"], reporter)


def become_user(user: int | None, group: int | None, groups: list[int]) -> None:
    if group is not None or user is not None:
        os.setgroups([group or 0, *groups])
        os.setgid(group or 0)
    elif groups:
        os.setgroups([*os.getgroups(), *groups])
    if user is not None:
        os.setuid(user)


def execute(argv: list[str], env: dict[str, str], reporter: int) -> None:
    """Becomes the program, or reports why not in the words that kubectl users know."""
    try:
        os.execvpe(argv[0], argv, env)
    except FileNotFoundError:
        why = (
            f"stat {argv[0]}: no such file or directory"
            if "/" in argv[0]
            else "executable file not found in $PATH"
        )
    except OSError as problem:
        why = (os.strerror(problem.errno) if problem.errno else str(problem)).lower()
        if problem.errno == errno.ENOEXEC:
            why = "exec format error"
    os.write(reporter, f'exec: "{argv[0]}": {why}'.encode())


def _host_pid() -> int:
    """Our pid as the host's own /proc names it, also from within a PID namespace."""
    try:
        return int(os.readlink("/proc/self"))
    except OSError:
        return os.getpid()


def _read_all(source: int) -> bytes:
    text = b""
    while piece := os.read(source, 4096):
        text += piece
    os.close(source)
    return text
