"""The parts every object has: names, owners, times.

Objects travel as plain JSON, so that fields we never heard of survive.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)


def name_of(obj: Json) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def namespace_of(obj: Json) -> str:
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


def uid_of(obj: Json) -> str:
    uid: str = obj["metadata"].get("uid", "")
    return uid


def labels_of(obj: Json) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}


def annotations_of(obj: Json) -> Mapping[str, str]:
    return obj["metadata"].get("annotations") or {}


def revision_of(obj: Json) -> int:
    """The resourceVersion as a number; both homes count upwards, so it orders two copies of one object."""
    return int(obj["metadata"].get("resourceVersion") or 0)


def is_terminating(obj: Json) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def controller_of(obj: Json) -> Json | None:
    """The one owner reference that says `controller: true`."""
    owners: list[Json] = obj["metadata"].get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), None)


def owner_reference(owner: Json) -> Json:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": name_of(owner),
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def stamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as Kubernetes writes metav1.Time."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def micro_stamp(moment: datetime) -> str:
    """RFC 3339 with microseconds, as Kubernetes writes metav1.MicroTime."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def is_moment(text: str) -> bool:
    """Whether a text is a time as RFC 3339 writes it, with its zone, that every zone's calendar has."""
    try:
        return bool(RFC_3339.fullmatch(text)) and bool(moment_of(text).astimezone(UTC))
    except (ValueError, OverflowError):
        return False


def moment_of(text: str) -> datetime:
    return datetime.fromisoformat(text)
