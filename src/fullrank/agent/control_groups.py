"""Limits and usage of containers through the kernel's control groups, version 1 or 2, where this machine lets us.

Each attempt has a group of its own, `fullrank-HOME/POD_UID/CONTAINER-NUMBER`, below the one that the server itself is
in, or else below the highest that can be written to. Where there is none, containers run without limits.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal

from fullrank.agent.runtime import Attempt, Limits, Usage

PERIOD = 100_000  # microseconds over which CPU time is counted
LEAST_QUOTA = 1_000  # microseconds: what the kernel takes
PREFIX = "fullrank-"
TRIES = 3
WANTED = ("memory", "cpu", "cpuacct")


@dataclass(frozen=True, slots=True)
class Mounted:
    """A hierarchy of control groups, and where in it this process is."""

    point: Path
    controllers: frozenset[str]  # empty: version 2, which has them all in one
    own: Path


class ControlGroups:
    """The groups of all attempts; with no hierarchy that can be written to, all of this does nothing."""

    def __init__(self, hierarchies: Mapping[str, Path]) -> None:
        self._hierarchies = hierarchies  # controller → the folder of ours; "" → version 2's

    @classmethod
    def of_this_machine(cls, home: Path, proc: Path = Path("/proc/self")) -> "ControlGroups":
        ours = f"{PREFIX}{sha256(str(home).encode()).hexdigest()[:8]}"
        try:
            mounted = list(mounted_hierarchies(proc))
        except OSError:
            return cls({})
        found: dict[str, Path] = {}
        for hierarchy in mounted:
            for controller in sorted(hierarchy.controllers & {*WANTED}):
                if (folder := _claimed(hierarchy, ours)) is not None:
                    found[controller] = folder
        if "memory" not in found:
            unified = [_claimed_in_one(hierarchy, ours) for hierarchy in mounted if not hierarchy.controllers]
            found = {"": folder for folder in unified if folder is not None}  # noqa: B035  # there is one at most
        return cls(found)

    def limit(self, controller: Literal["memory", "cpu"]) -> bool:
        """Whether limits of this sort are kept by the kernel."""
        if controller in self._hierarchies:
            return True
        unified = self._hierarchies.get("")
        # What is handed down to ours; ours itself comes and goes with the containers in it.
        return unified is not None and controller in _words(unified.parent / "cgroup.subtree_control")

    def make(self, attempt: Attempt, limits: Limits) -> tuple[Path, ...]:
        """The groups that the attempt's processes shall enter, limited as asked."""
        # Everything in version 1's `cpu` shares the weight of one group: only who asks for a limit goes there.
        wanted = self._hierarchies.keys() - ({"cpu"} if limits.cpu is None else set())
        folders = {controller: self._folder(controller, attempt) for controller in wanted}
        for _ in range(TRIES):
            try:
                _make(folders, limits)
            except FileNotFoundError:
                continue  # an attempt that ended this moment has taken away the groups above its own
            except OSError:
                break
            return tuple(dict.fromkeys(folders.values()))
        remove(folders.values())
        return ()

    def sweep(self) -> None:
        """Takes away all groups that are empty."""
        for base in {*self._hierarchies.values()}:
            remove([base])

    def _folder(self, controller: str, attempt: Attempt) -> Path:
        return self._hierarchies[controller] / attempt.pod_uid / f"{attempt.container}-{attempt.number}"


def _make(folders: Mapping[str, Path], limits: Limits) -> None:
    for controller, folder in folders.items():
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not controller:
            _enable(folder.parent.parent)
            _enable(folder.parent)
        folder.mkdir(exist_ok=True)
    for controller, name, value in _settings(limits):
        if (where := folders.get(controller)) is not None and (where / name).exists():
            (where / name).write_text(value)


def usage(groups: Iterable[Path]) -> Usage | None:
    """What the processes in an attempt's groups use now; None where nobody counts, or it is over."""
    seconds, memory = None, None
    try:
        for folder in groups:
            if (folder / "cpuacct.usage").exists():
                seconds = _number(folder / "cpuacct.usage") / 1e9
            if (folder / "memory.usage_in_bytes").exists():
                idle = _table(folder / "memory.stat").get("total_inactive_file", 0)
                memory = _number(folder / "memory.usage_in_bytes") - idle
            if (folder / "memory.current").exists():
                idle = _table(folder / "memory.stat").get("inactive_file", 0)
                memory = _number(folder / "memory.current") - idle
                seconds = _table(folder / "cpu.stat")["usage_usec"] / 1e6
    except (OSError, KeyError, ValueError):
        return None
    return None if seconds is None or memory is None else Usage(seconds, memory)


