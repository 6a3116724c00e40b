"""Label and field selectors, in Kubernetes' syntax and with its complaints."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from fullrank.api import names
from fullrank.api.meta import Json, labels_of
from fullrank.api.scheme import Kind
from fullrank.errors import BadRequest


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one value; `None` stands for a value that is not there."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def holds(self, value: str | None) -> bool:
        return OPERATORS[self.operator](value, self.values)


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; none at all selects everything."""

    requirements: tuple[Requirement, ...]
    read: Callable[[Json, str], str | None]

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, obj: Json) -> bool:
        return all(requirement.holds(self.read(obj, requirement.key)) for requirement in self.requirements)

    def exact(self, key: str) -> str:
        """The one value that `key` must have, if the selector says so; else empty."""
        for requirement in self.requirements:
            if requirement.key == key and requirement.operator in ("=", "=="):
                return next(iter(requirement.values))
        return ""


def _is_number(value: str | None) -> bool:
    return value is not None and re.fullmatch(r"[+-]?\d+", value) is not None


def _compare(value: str | None, bound: str) -> int:
    if value is None or not _is_number(value):
        return 0
    return (int(value) > int(bound)) - (int(value) < int(bound))


OPERATORS: dict[str, Callable[[str | None, frozenset[str]], bool]] = {
    "=": lambda value, values: value in values,
    "==": lambda value, values: value in values,
    "in": lambda value, values: value in values,
    "!=": lambda value, values: value not in values,
    "notin": lambda value, values: value not in values,
    "exists": lambda value, _: value is not None,
    "!": lambda value, _: value is None,
    ">": lambda value, values: _compare(value, next(iter(values))) > 0,
    "<": lambda value, values: _compare(value, next(iter(values))) < 0,
}


# --- labels


def label_selector(text: str) -> Selector:
    """Parses `app=web,tier in (a, b),!old`; BadRequest with Kubernetes' own words if it cannot."""
    return Selector(tuple(_Labels(text).requirements()), _read_label) if text else ALL_LABELS


def _read_label(obj: Json, key: str) -> str | None:
    return labels_of(obj).get(key)


ALL_LABELS = Selector((), _read_label)

_TOKEN = re.compile(r"\s*(==|!=|[=!(),<>]|[^\s=!(),<>]+)")
_SYMBOLS = frozenset(("==", "!=", *"=!(),<>"))


