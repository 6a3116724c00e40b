"""Bodies in protobuf, which Go clients prefer for Kubernetes' own kinds: read here, always answered in JSON.

The field numbers stand in the table of core types. Go's encoding writes zeros for fields that were never set, so zeros
are dropped unless the table says that they mean something.
"""

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeAlias

import msgspec

from fullrank.api.core_types import lines
from fullrank.api.meta import Json, micro_stamp, stamp
from fullrank.errors import BadRequest, Unsupported

MAGIC = b"k8s\x00"
MEDIA = "application/vnd.kubernetes.protobuf"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DEEPEST = 64

Value: TypeAlias = int | bytes


@dataclass(frozen=True, slots=True)
class Leaf:
    name: str
    word: str  # the type, as the table writes it
    zero_counts: bool


@dataclass(frozen=True, slots=True)
class Message:
    """What a field number means: a field of the object, or a message whose fields JSON shows in its place."""

    fields: dict[int, "Leaf | Message"] = field(default_factory=dict)


def object_in(body: bytes) -> Json:
    if not body.startswith(MAGIC):
        raise BadRequest("the body is not protobuf as Kubernetes writes it: it does not begin with k8s")
    try:
        envelope = dict(_fields(body[len(MAGIC) :]))
        meta = dict(_fields(_bytes(envelope.get(1, b""))))
        version, kind = _bytes(meta.get(1, b"")).decode(), _bytes(meta.get(2, b"")).decode()
        if kind not in lines():
            raise Unsupported(f"{kind} is not known in protobuf; send application/json")
        return {"apiVersion": version, "kind": kind, **_object(_bytes(envelope.get(2, b"")), kind, 0)}
    except (ValueError, IndexError, OverflowError, msgspec.DecodeError) as problem:
        raise BadRequest(f"protobuf parse error: {problem}") from None


def _object(raw: bytes, name: str, depth: int) -> Json:
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    return _filled({}, raw, _message(name), depth)


def _filled(obj: Json, raw: bytes, message: Message, depth: int) -> Json:
    for number, value in _fields(raw):
        known = message.fields.get(number)
        if isinstance(known, Message):
            _filled(obj, _bytes(value), known, depth)
        elif known is not None:
            _put(obj, known, value, depth)
    return obj


def _put(obj: Json, leaf: Leaf, value: Value, depth: int) -> None:
    if leaf.word.startswith("["):
        item = leaf.word.partition("]")[2]
        obj.setdefault(leaf.name, []).append(_value(item, value, depth))
    elif leaf.word.startswith("{}"):
        entry = dict(_fields(_bytes(value)))
        key = _bytes(entry.get(1, b"")).decode()
        obj.setdefault(leaf.name, {})[key] = _value(leaf.word[2:], entry.get(2, b""), depth)
    else:
        read = _value(leaf.word, value, depth)
        if read is not None and (read not in ("", 0, False) or leaf.zero_counts or isinstance(read, dict)):
            obj[leaf.name] = read


def _value(word: str, value: Value, depth: int) -> Any:
    match word:
        case "int32" | "int64":
            return _signed(_int(value))
        case "bool":
            return bool(_int(value))
        case "bytes":
            return b64encode(_bytes(value)).decode()
        case "time" | "microtime":
            return _time(dict(_fields(_bytes(value))), word)
        case "quantity":
            return _bytes(dict(_fields(_bytes(value))).get(1, b"0")).decode()
        case "intstr":
            parts = dict(_fields(_bytes(value)))
            return _bytes(parts.get(3, b"")).decode() if parts.get(1) else _signed(_int(parts.get(2, 0)))
        case "any":
            return msgspec.json.decode(_bytes(dict(_fields(_bytes(value))).get(1, b"{}")))
    if word == "string" or word.startswith("("):
        return _bytes(value).decode()
    return (
        _object(_bytes(value), word.partition("=")[0], depth + 1)
        if word in lines()
        else _bytes(value).decode()
    )


def _time(parts: dict[int, Value], word: str) -> str | None:
    seconds, nanos = _signed(_int(parts.get(1, 0))), _int(parts.get(2, 0))
    if not seconds:
        return None  # Go's zero time
    moment = EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000)
    return micro_stamp(moment) if word == "microtime" else stamp(moment)


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise ValueError("a number is expected where there is none")  # noqa: TRY004  # it is the input that is wrong
    return value


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a text or message is expected where there is a number")  # noqa: TRY004
    return value


def _fields(raw: bytes) -> Iterator[tuple[int, Value]]:
    position = 0
    while position < len(raw):
        tag, position = _varint(raw, position)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, position = _varint(raw, position)
            yield number, value
            continue
        if wire == 2:
            length, position = _varint(raw, position)
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {position}")
        if position + length > len(raw):
            raise ValueError("the message ends too early")
        yield number, raw[position : position + length]
        position += length


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 70, 7):
        byte = raw[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError(f"a number at byte {position} is too long")


@cache
def _message(name: str) -> Message:
    message = Message()
    for part in lines()[name]:
        label, _, word = part.partition(":")
        name_of_field, _, number = label.rstrip("!?").partition("#")
        if not number:
            continue
        leaf = Leaf(name_of_field, word.partition("=")[0], zero_counts=label[-1] in "!?")
        outer, _, inner = number.rpartition(".")
        home = message
        if outer:
            within = message.fields.setdefault(int(outer), Message())
            home = within if isinstance(within, Message) else message
        home.fields[int(inner)] = leaf
    return message
