"""What a status remembers of single members, so that every look can start from nothing but what is stored.

Which members have succeeded, whatever becomes of their pods; which may not be started a second time; and which failed
pods were counted and are on their way out. It is there only while it is needed: a finished job's status has none of it.
"""

from collections.abc import Mapping

from fullrank.api import indexes
from fullrank.api.jobs import Indexes
from fullrank.api.meta import Json
from fullrank.api.schema import Schema, array, mapping, obj, string
from fullrank.dialects.contract import Report


def remembered(report: Report) -> Json:
    """The fields of a status that hold it."""
    members: dict[str, Json] = {}
    for field, by_role in (("completed", report.completed), ("started", report.started)):
        for role, known in by_role.items():
            if known:
                members.setdefault(role, {})[field] = indexes.written(known)
    return {"members": members, "replaced": sorted(report.replaced)}


def completed(status: Json) -> Indexes:
    return _members(status, "completed")


def started(status: Json) -> Indexes:
    return _members(status, "started")


def replaced(status: Json) -> frozenset[str]:
    return frozenset(status.get("replaced") or ())


def _members(status: Json, field: str) -> Indexes:
    members: Mapping[str, Json] = status.get("members") or {}
    return {role: indexes.read(one[field]) for role, one in members.items() if one and one.get(field)}


def memory_schema() -> Mapping[str, Schema]:
    of_a_role = {
        "completed": string(description="Members that succeeded, such as 0-3,7."),
        "started": string(description="Members that are not started a second time."),
    }
    return {
        "members": mapping(obj(of_a_role), description="What is remembered of members while the job runs."),
        "replaced": array(string(), description="Failed pods that are being replaced, by uid."),
    }
