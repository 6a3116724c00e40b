"""What an image name means: an environment asked for by name, a catalogue entry, or what fullrank itself runs in."""

import hashlib
import logging
import os
import posixpath
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import anyio.to_thread

from fullrank.api.annotations import ENVIRONMENT
from fullrank.api.meta import Json
from fullrank.images.entries import Complaint, Entry, File, read_entry
from fullrank.images.environments import Environments, ImageFailed, Progress, is_whole, touch

__all__ = ["Image", "ImageFailed", "Images", "Progress"]

logger = logging.getLogger(__name__)

ENVIRONMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
NAMED, FILES = "named", "files"  # beside the environments: names for some of them, and files of images
BUILTIN = Path(__file__).parent / "builtin"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Signature: TypeAlias = tuple[tuple[Path, int, int], ...]
Placed: TypeAlias = tuple[tuple[str, Path, int], ...]  # path in the image, file of this machine, mode


@dataclass(frozen=True, slots=True)
class Image:
    """Everything a container needs of its image: files to see at their paths, and variables, PATH always among them."""

    reference: str
    env: Mapping[str, str]
    files: Placed = ()
    folders: tuple[Path, ...] = ()  # of this machine, that the variables lead to
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: int | None = None
    working_dir: str = ""
    stop_signal: str = ""
    id: str = ""  # of a container engine, which has it whole: nothing of this machine is then seen


class Images:
    """The images that a home knows."""

    def __init__(
        self, home: Path, *, environ: Mapping[str, str], strict: bool = False, gpu: bool | None = None
    ) -> None:
        self._catalogue = _Catalogue((home / "images", BUILTIN))
        self._root = home / "environments"
        self.environments = Environments(self._root, environ=environ, gpu=gpu)
        self._layouts: dict[tuple[tuple[File, int, int], ...], Path] = {}
        self._path = environ.get("PATH") or USUAL_PATH
        self._strict = strict

    async def present(self, _container: Json) -> Image | None:
        """What a name means is looked up anew each time."""
        return None

    async def prepare(self, reference: str, annotations: Mapping[str, str], progress: Progress) -> Image:
        """The image, its environment built if need be while `progress` is told in short lines; or ImageFailed.

        An environment asked for by name takes the place of the entry's own; the entry's files and variables stay.
        """
        entry = self._catalogue.find(reference)
        if name := annotations.get(ENVIRONMENT, ""):
            environment: Path | None = self.named(name)
        elif entry is None:
            environment = await self._started_from(reference, progress)
        elif entry.recipe is None:
            environment = None
        else:
            environment = await self.environments.build(entry.recipe, progress)
        if entry is None:
            return self._bare(reference, environment)
        if not entry.files:
            return self._image(reference, entry, environment, self._root)
        try:
            laid_out = await anyio.to_thread.run_sync(self.layout, entry)
        except OSError as error:
            raise ImageFailed(f"the files of image {reference} cannot be laid out: {error}") from error
        return self._image(reference, entry, environment, laid_out)

    def find(self, reference: str) -> Entry | None:
        return self._catalogue.find(reference)

    def entries(self) -> tuple[Entry, ...]:
        """All of the catalogue; where several stand for the same image, the first of them counts."""
        return self._catalogue.all()

    @property
    def complaints(self) -> tuple[Complaint, ...]:
        """What is wrong with the files of the catalogue that were left out when it was last read."""
        return self._catalogue.complaints

    @property
    def root(self) -> Path:
        return self._root

    def folder_of(self, entry: Entry) -> Path | None:
        """Where the entry's environment is, or will be once it is built."""
        return None if entry.recipe is None else self._root / self.environments.key(entry.recipe)

    def layout(self, entry: Entry) -> Path:
        """The folder that has the entry's files in it; made, and its files read, only when one of them has changed."""
        as_they_are = tuple((file, *_stamp(file.source)) for file in entry.files)
        known = self._layouts.get(as_they_are)
        if known is None or not known.exists():
            known = self._layouts[as_they_are] = lay_out(entry.files, self._root / FILES)
        touch(known)
        return known

    def layout_name(self, entry: Entry) -> str:
        """What the folder that `layout` makes is called."""
        return _digest(entry.files, [file.source.read_bytes() for file in entry.files])

    def _bare(self, reference: str, environment: Path | None) -> Image:
        assert environment is not None  # an image that nobody describes runs in some environment
        path = _joined([environment / "bin"], self._path)
        return Image(reference, {"PATH": path}, folders=_made_of(environment))

    def _image(self, reference: str, entry: Entry, environment: Path | None, laid_out: Path) -> Image:
        made_of = () if environment is None else _made_of(environment)
        programs = [] if environment is None else [environment / "bin"]
        placed = tuple((file.target, laid_out / file.target.lstrip("/"), file.mode) for file in entry.files)
        # Without namespaces the files are not at their paths, and commands and modules must be found all the same.
        commands = [
            source.parent for file, (_, source, _) in zip(entry.files, placed, strict=True) if file.is_command
        ]
        env = {**entry.env, "PATH": _joined([*commands, *programs], entry.env.get("PATH") or self._path)}
        if modules := entry.env.get("PYTHONPATH"):
            env["PYTHONPATH"] = _moved(modules, placed)
        return Image(
            reference,
            env=env,
            files=placed,
            folders=(laid_out, *made_of) if placed else made_of,
            entrypoint=entry.entrypoint,
            command=entry.command,
            user=entry.user,
            working_dir=entry.working_dir,
        )

    def named(self, name: str) -> Path:
        """The environment of that name; ImageFailed names those there are."""
        folder = self._root / NAMED
        if not ENVIRONMENT_NAME.fullmatch(name):
            raise ImageFailed(
                f"{ENVIRONMENT}: {name!r} is not a name: letters, digits, `.`, `_` and `-` are allowed"
            )
        if not is_whole(folder / name):
            there = (
                sorted(path.name for path in folder.iterdir() if is_whole(path)) if folder.is_dir() else []
            )
            known = f"there are {', '.join(there)}" if there else "there is none yet"
            raise ImageFailed(
                f"{ENVIRONMENT}: there is no environment {name!r} ({known}); "
                f"make it with `fullrank env create {name} -r requirements.txt`"
            )
        environment = (folder / name).resolve()
        touch(environment)
        return environment

    async def _started_from(self, reference: str, progress: Progress) -> Path:
        broken = "".join(f"; not read: {complaint}" for complaint in self._catalogue.complaints)
        if self._strict:
            raise ImageFailed(
                f"image {reference} is not in the catalogue, and images are strict{broken}; "
                f"describe it in {self._catalogue.folders[0]}/NAME.yaml, or annotate the job with {ENVIRONMENT}"
            )
        own = f"the environment fullrank was started from ({sys.prefix})"
        await progress(f"image {reference} is not in the catalogue: running in {own}{broken}")
        return Path(sys.prefix)


