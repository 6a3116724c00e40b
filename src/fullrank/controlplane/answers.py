"""What a client is told: objects, lists, and errors in the form of a Status. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec
from aiohttp import web

from fullrank.api.meta import Json
from fullrank.api.scheme import CLAIM, POD, POD_TEMPLATE, SERVICE, SERVICE_ACCOUNT, Kind
from fullrank.errors import ApplyConflict, Cause, FullrankError, Gone, Invalid

JSON = "application/json"
SHOWN_WHEN_GONE = (POD, SERVICE, SERVICE_ACCOUNT, CLAIM, POD_TEMPLATE)  # others answer with a Status
# Every message that is about an object names it so: `pods "a"`, `PyTorchJob.kubeflow.org "a"`.
NAMED = re.compile(
    r'(?:Operation cannot be fulfilled on |object is being deleted: )?([\w/-]+)(?:\.(\S+))? "([^"]*)"'
)

UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
MOST_WARNINGS, LONGEST_WARNING, LONGEST_WARNINGS = 50, 1024, 4096  # and how long they may be all together


def encoded(value: object, *, status: int = 200, media: str = JSON) -> web.Response:
    return raw(msgspec.json.encode(value), status=status, media=media)


def raw(body: bytes, *, status: int = 200, media: str = JSON) -> web.Response:
    headers = {"Content-Type": media, "Cache-Control": "no-cache, private"}
    return web.Response(body=body, status=status, headers=headers)


def warnings(texts: Iterable[str]) -> Iterator[str]:
    """Values of Warning headers, which clients print: as many as they take, for a long head they refuse."""
    room = LONGEST_WARNINGS
    for text in islice(dict.fromkeys(texts), MOST_WARNINGS):
        value = f'299 - "{_quotable(text[:LONGEST_WARNING])}"'
        room -= len(value)
        if room < 0:
            return
        yield value


def _quotable(text: str) -> str:
    """Without what is not to be printed: it has no place in a header."""
    shown = UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
    return shown.encode("ascii", "backslashreplace").decode().replace("\\", "\\\\").replace('"', '\\"')


def refusal(error: FullrankError) -> web.Response:
    return encoded(failure(error), status=error.code)


def listed(kind: Kind, items: Sequence[bytes], metadata: Json) -> bytes:
    """A list from objects that are JSON already."""
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": metadata}
    return b'%s,"items":[%s]}' % (msgspec.json.encode(head)[:-1], b",".join(items))


def list_metadata(revision: int, proceed: str = "", remaining: int = 0) -> Json:
    metadata: Json = {"resourceVersion": str(revision)}
    if proceed:
        metadata |= {"continue": proceed, "remainingItemCount": remaining}
    return metadata


def success(kind: Kind, name: str, uid: str = "") -> Json:
    details: Json = {"name": name, "kind": kind.plural}
    if kind.group:
        details["group"] = kind.group
    if uid:
        details["uid"] = uid
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def failure(error: FullrankError) -> Json:
    status = status_of(error.code, error.reason, str(error), _details(error))
    if isinstance(error, Gone) and error.proceed:
        status["metadata"] = {"continue": error.proceed}
    return status


def status_of(code: int, reason: str, message: str, details: Json | None = None) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details or {},
        "code": code,
    }


def _details(error: FullrankError) -> Json:
    about = NAMED.match(error.what if isinstance(error, Invalid) else str(error))
    details: Json = {}
    if about:
        kind, group, name = about.groups()
        details = {"name": name, "group": group, "kind": kind}
    if isinstance(error, Invalid | ApplyConflict):
        details["causes"] = [_cause(cause) for cause in error.causes]
    return {word: value for word, value in details.items() if value}


def _cause(cause: Cause) -> Json:
    message = f"{cause.message} ({cause.hint})" if cause.hint else cause.message
    return {"reason": cause.reason, "message": message, "field": cause.field}
