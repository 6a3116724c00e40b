"""What a client asks: the address, the query, the body and the form it wants its answer in. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import msgspec
from multidict import MultiMapping

from fullrank.api.manifests import documents
from fullrank.api.meta import Json, moment_of
from fullrank.api.scheme import NAMESPACE, Kind, Scheme
from fullrank.client.port import PatchType, Propagation
from fullrank.controlplane import protobuf
from fullrank.controlplane.metadata import invalid_options, revision_named
from fullrank.controlplane.registry import Preconditions
from fullrank.errors import BadRequest, Cause, CauseReason, Invalid, NotFound, Unsupported

Form = Literal["plain", "table", "partial", "aggregated"]
PatchForm = PatchType | Literal["apply"]
FieldValidation = Literal["Strict", "Warn", "Ignore"]

NO_SUCH_RESOURCE = "the server could not find the requested resource"
PATCHES: dict[str, PatchForm] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
LONGEST_MANAGER = 128
FORBIDDEN: CauseReason = "FieldValueForbidden"
PROPAGATIONS: dict[str, Propagation] = {
    "Background": "Background",
    "Foreground": "Foreground",
    "Orphan": "Orphan",
}
FIELD_VALIDATIONS: dict[str, FieldValidation] = {"Strict": "Strict", "Warn": "Warn", "Ignore": "Ignore"}
LONGEST_AGO = 10**9  # seconds: before there were any logs


class Address(NamedTuple):
    """Where a request goes: a collection, an object in it, or a part of that object."""

    kind: Kind
    namespace: str
    name: str
    subresource: str


def address_of(scheme: Scheme, group: str, version: str, rest: list[str]) -> Address:
    """`namespaces/NS/pods/NAME/log`, below `/api/v1` or `/apis/GROUP/VERSION`; NotFound for what is not served."""
    if not all(rest):
        raise NotFound(NO_SUCH_RESOURCE)
    namespace = ""
    parts_of_namespace = rest[2:] in ([part] for part in NAMESPACE.subresources) and not group
    if rest[0] == "namespaces" and len(rest) > 2 and not parts_of_namespace:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    kind = scheme.at_path(group, version, plural)
    misplaced = kind is not None and (bool(namespace) != kind.namespaced) and (bool(namespace) or bool(name))
    if kind is None or misplaced or len(rest) > 3 or (subresource and subresource not in kind.subresources):
        raise NotFound(NO_SUCH_RESOURCE)
    return Address(kind, namespace, name, subresource)


def form_of(accept: str) -> Form:
    """The first form in the Accept header that we can give; plain JSON for whatever else is asked."""
    for media in accept.split(","):
        words = {word.strip() for word in media.split(";")}
        if "application/json" not in words:
            continue
        if "as=Table" in words:
            return "table"
        if words & {"as=PartialObjectMetadataList", "as=PartialObjectMetadata"}:
            return "partial"
        if "as=APIGroupDiscoveryList" in words:
            if "v=v2" in words:
                return "aggregated"
            continue
        return "plain"
    return "plain"


class Query:
    """The query string, with Kubernetes' ideas of what a flag and a number look like."""

    def __init__(self, values: MultiMapping[str]) -> None:
        self._values = values

    def text(self, name: str) -> str:
        return self._values.get(name, "")

    def flag(self, name: str) -> bool:
        """`true`, `True`, `1`, or the bare name."""
        return name in self._values and self._values[name].lower() not in ("false", "0")

    def number(self, name: str) -> int | None:
        text = self._values.get(name, "")
        if not text:
            return None
        try:
            return int(text)
        except ValueError:
            raise BadRequest(f'{name}: "{text}" is not a number') from None

    def dry_run(self, options: str) -> bool:
        asked = self._values.getall("dryRun", [])
        if any(word != "All" for word in asked):
            listed = ", ".join(f'"{word}"' for word in asked)
            problem = f'Unsupported value: [{listed}]: supported values: "All"'
            raise Invalid(f'{options}.meta.k8s.io ""', [Cause("dryRun", problem, "FieldValueNotSupported")])
        return bool(asked)

    def field_validation(self, options: str) -> FieldValidation:
        """What to do about unknown fields; a cluster warns unless told otherwise."""
        text = self.text("fieldValidation") or "Warn"
        if text in FIELD_VALIDATIONS:
            return FIELD_VALIDATIONS[text]
        problem = f'Unsupported value: "{text}": supported values: "", "Ignore", "Strict", "Warn"'
        raise Invalid(
            f'{options}.meta.k8s.io ""', [Cause("fieldValidation", problem, "FieldValueNotSupported")]
        )


