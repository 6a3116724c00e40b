"""What lies below a home's `environments`: what it was made from, who has use for it, and how large it is."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from fullrank.images.catalogue import ENVIRONMENT_NAME, FILES, NAMED, Images
from fullrank.images.entries import Entry, Recipe
from fullrank.images.environments import is_whole, recipe_of

ABOUT_TO_USE = timedelta(minutes=2)  # somebody who asked for it so long ago may not have begun yet


@dataclass(frozen=True, slots=True)
class Environment:
    """One that is built."""

    path: Path
    recipe: Recipe | None  # None: it does not say
    names: tuple[str, ...]
    entries: tuple[Entry, ...]  # of the catalogue, that lead to it

    @property
    def key(self) -> str:
        return self.path.name

    @property
    def title(self) -> str:
        """The first thing in it that people will know it by."""
        if self.recipe is None or not self.recipe.requirements:
            return f"Python {self.recipe.python}" if self.recipe else "?"
        first, *rest = self.recipe.requirements
        return f"{first} and {len(rest)} more" if rest else first


def environments(images: Images) -> list[Environment]:
    """All that are built, by key; those that somebody put below `named` himself last."""
    named, led_to = _names(images.root), _entries(images)
    places = [path for path in _folders(images.root) if path.name not in (NAMED, FILES) and is_whole(path)]
    own = sorted(path for path in named if path not in places)
    return [
        Environment(path, recipe_of(path), tuple(named.get(path, ())), tuple(led_to.get(path.name, ())))
        for path in (*sorted(places), *own)
    ]


def _names(root: Path) -> dict[Path, list[str]]:
    found: dict[Path, list[str]] = {}
    for path in sorted(_children(root / NAMED)):
        if is_whole(path):
            real = path.resolve()
            place = root / real.name if real.parent == root.resolve() else path
            found.setdefault(place, []).append(path.name)
    return found


def _entries(images: Images) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in images.entries():
        if (folder := images.folder_of(entry)) is not None:
            found.setdefault(folder.name, []).append(entry)
    return found


def layouts(images: Images) -> list[Path]:
    """The folders with files of images, of those as well that no entry describes any more."""
    return sorted(_folders(images.root / FILES))


def is_idle(folder: Path, used: Collection[Path], now: datetime) -> bool:
    """Whether no running container needs it and nobody asked for it just now."""
    if {folder, folder.resolve()} & {*used}:
        return False
    return now - datetime.fromtimestamp(folder.stat().st_mtime, UTC) > ABOUT_TO_USE


def give_name(root: Path, name: str, environment: Path) -> None:
    """From now on the name means this environment."""
    link, draft = root / NAMED / name, root / NAMED / f".{name}.new"
    link.parent.mkdir(parents=True, exist_ok=True)
    draft.unlink(missing_ok=True)
    draft.symlink_to(os.path.join("..", environment.name))
    draft.rename(link)


def take_name(root: Path, name: str) -> bool:
    """What the name meant stays; False if the name is a folder that was not made by us."""
    link = root / NAMED / name
    if not link.is_symlink():
        return False
    link.unlink()
    return True


def is_name(text: str) -> bool:
    return ENVIRONMENT_NAME.fullmatch(text) is not None


def packages_in(environment: Path) -> list[tuple[str, str]]:
    """What is installed, and in which version."""
    notes = environment.glob("lib/python*/site-packages/*.dist-info")
    found = (note.name.removesuffix(".dist-info").rpartition("-") for note in notes)
    return sorted((name, version) for name, _, version in found)


def size_of(folder: Path) -> int:
    """Bytes in it; what several of its files share is counted once."""
    seen: dict[tuple[int, int], int] = {}
    for place, _, files in os.walk(folder):
        for name in files:
            try:
                status = os.lstat(os.path.join(place, name))
            except OSError:  # it went while we counted
                continue
            seen[status.st_dev, status.st_ino] = status.st_size
    return sum(seen.values())


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in _children(folder) if path.is_dir() and not path.name.endswith(".building"))


def _children(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []
