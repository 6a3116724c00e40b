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

from fullrank.api.annotations import ENVIRONMENT
from fullrank.images.entries import Complaint, Entry, File, read_entry
from fullrank.images.environments import Environments, ImageFailed, Progress, is_whole

__all__ = ["Image", "ImageFailed", "Images", "Progress"]

logger = logging.getLogger(__name__)

ENVIRONMENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
BUILTIN = Path(__file__).parent / "builtin"
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Signature: TypeAlias = tuple[tuple[Path, int, int], ...]


@dataclass(frozen=True, slots=True)
class Image:
    """Everything a container needs of its image: files to see at their paths, and variables, PATH always among them."""

    reference: str
    env: Mapping[str, str]
    files: tuple[tuple[str, Path, int], ...] = ()  # path in the image, file of this machine, mode
    folders: tuple[Path, ...] = ()  # of this machine, that the variables lead to
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    user: int | None = None
    working_dir: str = ""


class Images:
    """The images that a home knows."""

    def __init__(
        self, home: Path, *, environ: Mapping[str, str], strict: bool = False, gpu: bool | None = None
    ) -> None:
        self._catalogue = _Catalogue((home / "images", BUILTIN))
        self._root = home / "environments"
        self._environments = Environments(self._root, environ=environ, gpu=gpu)
        self._path = environ.get("PATH") or USUAL_PATH
        self._strict = strict

    async def prepare(self, reference: str, annotations: Mapping[str, str], progress: Progress) -> Image:
        """The image, its environment built if need be while `progress` is told in short lines; or ImageFailed.

        An environment asked for by name takes the place of the entry's own; the entry's files and variables stay.
        """
        entry = self._catalogue.find(reference)
        if name := annotations.get(ENVIRONMENT, ""):
            environment: Path | None = self._named(name)
        elif entry is None:
            environment = await self._started_from(reference, progress)
        elif entry.recipe is None:
            environment = None
        else:
            environment = await self._environments.build(entry.recipe, progress)
        return self._image(reference, entry, environment)

    def _image(self, reference: str, entry: Entry | None, environment: Path | None) -> Image:
        made_of = () if environment is None else _made_of(environment)
        programs = [] if environment is None else [environment / "bin"]
        if entry is None:
            return Image(reference, {"PATH": _joined(programs, self._path)}, folders=made_of)
        try:
            laid_out, placed = lay_out(entry.files, self._root / "files")
        except OSError as error:
            raise ImageFailed(f"the files of image {reference} cannot be laid out: {error}") from error
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

    def _named(self, name: str) -> Path:
        folder = self._root / "named"
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
        return (folder / name).resolve()

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
        self._refresh()
        return next((entry for entry in self._entries if entry.matches(reference)), None)

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


def lay_out(files: Sequence[File], root: Path) -> tuple[Path, tuple[tuple[str, Path, int], ...]]:
    """Copies in a folder shaped like the image: what pods see has its mode, and stays when its origin changes."""
    if not files:
        return root, ()
    contents = [file.source.read_bytes() for file in files]
    digest = hashlib.sha256()
    for file, content in zip(files, contents, strict=True):
        digest.update(f"{file.target}\0{file.mode:o}\0{len(content)}\0".encode() + content)
    folder = root / digest.hexdigest()[:16]
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
    return folder, tuple((file.target, folder / file.target.lstrip("/"), file.mode) for file in files)


def _rename_unless_there(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError:
        if not target.is_dir():  # else somebody laid out the same files just before
            raise
        shutil.rmtree(source)


def _moved(folders: str, placed: Sequence[tuple[str, Path, int]]) -> str:
    """A list of folders, those of the image where they were laid out."""
    places = {posixpath.dirname(target): str(source.parent) for target, source, _ in placed}
    return os.pathsep.join(places.get(folder, folder) for folder in folders.split(os.pathsep))


def _joined(folders: Sequence[Path], rest: str) -> str:
    return os.pathsep.join(dict.fromkeys([*map(str, folders), *rest.split(os.pathsep)]))
