"""`python -m tests.e2e.as_user USER allowed|refused COMMAND…`: runs a command as somebody without privileges.

For root alone. Python and the tests are opened to him where they lie below a private folder such as root's home, in a
mount namespace of this command. `refused` is a machine that gives nobody a user namespace.
"""

import os
import sys
from pathlib import Path

from fullrank.agent.nursery import kernel, roots

ROOT = str(Path(__file__).parents[2])


def main(user: int, namespaces: str, command: list[str]) -> None:
    kernel.unshare(kernel.NEW_MOUNTS)
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    _open_ways((ROOT, sys.prefix, sys.base_prefix), user)
    if namespaces == "refused":
        _enter_users(user)
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    os.execvp(command[0], command)


def _open_ways(folders: tuple[str, ...], user: int) -> None:
    """What he may not enter on the way is covered by an empty folder that has only these in it."""
    closed = {folder: where for folder in folders if (where := roots._closed_to(user, {user}, folder))}
    held = {folder: os.open(folder, os.O_RDONLY) for folder in closed}
    for where in {*closed.values()}:
        kernel.mount("tmpfs", where, "tmpfs", options="mode=755")
    for folder, handle in held.items():
        os.makedirs(folder)
        kernel.mount(f"/proc/self/fd/{handle}", folder, flags=kernel.BIND | kernel.RECURSIVE)


def _enter_users(user: int) -> None:
    """A user namespace with root and this user in it; only somebody outside may write so much of a map."""
    pid, (ready, told) = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.read(ready, 1)
        for kind in ("uid", "gid"):
            Path(f"/proc/{pid}/{kind}_map").write_text(f"0 0 1\n{user} {user} 1\n")
        os._exit(0)
    kernel.unshare(kernel.NEW_USERS)
    os.write(told, b"u")
    _, status = os.waitpid(helper, 0)
    assert status == 0


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