class _Labels:
    """A recursive-descent parser over the tokens of one selector; the end of the text is the empty token."""

    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._at = 0

    def requirements(self) -> Iterator[Requirement]:
        if self._ahead() and not self._begins_requirement():
            raise BadRequest(f"found '{self._ahead()}', expected: !, identifier, or 'end of string'")
        while self._ahead():
            yield self._requirement()
            found = self._take()
            if found not in (",", ""):
                raise BadRequest(f"found '{found}', expected: ',' or 'end of string'")
            if found == "," and not self._begins_requirement():
                raise BadRequest(f"found '{self._ahead()}', expected: identifier after ','")

    def _ahead(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._ahead()
        self._at += 1
        return token

    def _begins_requirement(self) -> bool:
        return self._ahead() == "!" or _is_word(self._ahead())

    def _requirement(self) -> Requirement:
        negated = self._ahead() == "!"
        if negated:
            self._take()
        key = self._word()
        _check_key(key)
        if negated:
            return Requirement(key, "!")
        if self._ahead() in (",", ""):
            return Requirement(key, "exists")
        operator = self._take()
        if operator not in OPERATORS or operator in ("!", "exists"):
            raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._listed() if operator in ("in", "notin") else [self._value()]
        _check_values(key, operator, sorted(values))
        return Requirement(key, operator, frozenset(values))

    def _word(self) -> str:
        token = self._take()
        if not _is_word(token):
            raise _unparsable(f"found '{token}', expected: identifier")
        return token

    def _value(self) -> str:
        return "" if self._ahead() in (",", "") else self._word()

    def _listed(self) -> list[str]:
        """`(a, b)`; as in Kubernetes, a value that is left out is the empty one."""
        if (opening := self._take()) != "(":
            raise _unparsable(f"found '{opening}' expected: '('")
        if self._ahead() not in (",", ")") and not _is_word(self._ahead()):
            raise _unparsable(f"found '{self._ahead()}', expected: ',', ')' or identifier")
        values = [self._item()]
        while (separator := self._take()) == ",":
            values.append(self._item())
        if separator != ")":
            raise _unparsable(f"found '{separator}', expected: ',' or ')'")
        return values

    def _item(self) -> str:
        return self._take() if _is_word(self._ahead()) else ""


def _is_word(token: str) -> bool:
    return token != "" and token not in _SYMBOLS


def _unparsable(why: str) -> BadRequest:
    return BadRequest(f"unable to parse requirement: {why}")


def _check_key(key: str) -> None:
    for problem in names.qualified(key):
        raise _unparsable(f'<nil>: Invalid value: "{key}": {problem}')


def _check_values(key: str, operator: str, values: list[str]) -> None:
    for position, value in enumerate(values):
        said = f'Invalid value: "{value}":'
        if operator in "<>" and not _is_number(value):
            raise _unparsable(
                f"values[{position}]: {said} for 'Gt', 'Lt' operators, the value must be an integer"
            )
        for problem in names.label_value(value):
            raise _unparsable(f"values[{position}][{key}]: {said} {problem}")


# --- fields

_EVERY_KIND = ("metadata.name", "metadata.namespace")
_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Service": ("spec.clusterIP", "spec.type"),
    "Secret": ("type",),
    "Event": (
        *(f"involvedObject.{field}" for field in _REFERENCE),
        "reason", "reportingComponent", "source", "type",
    ),
    "Event.events.k8s.io": (
        *(f"regarding.{field}" for field in _REFERENCE), "reason", "reportingController", "type",
    ),
}  # fmt: skip
_ABSENT = {"spec.unschedulable": "false", "spec.hostNetwork": "false"}


def field_selector(text: str, kind: Kind) -> Selector:
    """Parses `status.phase!=Running,spec.nodeName=a`; only fields that Kubernetes selects this kind by."""
    requirements = tuple(_field_requirement(term, text) for term in _terms(text) if term)
    for requirement in requirements:
        _check_field(requirement.key, kind)
    return Selector(requirements, _read_field)


def _terms(text: str) -> list[str]:
    return [match[0] for match in re.finditer(r"(?:\\.|[^,\\]|\\$)+", text)]


def _field_requirement(term: str, text: str) -> Requirement:
    match = re.match(r"(.*?)(!=|==|=)(.*)", term, re.DOTALL)
    if match is None:
        raise BadRequest(f"invalid selector: '{text}'; can't understand '{term}'")
    return Requirement(match[1], match[2], frozenset((_unescaped(match[3]),)))


def _unescaped(value: str) -> str:
    def plain(match: re.Match[str]) -> str:
        if match[0] == "=":
            raise BadRequest("invalid field selector: unescaped character in value: 61")
        if match[0][1:] not in ("\\", ",", "="):
            raise BadRequest(f"invalid field selector: invalid escape sequence: {match[0]}")
        return match[0][1:]

    return re.sub(r"\\.?|=", plain, value)


def _check_field(path: str, kind: Kind) -> None:
    if path in _EVERY_KIND or path in FIELDS.get(kind.group_kind, ()):
        return
    if kind.group_kind in FIELDS or kind.is_custom:
        raise BadRequest(f"field label not supported: {path}")
    raise BadRequest(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')


def _read_field(obj: Json, path: str) -> str | None:
    value: object = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if path == "source" and isinstance(value, dict):
        value = value.get("component") or obj.get("reportingComponent")
    if value is None:
        return _ABSENT.get(path, "")
    return str(value).lower() if isinstance(value, bool) else str(value)
