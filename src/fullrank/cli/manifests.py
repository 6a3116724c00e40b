"""The files a user names, as objects ready to be submitted."""

import sys
from dataclasses import dataclass
from pathlib import Path

from fullrank.api.manifests import documents
from fullrank.api.meta import Json
from fullrank.api.schema import did_you_mean
from fullrank.api.scheme import CORE_KINDS, Kind, Scheme
from fullrank.dialects.registry import JOB_KINDS, SUBMITTED_KINDS
from fullrank.errors import BadRequest

SCHEME = Scheme((*CORE_KINDS, *(one.kind for one in SUBMITTED_KINDS)))


@dataclass(frozen=True, slots=True)
class Manifest:
    source: str
    kind: Kind
    obj: Json

    @property
    def is_job(self) -> bool:
        return any(one.kind == self.kind for one in JOB_KINDS)


def read_manifests(files: tuple[str, ...], namespace: str) -> list[Manifest]:
    """Everything in the files (`-` is standard input); objects that name no namespace get the given one."""
    return [manifest_of(file, one, namespace) for file in files for one in documents_in(file)]


def documents_in(file: str) -> list[Json]:
    return documents(_text(file), file)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except OSError as error:
        raise BadRequest(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadRequest(f"{file}: is not a text file") from error


def manifest_of(file: str, obj: Json, namespace: str) -> Manifest:
    version, word = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    kind = SCHEME.named(version, word)
    if kind is None:
        known = {one.kind: one.api_version for one in SCHEME}
        hint = f"it is in {known[word]}" if word in known else did_you_mean(word, known)
        what = (
            f'no kind "{word}" in version "{version}"'
            if word and version
            else "apiVersion and kind are required"
        )
        raise BadRequest(f"{file}: {what}" + (f" ({hint})" if hint else ""))
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise BadRequest(f"{file}: {word}: metadata: Required value: an object needs at least a name")
    if kind.namespaced and not metadata.get("namespace"):
        metadata["namespace"] = namespace
    return Manifest(file, kind, obj)
