"""Python environments that stand for images: built by uv, once for each content, shared by all who need them.

A folder carries an environment's name only when it is whole: environments are relocatable, so they are made in
`<key>.building` and moved at the end. That folder is also the lock between processes: whoever holds it builds, and uv
inherits the lock, so that an orphaned uv is waited for too. What a killed process leaves, the next builder sweeps.

Beside its packages an environment holds `recipe.json`, what it was made from; its folder's time is when somebody last
asked for it, which keeps it from being discarded before whoever asked has begun to use it.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.to_thread
import uv
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from fullrank.images.entries import Recipe
from fullrank.images.pip_settings import local_folders, pip_settings, uv_arguments, uv_variables
from fullrank.images.torch_choice import asks_for_a_build, cpu_wheel_version, has_nvidia_gpu
from fullrank.images.uv_output import answer, progress_line

Progress: TypeAlias = Callable[[str], Awaitable[None]]

RECIPE = "recipe.json"
RUNNING_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
LOOK_AGAIN = 0.2  # seconds between two looks at what another process is building


class ImageFailed(Exception):
    """An image that cannot be had, in words for the user who asked for it."""


@dataclass(slots=True)
class _Build:
    """One build that several may wait for: all hear the same progress, and share its failure."""

    lock: anyio.Lock = field(default_factory=anyio.Lock)
    listeners: list[Progress] = field(default_factory=list)
    latest: str = ""
    failure: str = ""

    async def tell(self, line: str) -> None:
        self.latest = line
        for listener in tuple(self.listeners):
            await listener(line)


class Environments:
    """The environments under one folder."""

    def __init__(self, root: Path, *, environ: Mapping[str, str], gpu: bool | None = None) -> None:
        self._root = root
        self._environ = environ
        self._wants_cpu = sys.platform == "linux" and not (has_nvidia_gpu() if gpu is None else gpu)
        self._builds: dict[str, _Build] = {}

    def key(self, recipe: Recipe) -> str:
        """What makes two environments the same one."""
        lines = sorted({" ".join(line.split()) for line in recipe.requirements})
        kind = "cpu" if self._wants_cpu else "any"
        content = [recipe.python or RUNNING_PYTHON, lines, sys.platform, platform.machine(), kind]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]

    async def build(self, recipe: Recipe, progress: Progress) -> Path:
        """The environment's folder, built now unless it is there; or ImageFailed, and then nothing of it is left."""
        key = self.key(recipe)
        target = self._root / key
        if is_whole(target):
            touch(target)
            return target
        build = self._builds.setdefault(key, _Build())
        build.listeners.append(progress)
        try:
            if build.latest:
                await progress(build.latest)
            async with build.lock:
                await self._build_once(recipe, target, build)
        finally:
            build.listeners.remove(progress)
            if not build.listeners:
                self._builds.pop(key, None)
        touch(target)
        return target

    async def discard(self, key: str, may_go: Callable[[Path], bool]) -> bool:
        """Takes an environment away, if it may still go once nobody can be building it."""
        target = self._root / key

        async def nobody_listens(_line: str) -> None:
            return

        async with _claimed(target.with_name(f"{key}.building"), nobody_listens) as (folder, _):
            if not target.is_dir() or not may_go(target):
                return False
            await anyio.to_thread.run_sync(_remove, folder / "environment")
            target.rename(folder / "environment")
        return True

    def sweep(self) -> None:
        """Takes away what builders that were killed left; those that live hold on to theirs."""
        for folder in self._root.glob("*.building"):
            if (lock := _claim(folder)) is not None:
                _remove(folder)
                os.close(lock)

    async def _build_once(self, recipe: Recipe, target: Path, build: _Build) -> None:
        if build.failure:
            raise ImageFailed(build.failure)
        if is_whole(target):
            return
        try:
            await self._build(recipe, target, build)
        except ImageFailed as failure:
            build.failure = str(failure)
            raise
        except OSError as error:
            build.failure = f"the environment cannot be made in {self._root}: {error}"
            raise ImageFailed(build.failure) from error

    async def _build(self, recipe: Recipe, target: Path, build: _Build) -> None:
        async with _claimed(target.with_name(f"{target.name}.building"), build.tell) as (folder, lock):
            if is_whole(target):  # by another process, while we waited for its lock
                return
            made = folder / "environment"
            await anyio.to_thread.run_sync(_remove, made)
            pip = pip_settings(self._environ, Path(sys.prefix))
            environ = {
                **self._environ,
                **uv_variables(pip, self._environ),
                "UV_PYTHON_DOWNLOADS": "never",
                "NO_COLOR": "1",
            }
            uv_here = _Uv(environ, folder, lock, build.tell)
            python = recipe.python or RUNNING_PYTHON
            await uv_here.make(made, python)
            if recipe.requirements:
                torch = self._torch_arguments(recipe.requirements, python, environ, folder)
                await uv_here.install(made, recipe.requirements, (*uv_arguments(pip), *torch))
            _write_recipe(made, recipe)
            await anyio.to_thread.run_sync(_remove, target)
            made.rename(target)

    def _torch_arguments(
        self, requirements: Sequence[str], python: str, environ: Mapping[str, str], folder: Path
    ) -> tuple[str, ...]:
        if not self._wants_cpu or environ.get("UV_TORCH_BACKEND") or asks_for_a_build(requirements):
            return ()
        wheels = [
            wheel.name
            for place in local_folders(environ.get("UV_FIND_LINKS", ""))
            for wheel in place.glob("torch-*.whl")
        ]
        version = cpu_wheel_version(requirements, wheels, python, platform.machine())
        if not version:
            return ("--torch-backend", "cpu")
        constraints = folder / "constraints.txt"
        constraints.write_text(f"torch=={version}\n", encoding="utf-8")
        return ("--constraints", str(constraints))


