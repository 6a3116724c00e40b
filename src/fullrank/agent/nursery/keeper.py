"""The keeper of one container of an engine: it starts it, keeps what it writes, and records how it ended.

The container is the engine's child and outlives its keeper too: one that takes over finds it by its name, reads its log
from where the kept one ends, and waits on.
"""

import json
import os
import select
import signal
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

from .container_log import ContainerLog, kept_bytes
from .records import not_started, record

LOST = "The container could not be located when the pod was terminated"
LOOK_AGAIN = 50.0  # milliseconds
AGAIN = 0.5  # seconds before an engine that gave no sensible answer is asked again
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STREAMS = ("stdout", "stderr")
NOT_RUNNING = (b"not running", b"no such", b"state improper")
NOT_YET, OVER = ("created", "initialized"), ("exited", "dead", "stopped")


def keep(folder: str, alive: int) -> NoReturn:
    """Sees one container through from beginning to end, in a process forked for it alone."""
    status = 1
    try:
        os.setsid()
        os.umask(0o077)
        # Podman's monitor leaves a file `oom` where it is when memory ran out; Podman itself may miss it.
        os.chdir(folder)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        with open(f"{folder}/launch.json", encoding="utf-8") as file:
            _keep(folder, alive, json.load(file))
        status = 0
    finally:
        os._exit(status)  # whatever happened: never back into the nursery's loop


def _keep(folder: str, alive: int, launch: dict[str, Any]) -> None:
    if "tool" not in launch:  # a process, of another runtime: its parent is gone
        record(folder, "exit.json", _ending({}, time.time_ns(), False))
        return
    engine = _Engine(launch["tool"], launch["env"], launch["name"])
    orders = _Orders(f"{folder}/control", launch["stop_signal"] or "TERM")
    state = engine.state()
    began = time.time_ns()
    if state.get("Status") in NOT_YET:
        record(folder, "started.json", {"startedAt": began, "container": 0})
        complaint = engine.start()
        state = engine.state()
        if complaint and state.get("Status", "created") in NOT_YET:
            record(folder, "exit.json", not_started(complaint))
            engine.remove()
            return
    began = _nanoseconds(state.get("StartedAt", "")) or began
    started = {"startedAt": began, "parent": os.getpid(), "container": state.get("Pid", 0)}
    record(folder, "started.json", started)
    with suppress(BrokenPipeError):  # nobody listens: the next server reads what is on disk
        os.write(alive, b"s")
    see_through = _follow if launch["follows"] else _attend
    state = see_through(engine, launch["log"], state, orders)
    record(folder, "exit.json", _ending(state, began, os.path.exists(f"{folder}/oom")))
    engine.remove()


def _attend(engine: "_Engine", _log: str, state: dict[str, Any], orders: "_Orders") -> dict[str, Any]:
    """Until the end of a container whose log the engine keeps where it is to be."""
    while state and state.get("Status") not in OVER:
        engine.attend(state.get("Pid", 0), orders)
        state = engine.state()
    return state


def _follow(engine: "_Engine", path: str, state: dict[str, Any], orders: "_Orders") -> dict[str, Any]:
    """The same, with all that it writes."""
    kept, log = kept_bytes(path), ContainerLog(path)
    while state and state.get("Status") not in OVER:
        kept = engine.follow(log, kept, orders)
        state = engine.state()
    engine.follow(log, kept, orders)
    log.finish()
    log.close()
    return state


def _ending(state: dict[str, Any], began: int, ran_out: bool) -> dict[str, Any]:
    finished = _nanoseconds(state.get("FinishedAt", ""))
    ending = {"startedAt": began, "finishedAt": finished or time.time_ns()}
    if not finished:  # the engine knows of no end: it was removed, or the machine went down
        return ending | {"code": 137, "reason": "ContainerStatusUnknown", "message": LOST}
    code = state["ExitCode"]
    out_of_memory = code and (state.get("OOMKilled") or ran_out)
    return ending | {"code": code, "reason": "OOMKilled" if out_of_memory else "", "message": ""}