def list_revision(query: Query) -> tuple[int, bool]:
    """The revision that a list names (0: none), and whether it wants that very one, not just nothing older."""
    match, revision = query.text("resourceVersionMatch"), query.text("resourceVersion")
    problem, reason = "", FORBIDDEN
    if match and query.text("continue"):
        problem = "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match and not revision:
        problem = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
    elif match not in ("", "Exact", "NotOlderThan"):
        problem = f'Unsupported value: "{match}": supported values: "Exact", "NotOlderThan", ""'
        reason = "FieldValueNotSupported"
    elif match == "Exact" and revision == "0":
        problem = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
    if problem:
        raise invalid_options("ListOptions", Cause("resourceVersionMatch", problem, reason))
    number = revision_named(revision)
    return number, match == "Exact" or (not match and number > 0 and bool(query.number("limit")))


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which lines of a container's log, and how. Lines are given whole, each with its line feed."""

    follow: bool = False
    previous: bool = False  # of the attempt before the current one
    timestamps: bool = False  # RFC 3339 with nanoseconds and a space before every line
    tail: int | None = None  # only the last so many lines (and, when following, what comes)
    since: datetime | None = None
    limit_bytes: int | None = None


def log_options(query: Query, now: datetime) -> LogOptions:
    tail, limit, ago = query.number("tailLines"), query.number("limitBytes"), query.number("sinceSeconds")
    causes = [
        Cause(name, f"Invalid value: {value}: must be greater than or equal to {least}")
        for name, value, least in (("tailLines", tail, 0), ("limitBytes", limit, 1), ("sinceSeconds", ago, 1))
        if value is not None and value < least
    ]
    since = now - timedelta(seconds=min(ago, LONGEST_AGO)) if ago is not None and ago > 0 else None
    if text := query.text("sinceTime"):
        since = _moment(text)
        if since is None:
            causes.append(
                Cause("sinceTime", f'Invalid value: "{text}": must be a time such as 2026-01-31T12:00:00Z')
            )
        if ago is not None:
            problem = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
            causes.append(Cause("sinceTime", problem, "FieldValueForbidden"))
    if causes:
        raise Invalid('PodLogOptions ""', causes)
    return LogOptions(
        follow=query.flag("follow"),
        previous=query.flag("previous"),
        timestamps=query.flag("timestamps"),
        tail=tail,
        since=since,
        limit_bytes=limit,
    )


