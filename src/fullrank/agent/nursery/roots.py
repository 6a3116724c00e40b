"""A root of its own for each attempt: the host's files as they are, the manifest's mounts at the very paths it names.

Two ways lead there. As root: overlays over the host's file systems with everything written kept in a tmpfs, so that
the host is never touched. As a user with a user namespace, to whom the kernel refuses an overlay over `/`: a tmpfs into
which the host's folders are bound, opened up along the way to mount points that the host does not have.
"""

import os
import stat
from collections.abc import Callable, Iterator
from typing import Any

from . import kernel

NAMES = (
    "/.fullrank"  # where the folder of `hosts` is bound: a rename in it is seen, one over a bound file is not
)
_HOST = "/.host"
_PSEUDO = frozenset((
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "devtmpfs", "efivarfs",
    "fusectl", "hugetlbfs", "mqueue", "nsfs", "proc", "pstore", "rpc_pipefs", "securityfs", "sysfs", "tracefs",
))  # fmt: skip
_BOUND_WHOLE = ("/sys",)
_DEVICES = "/dev"
_NEVER_LOCKED = ("/proc", "/sys", _DEVICES, NAMES)


def move_in(launch: dict[str, Any], stage: str, furnish: Callable[[str, dict[str, Any]], None]) -> None:
    """Gives this process (already first or second of its PID namespace) its hostname and root."""
    targets = [(os.path.realpath(source), target, locked) for source, target, locked in launch["mounts"]]
    names = os.path.realpath(launch["names"]) if launch["names"] else None
    kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_HOSTNAME | kernel.NEW_IPC)
    kernel.sethostname(launch["hostname"])
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    os.makedirs(stage, exist_ok=True)
    kernel.mount("tmpfs", stage, "tmpfs", options="mode=755")
    os.chdir(stage)  # relative paths below: a home may have commas in its name, and overlay options may not
    os.mkdir("root", 0o755)
    furnish("root", launch)
    _own_proc("root")
    kernel.mount("shm", "root/dev/shm", "tmpfs", options="mode=1777")
    os.makedirs(f"root{_HOST}")
    kernel.pivot_root("root", f"root{_HOST}")
    os.chdir("/")
    for source, target, locked in sorted(targets, key=lambda one: one[1].count("/")):
        _bind(_HOST + source, target, locked)
    if names is not None and all(target != "/etc/hosts" for _, target, _ in targets):
        _bind(_HOST + names, NAMES, locked=True)
        if os.path.lexists("/etc/hosts"):
            os.unlink("/etc/hosts")
        os.symlink(f"{NAMES}/hosts", "/etc/hosts")
    kernel.unmount(_HOST, kernel.DETACH)
    os.rmdir(_HOST)
    if launch["read_only"]:
        _lock([target for _, target, _ in targets])


def overlays(root: str, launch: dict[str, Any]) -> None:
    """The host's own root and each of its writable file systems, under throw-away layers."""
    mounts = list(_host_mounts())
    _overlay("/", root, "0")
    if not _overlaid(_DEVICES, root, "dev"):  # a file such as /dev/termination-log is a pod's own
        kernel.mount(_DEVICES, root + _DEVICES, flags=kernel.BIND | kernel.RECURSIVE)
    for number, (point, kind, writable) in enumerate(mounts, 1):
        if point in ("/proc", "/etc/hosts", _DEVICES) or _inside(point, ("/proc", *_BOUND_WHOLE)):
            continue
        try:
            if (
                writable
                and kind not in _PSEUDO
                and os.path.isdir(point)
                and _overlaid(point, root, str(number))
            ):
                continue
            kernel.mount(point, root + point, flags=kernel.BIND)
        except OSError:
            continue  # a host's mount that cannot be shown (stale, hidden by another) is no reason not to run
    for point in _BOUND_WHOLE:
        kernel.mount(point, root + point, flags=kernel.BIND | kernel.RECURSIVE)
    if launch["user"]:
        _open_ways(root, launch["folders"], launch["user"], {launch["group"] or 0, *launch["groups"]})


def _open_ways(root: str, folders: list[str], user: int, groups: set[int]) -> None:
    """Lets a user other than root see some folders where they are, also below a private one such as root's home.

    What the user may not enter on the way is covered by an empty folder that has only these in it: nothing else of it
    is shown, and nothing is hidden that the user could have seen.
    """
    covered = set[str]()
    for folder in dict.fromkeys(path for one in folders for path in (one, os.path.realpath(one))):
        closed = _closed_to(user, groups, folder)
        if closed is None:
            continue
        if closed not in covered:
            kernel.mount("tmpfs", root + closed, "tmpfs", options="mode=755")
            covered.add(closed)
        _bind(os.path.realpath(folder), root + folder, locked=True)


def _closed_to(user: int, groups: set[int], folder: str) -> str | None:
    """The first folder on the way that the user may not enter; a link on it is followed by its own way."""
    parts = folder.strip("/").split("/")
    for ancestor in ("/" + "/".join(parts[:depth]) for depth in range(1, len(parts))):
        if os.path.islink(ancestor):
            return None
        if not _may_enter(os.stat(ancestor), user, groups):
            return ancestor
    return None


def _may_enter(folder: os.stat_result, user: int, groups: set[int]) -> bool:
    if folder.st_uid == user:
        return bool(folder.st_mode & stat.S_IXUSR)
    return bool(folder.st_mode & (stat.S_IXGRP if folder.st_gid in groups else stat.S_IXOTH))


def binds(root: str, launch: dict[str, Any]) -> None:
    """The host's top-level folders; those on the way to a missing mount point are rebuilt entry by entry."""
    opened = {"/"}
    for target in [target for _, target, _ in launch["mounts"]] + (
        [f"{NAMES}/x", "/etc/hosts/x"] if launch["names"] else []
    ):
        opened.update(_existing_ancestors(target))
    kernel.mount("tmpfs", root, "tmpfs", options="mode=755")
    _mirror("/", root, opened, hidden={"/proc", "/etc/hosts"} if launch["names"] else {"/proc"})
    os.mkdir(f"{root}/proc")


def _mirror(folder: str, root: str, opened: set[str], hidden: set[str]) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            copy = root + entry.path
            if entry.path in hidden:
                continue
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), copy)
            elif entry.path in opened:
                os.mkdir(copy, 0o755)
                _mirror(entry.path, root, opened, hidden)
            else:
                _reserve(copy, entry.is_dir())
                try:
                    kernel.mount(entry.path, copy, flags=kernel.BIND | kernel.RECURSIVE)
                except OSError:
                    continue  # what the user may not see, the container does not see


def _existing_ancestors(target: str) -> Iterator[str]:
    """The real folders from the root down to the deepest one that exists, unless the target itself does."""
    if os.path.isdir(target):
        return
    folder = os.path.dirname(target)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    folder = os.path.realpath(folder)
    while folder != "/":
        yield folder
        folder = os.path.dirname(folder)


def _host_mounts() -> Iterator[tuple[str, str, bool]]:
    """Mount points below the root, parents first: where, what, and whether one can write there."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields, _, rest = line.partition(" - ")
            words = fields.split(" ")
            point = (
                words[4]
                .replace("\\040", " ")
                .replace("\\011", "\t")
                .replace("\\012", "\n")
                .replace("\\134", "\\")
            )
            kind, _, options = rest.rstrip("\n").split(" ", 2)
            if point != "/" and point != os.getcwd():
                yield point, kind, "rw" in words[5].split(",") and "rw" in options.split(",")


def _overlay(lower: str, target: str, layer: str) -> None:
    os.mkdir(f"{layer}.upper", 0o755)
    os.mkdir(f"{layer}.work", 0o755)
    escaped = lower.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    kernel.mount(
        "overlay",
        target,
        "overlay",
        options=f"lowerdir={escaped},upperdir={layer}.upper,workdir={layer}.work",
    )
    mode = os.stat(lower)
    os.chown(target, mode.st_uid, mode.st_gid)
    os.chmod(target, mode.st_mode & 0o7777)


def _overlaid(point: str, root: str, layer: str) -> bool:
    try:
        _overlay(point, root + point, layer)
    except OSError:
        return False  # not every file system can lie under an overlay (vfat cannot)
    return True


def _lock(volumes: list[str]) -> None:
    """Makes everything read-only but the volumes, which say for themselves, and what the kernel shows."""
    for point in ["/", *(point for point, _, _ in _host_mounts())]:
        if _inside(point, (*_NEVER_LOCKED, *volumes)):
            continue
        try:
            _remount_read_only(point, point)
        except OSError:
            continue  # not ours to change, and so not ours to write to either


def _own_proc(root: str) -> None:
    try:
        kernel.mount("proc", f"{root}/proc", "proc", kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC)
    except OSError:  # inside a container whose own /proc is partly hidden
        kernel.mount("/proc", f"{root}/proc", flags=kernel.BIND | kernel.RECURSIVE)


def _bind(source: str, target: str, locked: bool) -> None:
    _reserve(target, os.path.isdir(source))
    kernel.mount(source, target, flags=kernel.BIND | kernel.RECURSIVE)
    if locked:
        _remount_read_only(source, target)


def _remount_read_only(source: str, target: str) -> None:
    # In a user namespace the flags that a mount came with may not be dropped.
    kept = os.statvfs(target).f_flag & (kernel.NO_SUID | kernel.NO_DEVICES | kernel.NO_EXEC)
    kernel.mount(source, target, flags=kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | kept)


def _reserve(target: str, folder: bool) -> None:
    """Makes something to mount upon, of the same sort as what will be mounted."""
    if folder:
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _inside(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
