"""The home on disk: its folders, the lock that keeps it to one control plane, and the note that says where it is."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import sleep

import msgspec

from fullrank.errors import Conflict, Unavailable

FOLDERS = ("pki", "logs", "volumes", "environments", "pods", "network", "images")


class Running(msgspec.Struct, frozen=True):
    """A control plane that answers."""

    pid: int
    version: str
    api: str
    ui: str = ""


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Holds the home, making it first if need be; Conflict names who holds it already."""
    try:
        for folder in (home, *(home / name for name in FOLDERS)):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Unavailable(f"the home {home} cannot be used: {error.strerror}") from error
    try:
        if not _take(lock):
            holder = os.pread(lock, 32, 0).decode(errors="replace").strip()
            raise Conflict(f"the home {home} is in use by the control plane with pid {holder}")
        os.truncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(lock)


def _take(lock: int) -> bool:
    """Somebody who only looks holds the lock for a moment; a control plane holds it for good."""
    for patience in (0.02, 0.05, 0.1, 0.0):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(patience)
        else:
            return True
    return False


@contextmanager
def announced(home: Path, running: Running) -> Iterator[None]:
    """Tells others where the control plane is, as long as it is there."""
    note = home / "server.json"
    draft = note.with_suffix(".tmp")
    draft.write_bytes(msgspec.json.encode(running))
    draft.rename(note)
    try:
        yield
    finally:
        note.unlink(missing_ok=True)


def find_running(home: Path) -> Running | None:
    """The control plane of this home, if it is there and has come up. A note left by a dead one does not count."""
    holder = holder_of(home)
    try:
        found = msgspec.json.decode((home / "server.json").read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.pid == holder else None


def login_link(home: Path, running: Running) -> str:
    """The Job Center's address with the way in: a secret, for the eyes of the home's owner only."""
    token = (home / "pki" / "token").read_text(encoding="ascii").strip()
    # "All addresses" is where a server listens; a browser wants one of them.
    here = running.ui.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
    return f"{here}/login?token={token}"


def holder_of(home: Path) -> int | None:
    """The process that holds the home, whether it has come up, is coming or is going."""
    try:
        lock = os.open(home / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        written = os.pread(lock, 32, 0).decode(errors="replace").strip()
        return int(written) if written.isdecimal() else None
    else:
        return None
    finally:
        os.close(lock)