def groups_of(pid: int, proc: Path = Path("/proc")) -> list[Path]:
    """The groups that a process is in, whoever made them."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text().splitlines()
        mounted = list(mounted_hierarchies(proc / "self"))
    except OSError:
        return []
    places = {
        frozenset(listed.split(",")) - {""}: place
        for _, listed, place in (line.split(":", 2) for line in lines)
    }
    return [
        hierarchy.point / places[hierarchy.controllers].lstrip("/")
        for hierarchy in mounted
        if hierarchy.controllers in places
    ]


def remove(groups: Iterable[Path]) -> None:
    """Takes groups away, with those above them that are then empty; one in which something still dies stays."""
    for folder in groups:
        _remove_tree(folder)
        if folder.parent.parent.name.startswith(PREFIX):
            with suppress(OSError):
                folder.parent.rmdir()


def out_of_memory_records(groups: Iterable[Path]) -> list[Path]:
    """The files in which the kernel counts what it killed for want of memory."""
    names = ("memory.events", "memory.oom_control")
    return [folder / name for folder in groups for name in names if (folder / name).exists()]


def _settings(limits: Limits) -> Iterator[tuple[str, str, str]]:
    """Controller ("" = version 2), file, value; in an order that the kernel takes."""
    if limits.memory is not None:
        yield "memory", "memory.limit_in_bytes", str(limits.memory)
        yield "memory", "memory.memsw.limit_in_bytes", str(limits.memory)
        yield "", "memory.max", str(limits.memory)
        yield "", "memory.swap.max", "0"
        yield "", "memory.oom.group", "1"
    if limits.cpu is not None:
        quota = max(int(limits.cpu * PERIOD), LEAST_QUOTA)
        yield "cpu", "cpu.cfs_period_us", str(PERIOD)
        yield "cpu", "cpu.cfs_quota_us", str(quota)
        yield "", "cpu.max", f"{quota} {PERIOD}"


def mounted_hierarchies(proc: Path) -> Iterator[Mounted]:
    own = {}
    for line in (proc / "cgroup").read_text().splitlines():
        _, listed, place = line.split(":", 2)
        own[frozenset(listed.split(",")) - {""}] = place
    for line in (proc / "mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if not kind.startswith("cgroup"):
            continue
        root, point = fields.split(" ")[3:5]
        controllers = frozenset() if kind == "cgroup2" else _controllers_in(options, own)
        if controllers in own:
            path = Path(own[controllers])
            inside = path.relative_to(root) if path.is_relative_to(root) else Path()
            yield Mounted(Path(point), controllers, Path(point) / inside)


def _controllers_in(options: str, known: Mapping[frozenset[str], str]) -> frozenset[str]:
    words = {*options.split(",")}
    return next((controllers for controllers in known if controllers and controllers <= words), frozenset())


def _claimed(hierarchy: Mounted, ours: str) -> Path | None:
    """A folder of ours in a hierarchy of version 1."""
    for place in (hierarchy.own, hierarchy.point):
        with suppress(OSError):
            (place / ours).mkdir(exist_ok=True)
            _weigh(place / ours / "cpu.shares", 1024)
            if os.access(place / ours / "cgroup.procs", os.W_OK):
                return place / ours
    return None


def _claimed_in_one(hierarchy: Mounted, ours: str) -> Path | None:
    """The same in version 2, where no group can have both processes and limited groups in it: not in our own."""
    place = hierarchy.own
    while place != hierarchy.point:
        place = place.parent
        with suppress(OSError):
            if not {"memory", "cpu"} <= {*_words(place / "cgroup.subtree_control")}:
                _enable(place)
            (place / ours).mkdir(exist_ok=True)
            _enable(place / ours)
            _weigh(place / ours / "cpu.weight", 100)
            return place / ours
    return None


def _weigh(file: Path, usual: int) -> None:
    """All containers together weigh as much as a usual process on every core."""
    if file.exists():
        file.write_text(str(min(usual * (os.cpu_count() or 1), 10_000)))


def _enable(folder: Path) -> None:
    (folder / "cgroup.subtree_control").write_text("+memory")
    with suppress(OSError):  # not everybody who may limit memory may limit CPU time
        (folder / "cgroup.subtree_control").write_text("+cpu")


def _remove_tree(folder: Path) -> None:
    with suppress(OSError):  # not there, or not empty yet
        for child in folder.iterdir():
            if child.is_dir():
                _remove_tree(child)
        folder.rmdir()


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def _number(path: Path) -> int:
    return int(path.read_text())


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2}
