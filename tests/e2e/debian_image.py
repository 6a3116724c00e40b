"""An image without a registry: a shell, some tools and a Python, of the packages that this machine has installed."""

import io
import os
import re
import subprocess
import tarfile
from pathlib import Path

PROGRAMS = ("sh", "cat", "sleep", "env", "id", "hostname", "ls", "touch", "python3")
LINKS = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}
FOLDERS = ("tmp", "etc", "dev", "proc", "sys", "usr/bin", "usr/sbin", "usr/lib", "usr/lib64")
NEEDLESS = re.compile(
    r"/(test|tests|idlelib|lib2to3|ensurepip|dist-packages|config-[^/]*|__pycache__|pydoc_data|tkinter)(/|$)"
)


def layer() -> bytes:
    """A root file system of a few megabytes, as a tar."""
    programs = {name: _found(name) for name in PROGRAMS}
    modules = subprocess.check_output(
        [str(programs["python3"]), "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"], text=True
    ).strip()
    paths = {path.parent / path.name for path in programs.values()}
    compiled = Path(modules, "lib-dynload").glob("*.so")
    for needed in (*programs.values(), *compiled):
        paths |= {Path(library) for library in _libraries(needed)}
    text = io.BytesIO()
    with tarfile.open(fileobj=text, mode="w") as tar:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        for name, target in LINKS.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            tar.addfile(entry)
        for path in sorted(paths):
            _add(tar, path)
        tar.add(modules, filter=lambda entry: None if NEEDLESS.search(f"/{entry.name}") else entry)
        for name, path in programs.items():
            if path.name != name:
                entry = tarfile.TarInfo(f"usr/bin/{name}")
                entry.type, entry.linkname = tarfile.SYMTYPE, path.name
                tar.addfile(entry)
    return text.getvalue()


def _found(name: str) -> Path:
    for folder in ("/usr/bin", "/bin"):
        if os.access(f"{folder}/{name}", os.X_OK):
            return Path(os.path.realpath(f"{folder}/{name}"))
    raise FileNotFoundError(f"this machine has no {name} in /usr/bin")


def _libraries(program: Path) -> list[str]:
    listed = subprocess.run(["ldd", str(program)], text=True, capture_output=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", listed)


def _add(tar: tarfile.TarFile, path: Path) -> None:
    """A file at its place below `usr`, whatever links lead to it."""
    inside = str(path).lstrip("/")
    inside = inside if inside.startswith("usr/") else f"usr/{inside}"
    entry = tar.gettarinfo(os.path.realpath(path), inside)
    entry.type = tarfile.REGTYPE
    with open(path, "rb") as file:
        tar.addfile(entry, file)
