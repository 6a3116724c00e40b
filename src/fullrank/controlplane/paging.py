"""A long list in pages that are all true at one moment, however much is written meanwhile."""

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.controlplane.store import Record, Store
from fullrank.errors import BadRequest, Gone

TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)
LIST_TOO_OLD = "The resourceVersion for the provided list is too old."


@dataclass(frozen=True, slots=True)
class Page:
    records: list[Record]
    revision: int
    proceed: str = ""  # the `continue` token; empty on the last page
    remaining: int = 0  # how many more match


class _Token(msgspec.Struct, frozen=True):
    """Where the next page starts, and the revision it must be true at; in Kubernetes' own form."""

    rv: int
    start: str
    v: str = "meta.k8s.io/v1"


def page(
    store: Store,
    kind: Kind,
    namespace: str,
    *,
    chosen: Callable[[Json], bool] | None,
    limit: int,
    proceed: str,
    at: int | None = None,
) -> Page:
    """The first page, as of revision `at` (the last one unless given), or the one that `proceed` leads to."""
    token = _decoded(proceed) if proceed else _Token(store.revision if at is None else at, "")
    if token.rv < 0:  # from a token that came with a Gone: go on with what is there now
        token = _Token(store.revision, token.start)
    try:
        found = store.select(kind.group_resource, namespace, at=token.rv)
    except Gone as error:
        if not proceed:
            raise Gone(str(error) if token.rv > store.revision else LIST_TOO_OLD) from error
        raise Gone(TOO_OLD, _encoded(_Token(-1, token.start))) from error
    start = tuple(token.start.split("/", 1)) if token.start else ("", "")
    matching = [
        (place, record)
        for place, record in found
        if (place.namespace, place.name) > start and (chosen is None or chosen(record.obj))
    ]
    shown = matching[:limit] if limit > 0 else matching
    records = [record for _, record in shown]
    if len(shown) == len(matching):
        return Page(records, token.rv)
    last = shown[-1][0]
    onward = _Token(token.rv, f"{last.namespace}/{last.name}")
    return Page(records, token.rv, _encoded(onward), len(matching) - len(shown))


def _encoded(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decoded(text: str) -> _Token:
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=_Token)
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise BadRequest(f"invalid continue token: continue key is not valid: {error}") from error