def is_whole(environment: Path) -> bool:
    """Whether it is there and its interpreter, a link to one of this machine, still is as well."""
    return (environment / "bin" / "python").exists()


def touch(environment: Path) -> None:
    """Notes that somebody is about to use it."""
    with suppress(
        OSError
    ):  # of another user, on a disk that cannot be written to: then nobody here discards it
        os.utime(environment)


def recipe_of(environment: Path) -> Recipe | None:
    """What an environment was made from, where it says so."""
    try:
        written = json.loads((environment / RECIPE).read_text(encoding="utf-8"))
        return Recipe(tuple(written["requirements"]), written["python"])
    except (OSError, ValueError, KeyError):
        return None


def _write_recipe(environment: Path, recipe: Recipe) -> None:
    written = {"python": recipe.python or RUNNING_PYTHON, "requirements": list(recipe.requirements)}
    (environment / RECIPE).write_text(json.dumps(written), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class _Uv:
    """uv at work in a folder; it holds the folder's lock for as long as it lives."""

    environ: Mapping[str, str]
    folder: Path
    lock: int
    tell: Progress

    async def make(self, environment: Path, python: str) -> None:
        which = sys.executable if python == RUNNING_PYTHON else python
        arguments = ("venv", "--no-project", "--relocatable", "--python", which, str(environment))
        await self._run(f"no environment of Python {python} can be made", arguments)

    async def install(self, environment: Path, requirements: Sequence[str], options: Sequence[str]) -> None:
        wanted = self.folder / "requirements.txt"
        wanted.write_text("".join(f"{line}\n" for line in requirements), encoding="utf-8")
        # Compiled now: pods see an environment read-only or through an overlay, and would compile it again each time.
        arguments = (
            "pip",
            "install",
            "--compile-bytecode",
            "--python",
            str(environment),
            "--requirements",
            str(wanted),
        )
        await self._run("the packages cannot be installed", (*arguments, *options))

    async def _run(self, failing: str, arguments: Sequence[str]) -> None:
        said: deque[str] = deque(maxlen=200)
        process = await anyio.open_process(
            [uv.find_uv_bin(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environ,
            cwd=self.folder, start_new_session=True, pass_fds=(self.lock,),
        )  # fmt: skip
        async with process, _killed_at_last(process):
            async for line in _lines(process):
                said.append(line)
                if progress := progress_line(line):
                    await self.tell(progress)
            code = await process.wait()
        if code:
            reasons = (f"{failing}:", answer(said) or f"uv ended with {code}", _hint(said))
            raise ImageFailed("\n".join(filter(None, reasons)))


def _hint(said: Sequence[str]) -> str:
    if any("download.pytorch.org" in line for line in said):
        return (
            "hint: without a GPU, PyTorch's CPU build is taken, from pip's find-links or download.pytorch.org; "
            "put the wheel into a find-links folder, or set UV_TORCH_BACKEND to choose another build"
        )
    return ""


async def _lines(process: Process) -> AsyncIterator[str]:
    assert process.stderr is not None  # a pipe was asked for
    rest = ""
    async for text in TextReceiveStream(process.stderr, errors="replace"):
        *lines, rest = (rest + text).split("\n")
        for line in lines:
            yield line
    if rest:
        yield rest


@asynccontextmanager
async def _killed_at_last(process: Process) -> AsyncIterator[None]:
    """Leaves nothing running: uv goes with all it started, the compilers of source packages among them."""
    try:
        yield
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@asynccontextmanager
async def _claimed(folder: Path, tell: Progress) -> AsyncIterator[tuple[Path, int]]:
    """A folder to work in that no other process has meanwhile; gone afterwards, however it ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    lock = _claim(folder)
    if lock is None:
        await tell("waiting for another process that is building the same environment")
    while lock is None:
        await anyio.sleep(LOOK_AGAIN)
        lock = _claim(folder)
    try:
        yield folder, lock
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_remove, folder)
        os.close(lock)


def _claim(folder: Path) -> int | None:
    folder.mkdir(exist_ok=True)
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its last owner removes the folder: the lock counts only on the one that has the name now.
        if os.path.samestat(os.fstat(lock), os.stat(folder)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