class _Engine:
    """The engine's command line, for one container."""

    def __init__(self, tool: list[str], env: dict[str, str], name: str) -> None:
        self._tool = tool
        self._env = env
        self._name = name

    def start(self) -> str:
        """Why it did not start; empty if it did."""
        code, text = self._ask("start", self._name)
        return "" if code == 0 else text.decode(errors="replace").strip()

    def state(self) -> dict[str, Any]:
        """What the engine says of the container; empty once it knows of none."""
        while True:
            code, text = self._ask(
                "inspect", "--type", "container", "--format", "{{json .State}}", self._name
            )
            if code == 0:
                for line in text.splitlines():  # among which may be warnings
                    with suppress(ValueError):
                        state: dict[str, Any] = json.loads(line)
                        return state
            elif b"no such" in text.lower():
                return {}
            time.sleep(AGAIN)

    def remove(self) -> None:
        self._ask("rm", "--force", "--volumes", self._name)

    def kill(self, signal_name: str) -> None:
        """Until the container has the signal, or cannot have it any more."""
        while True:
            code, text = self._ask("kill", f"--signal={signal_name}", self._name)
            if code == 0 or any(word in text.lower() for word in NOT_RUNNING):
                return
            time.sleep(AGAIN)

    def attend(self, pid: int, orders: "_Orders") -> None:
        """Waits for the end of the container's first process."""
        poll = select.poll()
        poll.register(orders.end, select.POLLIN)
        patience: float | None = None
        try:
            process = os.pidfd_open(pid)
        except OSError:  # over, while the engine does not know yet
            process, patience = -1, LOOK_AGAIN
        else:
            poll.register(process, select.POLLIN)
        while True:
            ready = [source for source, _ in poll.poll(patience)]
            if orders.end in ready:
                self.obey(orders)
            if process in ready or not ready:
                break
        if process >= 0:
            os.close(process)

    def obey(self, orders: "_Orders") -> None:
        for name in orders.taken():
            self.kill(name)

    def follow(self, log: ContainerLog, kept: dict[str, int], orders: "_Orders") -> dict[str, int]:
        """Moves what the container writes to the log, but for what is in it already; what is then in it."""
        out, out_end = os.pipe2(os.O_CLOEXEC)
        err, err_end = os.pipe2(os.O_CLOEXEC)
        pid = self._spawn(["logs", "--follow", self._name], out_end, err_end)
        os.close(out_end)
        os.close(err_end)
        sources = {out: "stdout", err: "stderr"}
        seen = dict.fromkeys(STREAMS, 0)
        poll = select.poll()
        for source in (*sources, orders.end):
            poll.register(source, select.POLLIN)
        while sources:
            for source, _ in poll.poll():
                if source == orders.end:
                    self.obey(orders)
                    continue
                stream, text = sources[source], os.read(source, 65536)
                if not text:
                    poll.unregister(source)
                    os.close(source)
                    del sources[source]
                    continue
                fresh = text[max(0, kept[stream] - seen[stream]) :]
                seen[stream] += len(text)
                log.take(stream, fresh)
        os.waitpid(pid, 0)
        return {stream: max(kept[stream], seen[stream]) for stream in STREAMS}

    def _ask(self, *words: str) -> tuple[int, bytes]:
        """What a command says, on either stream, and its exit status."""
        source, end = os.pipe2(os.O_CLOEXEC)
        pid = self._spawn(list(words), end, end)
        os.close(end)
        text = b""
        while piece := os.read(source, 65536):
            text += piece
        os.close(source)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text

    def _spawn(self, words: list[str], out: int, err: int) -> int:
        argv = [*self._tool, *words]
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        ]
        return os.posix_spawn(argv[0], argv, self._env, file_actions=streams)


class _Orders:
    """What servers ask of a container: to end, or to be killed."""

    def __init__(self, path: str, gentle: str) -> None:
        # Open for writing too: a FIFO without writers would be ready to be read from for ever.
        self.end = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._signals = {ord("T"): gentle, ord("K"): "KILL"}

    def taken(self) -> list[str]:
        return list(dict.fromkeys(self._signals[order] for order in os.read(self.end, 64)))


def _nanoseconds(text: str) -> int:
    """A time as engines write it; 0 for none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return max((moment - EPOCH) // timedelta(microseconds=1) * 1000, 0)
