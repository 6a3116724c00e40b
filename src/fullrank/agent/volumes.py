"""Volumes as folders of this machine: what a pod declares becomes a path, and what a container mounts a `Mount`."""

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from fullrank.agent.environment import Surroundings, expand
from fullrank.agent.places import Places
from fullrank.agent.projections import files_of, give_to, project
from fullrank.agent.runtime import Mount
from fullrank.agent.sources import Source, Sources, Unprepared
from fullrank.api.meta import Json, namespace_of, uid_of
from fullrank.api.scheme import CLAIM

PROJECTED = {"configMap", "secret", "downwardAPI", "projected"}
SHARED_MEMORY = Path("/dev/shm")
FAILED_MOUNT = "FailedMount"


def prepare_volumes(pod: Json, sources: Sources, around: Surroundings, places: Places) -> Mapping[str, Path]:
    """The folder (or, for some hostPaths, file) behind each volume; made if it is not there yet."""
    return {
        volume["name"]: _prepare(pod, volume, sources, around, places)
        for volume in pod["spec"].get("volumes") or []
    }


def refresh_volumes(pod: Json, sources: Sources, around: Surroundings, places: Places) -> None:
    """Brings what objects were projected into files up to date; what cannot be now stays as it was."""
    for volume in pod["spec"].get("volumes") or []:
        if PROJECTED & volume.keys():
            with suppress(Unprepared):
                _prepare(pod, volume, sources, around, places)


def release_volumes(pod_uid: str, places: Places) -> None:
    """Removes what lives only as long as the pod."""
    shutil.rmtree(places.volumes(pod_uid), ignore_errors=True)
    for folder in SHARED_MEMORY.glob(f"fullrank-{pod_uid}-*") if SHARED_MEMORY.is_dir() else ():
        shutil.rmtree(folder, ignore_errors=True)


def mounts_of(
    container: Json, volumes: Mapping[str, Path], variables: Mapping[str, str], read_only: frozenset[str]
) -> tuple[Mount, ...]:
    """Where the container sees its volumes; `read_only` are those nobody may write to."""
    return tuple(
        Mount(
            _within(volumes[mount["name"]], mount, variables, container["name"]),
            "/" + mount["mountPath"].strip("/"),
            mount.get("readOnly", False) or mount["name"] in read_only,
        )
        for mount in container.get("volumeMounts") or []
        if mount["name"] in volumes
    )


def read_only_volumes(pod: Json) -> frozenset[str]:
    return frozenset(
        volume["name"]
        for volume in pod["spec"].get("volumes") or []
        if PROJECTED & volume.keys() or (volume.get("persistentVolumeClaim") or {}).get("readOnly")
    )


def _within(volume: Path, mount: Json, variables: Mapping[str, str], container: str) -> Path:
    """The mounted part of a volume: never outside of it, whatever links lie in it."""
    part = mount.get("subPath") or expand(mount.get("subPathExpr") or "", variables)
    if not part:
        return volume
    where = f'failed to prepare subPath for volumeMount "{mount["name"]}" of container "{container}"'
    path = PurePosixPath(part)
    if path.is_absolute() or ".." in path.parts:
        raise Unprepared(f"{where}: {part!r} leads out of the volume")
    inside = Path(os.path.realpath(volume / path))
    if not inside.is_relative_to(os.path.realpath(volume)):
        raise Unprepared(f"{where}: {part!r} leads out of the volume through a symbolic link")
    if not inside.exists():
        inside.mkdir(parents=True, mode=0o777)
        inside.chmod(0o777)
    return inside


def _prepare(pod: Json, volume: Json, sources: Sources, around: Surroundings, places: Places) -> Path:
    name = volume["name"]
    own = places.volumes(uid_of(pod)) / str(name)
    failed = f'MountVolume.SetUp failed for volume "{name}" : '
    kind: str = next((kind for kind in volume if kind != "name"), "emptyDir")
    if kind == "emptyDir":
        return _empty_dir(volume.get("emptyDir") or {}, own, pod)
    if kind == "hostPath":
        return _host_path(volume["hostPath"], failed)
    if kind == "persistentVolumeClaim":
        claim = Source(CLAIM, volume[kind]["claimName"])
        if sources.get(claim) is None:
            raise Unprepared(f'persistentvolumeclaim "{claim.name}" not found', reason=FAILED_MOUNT)
        return _open_folder(places.claim(namespace_of(pod), claim.name))
    if kind not in PROJECTED:
        raise Unprepared(
            f"{failed}this machine has no volumes of type {kind}; use persistentVolumeClaim, hostPath or emptyDir",
            reason=FAILED_MOUNT,
        )
    try:
        project(own, files_of(pod, volume, sources, around), fs_group(pod))
    except Unprepared as why:
        raise Unprepared(f"{failed}{why}", reason=FAILED_MOUNT) from why
    return own


def _empty_dir(spec: Json, own: Path, pod: Json) -> Path:
    if spec.get("medium") == "Memory" and SHARED_MEMORY.is_dir():
        return _open_folder(SHARED_MEMORY / f"fullrank-{uid_of(pod)}-{own.name}", fs_group(pod))
    return _open_folder(own, fs_group(pod))


def _open_folder(path: Path, group: int | None = None) -> Path:
    """A folder that a container may write to, whoever it runs as; the home above it keeps others out."""
    if not path.is_dir():
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o777)
        if group is not None:
            give_to(group, path, writable=True)
    return path


def fs_group(pod: Json) -> int | None:
    group: int | None = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return group


HOST_PATHS: Mapping[str, tuple[Callable[[int], bool], str]] = {
    "Directory": (stat.S_ISDIR, "directory"),
    "File": (stat.S_ISREG, "file"),
    "Socket": (stat.S_ISSOCK, "socket file"),
    "CharDevice": (stat.S_ISCHR, "character device"),
    "BlockDevice": (stat.S_ISBLK, "block device"),
}


def _host_path(spec: Json, failed: str) -> Path:
    path, kind = Path(spec["path"]), str(spec.get("type") or "")
    if kind in ("", "DirectoryOrCreate") and not path.exists():
        path.mkdir(parents=True, mode=0o755)
    if kind == "FileOrCreate" and not path.exists():
        path.touch(mode=0o644)
    if expected := HOST_PATHS.get(kind.removesuffix("OrCreate")):
        is_kind, word = expected
        if not (path.exists() and is_kind(path.stat().st_mode)):
            raise Unprepared(
                f"{failed}hostPath type check failed: {path} is not a {word}", reason=FAILED_MOUNT
            )
    return path