def _moment(text: str) -> datetime | None:
    try:
        moment = moment_of(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    preconditions: Preconditions
    grace: int | None
    propagation: Propagation
    dry_run: bool


def delete_options(body: bytes, media: str, query: Query) -> DeleteOptions:
    """From the body if there is one, else from the query: clients do either."""
    given = json_object(body, media, "DeleteOptions") if body.strip() else {}
    wanted = given.get("preconditions") or {}
    orphan = given.get("orphanDependents", query.flag("orphanDependents"))
    said = given.get("propagationPolicy") or query.text("propagationPolicy")
    propagation = PROPAGATIONS.get(str(said or ("Orphan" if orphan else "Background")))
    if propagation is None:
        problem = (
            f'Unsupported value: "{said}": supported values: "Foreground", "Background", "Orphan", "nil"'
        )
        cause = Cause("propagationPolicy", problem, "FieldValueNotSupported")
        raise Invalid('DeleteOptions.meta.k8s.io ""', [cause])
    grace = given.get("gracePeriodSeconds", query.number("gracePeriodSeconds"))
    if not isinstance(wanted, dict) or not isinstance(grace, int | None):
        raise BadRequest("DeleteOptions: preconditions is an object, gracePeriodSeconds a number")
    conditions = Preconditions(str(wanted.get("uid") or ""), str(wanted.get("resourceVersion") or ""))
    return DeleteOptions(
        conditions, grace, propagation, query.dry_run("DeleteOptions") or bool(given.get("dryRun"))
    )


def json_object(body: bytes, media: str, kind: str) -> Json:
    """The object in a body of JSON, YAML or protobuf."""
    if media == protobuf.MEDIA:
        return protobuf.object_in(body)
    if media not in ("application/json", "application/yaml", "application/octet-stream", "*/*", ""):
        raise Unsupported(
            "the body of the request was in an unknown format - accepted media types include: "
            f"application/json, application/yaml, {protobuf.MEDIA}"
        )
    try:
        value = _yaml(body) if media == "application/yaml" else decoded(body)
    except BadRequest as problem:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; {problem}"
        ) from None
    if not isinstance(value, dict):
        raise BadRequest(f"the object provided is unrecognized (must be of type {kind}): it is not an object")
    return value


def patch_of(body: bytes, media: str, kind: Kind) -> tuple[PatchForm, Any]:
    taken = {word: form for word, form in PATCHES.items() if form != "strategic" or not kind.is_custom}
    form = taken.get(media)
    if form is None:
        accepted = ", ".join(taken)
        raise Unsupported(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    try:
        return form, _yaml(body) if form == "apply" else decoded(body)
    except BadRequest as problem:
        raise BadRequest(f"error decoding patch: {problem}") from None


def manager_of(query: Query, agent: str, options: str) -> str:
    """Who signs what is written: the name the client gives itself, or the first word of its user agent."""
    manager = query.text("fieldManager")
    if len(manager) > LONGEST_MANAGER:
        problem = f"Too long: may not be more than {LONGEST_MANAGER} bytes"
        raise Invalid(f'{options}.meta.k8s.io ""', [Cause("fieldManager", problem, "FieldValueTooLong")])
    if not manager.isprintable():
        problem = f"Invalid value: {manager!r}: should only contain printable characters"
        raise Invalid(f'{options}.meta.k8s.io ""', [Cause("fieldManager", problem)])
    return manager or agent.partition("/")[0][:LONGEST_MANAGER] or "unknown"


def repeated_fields(body: bytes) -> list[str]:
    """The paths of fields that a JSON body names twice: the last one counts, which is seldom what was meant."""
    found: list[str] = []

    def paired(pairs: list[tuple[str, Any]]) -> Any:
        if len({name for name, _ in pairs}) < len(pairs):
            found.append("")
        return _Pairs(pairs)

    if body[:1] != b"{":
        return []
    try:
        root = json.loads(body, object_pairs_hook=paired)
    except (ValueError, RecursionError):
        return []
    return sorted(set(_repeated(root, ""))) if found else []


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written."""


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            place = f"{path}.{name}" if path else name
            if name in seen:
                yield place
            seen.add(name)
            yield from _repeated(inner, place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _repeated(inner, f"{path}[{index}]")


def decoded(body: bytes) -> Any:
    if not body.strip():
        raise BadRequest("json parse error: unexpected end of JSON input (<empty>)")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        start = body[:80].decode(errors="replace")
        raise BadRequest(f"json parse error: {problem} ({start})") from None
    except RecursionError:
        raise BadRequest("json parse error: nested too deeply") from None


def _yaml(body: bytes) -> Any:
    try:
        text = body.decode()
    except UnicodeDecodeError as problem:
        raise BadRequest(f"yaml parse error: {problem}") from None
    found = documents(text, "yaml parse error")
    if len(found) != 1:
        raise BadRequest(f"yaml parse error: one document is expected, not {len(found)}")
    return found[0]