class _Catalogue:
    """The entries of some folders, the first folder's first; read again when a file has changed."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self.complaints: tuple[Complaint, ...] = ()
        self._entries: tuple[Entry, ...] = ()
        self._signature: Signature | None = None

    def find(self, reference: str) -> Entry | None:
        return next((entry for entry in self.all() if entry.matches(reference)), None)

    def all(self) -> tuple[Entry, ...]:
        self._refresh()
        return self._entries

    def _refresh(self) -> None:
        signature = tuple(found for folder in self.folders for found in _yaml_files(folder))
        if signature == self._signature:
            return
        outcomes = [read_entry(path) for path, _, _ in signature]
        self._entries = tuple(outcome for outcome in outcomes if isinstance(outcome, Entry))
        self.complaints = tuple(
            complaint for outcome in outcomes if isinstance(outcome, list) for complaint in outcome
        )
        self._signature = signature
        for complaint in self.complaints:
            logger.warning("the image catalogue leaves out %s", complaint)


def _yaml_files(folder: Path) -> list[tuple[Path, int, int]]:
    try:
        found = [(Path(file.path), file.stat()) for file in os.scandir(folder) if file.name.endswith(".yaml")]
    except OSError:  # no folder, no entries; a file that vanished meanwhile is looked for again next time
        return []
    return sorted((path, status.st_mtime_ns, status.st_size) for path, status in found)


def _made_of(environment: Path) -> tuple[Path, ...]:
    """An environment's folder, and that of the interpreter which it links to."""
    python = environment / "bin" / "python"
    if not python.is_symlink():
        return (environment,)
    linked, real = python.parent / python.readlink(), python.resolve()
    return tuple(dict.fromkeys((environment, linked.parent.parent, real.parent.parent)))


def _stamp(file: Path) -> tuple[int, int]:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def lay_out(files: Sequence[File], root: Path) -> Path:
    """Copies in a folder shaped like the image: what pods see has its mode, and stays when its origin changes."""
    contents = [file.source.read_bytes() for file in files]
    folder = root / _digest(files, contents)
    if not folder.exists():
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=".") as half_made:
            shaped = Path(half_made, "image")
            for file, content in zip(files, contents, strict=True):
                place = shaped / file.target.lstrip("/")
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
                place.chmod(file.mode)
            _rename_unless_there(shaped, folder)
    return folder


def _digest(files: Sequence[File], contents: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for file, content in zip(files, contents, strict=True):
        digest.update(f"{file.target}\0{file.mode:o}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:16]


def _rename_unless_there(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():  # else somebody laid out the same files just before
            raise
        shutil.rmtree(source)


def _moved(folders: str, placed: Placed) -> str:
    """A list of folders, those of the image where they were laid out."""
    places = {posixpath.dirname(target): str(source.parent) for target, source, _ in placed}
    return os.pathsep.join(places.get(folder, folder) for folder in folders.split(os.pathsep))


def _joined(folders: Sequence[Path], rest: str) -> str:
    return os.pathsep.join(dict.fromkeys([*map(str, folders), *rest.split(os.pathsep)]))
