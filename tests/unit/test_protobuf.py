import pytest

from fullrank.controlplane.protobuf import object_in
from fullrank.errors import BadRequest, Unsupported


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value % 2**64)


def text(field: int, value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


def sent(kind: str, raw: bytes, version: str = "v1") -> bytes:
    return b"k8s\x00" + text(1, text(1, version) + text(2, kind)) + text(2, raw)


def test_a_config_map_is_read() -> None:
    metadata = text(1, "c") + text(3, "") + text(8, b"") + text(11, text(1, "l") + text(2, "v"))
    raw = text(1, metadata) + text(2, text(1, "a") + text(2, "b")) + text(3, text(1, "x") + text(2, b"\x00"))
    assert object_in(sent("ConfigMap", raw)) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "c", "labels": {"l": "v"}},
        "data": {"a": "b"},
        "binaryData": {"x": "AA=="},
    }


def test_messages_that_json_does_not_show_are_opened() -> None:
    """A volume's source stands in a message of its own; so do amounts, and ports that may have a name."""
    volume = text(1, "v") + text(2, text(2, text(1, "Memory") + text(2, text(1, "1Gi"))))
    probe = text(1, text(2, text(1, "/") + text(2, number(1, 0) + number(2, 80) + text(3, ""))))
    container = text(1, "a") + text(10, probe) + number(18, 0)
    spec = text(1, volume) + text(2, container) + text(3, "Never") + number(4, 0) + number(11, 0)
    assert object_in(sent("Pod", text(2, spec)))["spec"] == {
        "volumes": [{"name": "v", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}}],
        "containers": [{"name": "a", "livenessProbe": {"httpGet": {"path": "/", "port": 80}}}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }


def test_times_and_negative_numbers_are_read() -> None:
    metadata = text(1, text(1, "e") + text(8, number(1, 1767225600)))
    raw = metadata + text(10, number(1, 1767225600) + number(2, 5000)) + number(8, -1)
    event = object_in(sent("Event", raw))
    assert event["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert event["eventTime"] == "2026-01-01T00:00:00.000005Z"
    assert event["count"] == -1


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{}", b"k8s\x00\xff", sent("Pod", b"\x0a\xff"), sent("Pod", b"\x0a\x05ab"), sent("Pod", b"\x0b"),
        sent("Pod", number(1, 5)), sent("Pod", text(2, text(4, b"x"))), sent("Pod", text(1, text(1, b"\xff"))),
        sent("Pod", b"\x80" * 20), sent("Pod", text(1, text(8, number(1, 2**62)))),
    ],
)  # fmt: skip
def test_what_is_not_protobuf_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        object_in(body)


def test_a_kind_that_is_only_known_in_json_says_so() -> None:
    with pytest.raises(Unsupported, match="send application/json"):
        object_in(sent("PyTorchJob", b""))
