"""The objects a pod's containers take settings from: which they are, and what they hold now."""

import base64
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from fullrank.api.meta import Json, namespace_of
from fullrank.api.scheme import CLAIM, CONFIG_MAP, SECRET, Kind
from fullrank.client.port import Key, Reader
from fullrank.errors import NotFound


class Unprepared(Exception):
    """A container that cannot be started yet, in kubelets' words; it is tried again."""

    def __init__(self, message: str, *, reason: str = "CreateContainerConfigError") -> None:
        self.reason = reason
        super().__init__(message)


class Source(NamedTuple):
    kind: Kind
    name: str


Contents: TypeAlias = Mapping[str, bytes]
Sources: TypeAlias = Mapping[Source, Contents | None]  # None: there is no such object


async def gather(client: Reader, pod: Json) -> Sources:
    """Everything a pod refers to, read once before its container is put together."""
    found: dict[Source, Contents | None] = {}
    for source in references(pod):
        if source in found:
            continue
        try:
            found[source] = contents(await client.get(Key(source.kind, namespace_of(pod), source.name)))
        except NotFound:
            found[source] = None
    return found


def references(pod: Json) -> Iterator[Source]:
    spec = pod["spec"]
    for container in [*(spec.get("initContainers") or []), *spec["containers"]]:
        for bulk in container.get("envFrom") or []:
            yield from _named(bulk, {"configMapRef": CONFIG_MAP, "secretRef": SECRET})
        for variable in container.get("env") or []:
            yield from _named(
                variable.get("valueFrom") or {}, {"configMapKeyRef": CONFIG_MAP, "secretKeyRef": SECRET}
            )
    for volume in spec.get("volumes") or []:
        yield from _of_volume(volume)
        for projection in (volume.get("projected") or {}).get("sources") or []:
            yield from _named(projection, {"configMap": CONFIG_MAP, "secret": SECRET})


def _of_volume(volume: Json) -> Iterator[Source]:
    yield from _named(volume, {"configMap": CONFIG_MAP})
    if secret := volume.get("secret"):
        yield Source(SECRET, secret.get("secretName", ""))
    if claim := volume.get("persistentVolumeClaim"):
        yield Source(CLAIM, claim["claimName"])


def _named(part: Json, kinds: Mapping[str, Kind]) -> Iterator[Source]:
    for field, kind in kinds.items():
        if reference := part.get(field):
            yield Source(kind, reference.get("name", ""))


def contents(obj: Json) -> Contents:
    """The keys of a ConfigMap or Secret as bytes."""
    if obj.get("kind") == "Secret":
        plain = {name: text.encode() for name, text in (obj.get("stringData") or {}).items()}
        return {name: base64.b64decode(text) for name, text in (obj.get("data") or {}).items()} | plain
    binary = {name: base64.b64decode(text) for name, text in (obj.get("binaryData") or {}).items()}
    return {name: str(text).encode() for name, text in (obj.get("data") or {}).items()} | binary


def keys_of(sources: Sources, source: Source, *, optional: bool) -> Contents:
    found = sources.get(source)
    if found is not None:
        return found
    if optional:
        return {}
    raise Unprepared(f'{source.kind.singular} "{source.name}" not found')
