"""Objects as files: what a ConfigMap, a Secret or the pod itself holds, in a folder that is changed in one rename.

A folder is laid out as kubelets do it, because programs that watch such files expect it: the files lie in a folder of
their own, `..data` is a link to it, and each name that the volume shows is a link through `..data`.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from fullrank.agent.environment import Surroundings, field_of, resource_of
from fullrank.agent.sources import Source, Sources, Unprepared, keys_of
from fullrank.api.meta import Json
from fullrank.api.scheme import CONFIG_MAP, SECRET

DEFAULT_MODE = 0o644
CURRENT = "..data"


class File(NamedTuple):
    path: str  # in the volume
    content: bytes
    mode: int


def files_of(pod: Json, volume: Json, sources: Sources, around: Surroundings) -> list[File]:
    """What a volume of kind configMap, secret, downwardAPI or projected shows now; Unprepared if that is not there."""
    kind: str = next(kind for kind in volume if kind != "name")
    projections = volume[kind].get("sources") or [] if kind == "projected" else [{kind: volume[kind]}]
    mode = volume[kind].get("defaultMode", DEFAULT_MODE)
    files = [file for one in projections for file in _projected(pod, one, mode, sources, around)]
    for file in files:
        path = PurePosixPath(file.path)
        if path.is_absolute() or ".." in path.parts or path.parts[0].startswith(".."):
            raise Unprepared(f"{file.path!r} leads out of the volume")
    return files


def _projected(pod: Json, source: Json, mode: int, sources: Sources, around: Surroundings) -> Iterator[File]:
    for field, kind in (("configMap", CONFIG_MAP), ("secret", SECRET)):
        if spec := source.get(field):
            name = spec.get("name") or spec.get("secretName", "")
            yield from _keys(Source(kind, name), spec, spec.get("defaultMode", mode), sources)
    for item in (source.get("downwardAPI") or {}).get("items") or []:
        if "fieldRef" in item:
            text = field_of(pod, item["fieldRef"]["fieldPath"], around)
        else:
            text = resource_of(pod, item["resourceFieldRef"], around)
        yield File(item["path"], text.encode(), item.get("mode", mode))
    if token := source.get("serviceAccountToken"):
        yield File(token["path"], around.token.encode(), mode)


def _keys(source: Source, spec: Json, mode: int, sources: Sources) -> Iterator[File]:
    optional = spec.get("optional", False)
    keys = keys_of(sources, source, optional=optional)
    if not spec.get("items"):
        yield from (File(name, content, mode) for name, content in keys.items())
        return
    for item in spec["items"]:
        if item["key"] in keys:
            yield File(item["path"], keys[item["key"]], item.get("mode", mode))
        elif not optional:
            raise Unprepared(f"references non-existent {source.kind.kind.lower()} key: {item['key']}")


def project(folder: Path, files: list[File], group: int | None = None) -> None:
    """Makes the folder show these files and no others, all at the same moment; does nothing if it does already."""
    if _shown(folder) == {file.path: file.content for file in files}:
        return
    before = _current(folder)
    fresh = folder / f"..{int(before.name.removeprefix('..')) + 1 if before else 1}"
    shutil.rmtree(fresh, ignore_errors=True)
    _write(fresh, files, group)
    folder.chmod(0o755)
    link = folder / f"{CURRENT}_new"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.rename(folder / CURRENT)
    names = {PurePosixPath(file.path).parts[0] for file in files}
    for shown in folder.iterdir():
        if not shown.name.startswith("..") and shown.name not in names:
            shown.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{CURRENT}/{name}")
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)


def _current(folder: Path) -> Path | None:
    try:
        return folder / os.readlink(folder / CURRENT)
    except FileNotFoundError:
        return None


def _shown(folder: Path) -> dict[str, bytes] | None:
    """None if nothing was ever projected there, or not to the end."""
    current = _current(folder)
    if current is None:
        return None
    found = [path for path in current.rglob("*") if path.is_file()]
    if not all((folder / path.relative_to(current).parts[0]).is_symlink() for path in found):
        return None
    return {str(path.relative_to(current)): path.read_bytes() for path in found}


def _write(folder: Path, files: list[File], group: int | None) -> None:
    folder.mkdir(parents=True)
    for file in files:
        place = folder / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content)
        place.chmod(file.mode)
    for path in (folder, *folder.rglob("*")):
        if path.is_dir():
            path.chmod(0o755)
        if group is not None:
            give_to(group, path, writable=False)


def give_to(group: int, path: Path, *, writable: bool) -> None:
    """What `fsGroup` means: the group owns it, and may do with it what the volume allows."""
    with suppress(PermissionError):  # only root can; elsewhere everything runs as one user anyway
        os.chown(path, -1, group)
    may = 0o060 if writable else 0o040
    folder = 0o2010 if path.is_dir() else 0
    path.chmod((path.stat().st_mode & 0o7777) | may | folder)
