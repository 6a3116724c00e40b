"""The few calls of the Linux kernel that the standard library lacks."""

import ctypes
import os

NEW_MOUNTS, NEW_HOSTNAME, NEW_IPC, NEW_USERS, NEW_PIDS = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = (
    1,
    2,
    4,
    8,
    32,
    4096,
    16384,
    1 << 18,
)
DETACH = 2
_DEATH_SIGNAL, _SUBREAPER = 1, 36

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(flags: int) -> None:
    _check(_libc.unshare(flags), "unshare")


def join(namespace: int) -> None:
    """Enters the namespace behind an open file of /proc/PID/ns."""
    _check(_libc.setns(namespace, 0), "setns")


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _check(
        _libc.mount(
            source.encode(),
            target.encode(),
            kind.encode() or None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
        target,
    )


def unmount(target: str, flags: int = 0) -> None:
    _check(_libc.umount2(target.encode(), flags), target)


def pivot_root(new: str, old: str) -> None:
    _check(_libc.pivot_root(new.encode(), old.encode()), new)


def sethostname(name: str) -> None:
    text = name.encode()
    _check(_libc.sethostname(text, ctypes.c_size_t(len(text))), "hostname")


def die_with_parent(signal: int) -> None:
    if hasattr(_libc, "prctl"):
        _libc.prctl(_DEATH_SIGNAL, signal, 0, 0, 0)


def adopt_orphans() -> None:
    """Descendants whose own parent is gone become children of this process, to be reaped and, at the end, killed."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_SUBREAPER, 1, 0, 0, 0)
