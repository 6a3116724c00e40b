"""What a status remembers of single members, so that every look can start from nothing but what is stored.

Which members have succeeded, whatever becomes of their pods; which may not be started a second time, and which of those
are missed by nobody; which keep failing, and until when their successors wait; and which failed pods were counted and
are on their way out. It is there only while it is needed: a finished job's status has none of it.
"""

from collections.abc import Iterator, Mapping

from fullrank.api import indexes
from fullrank.api.jobs import Indexes, Retries, Retry
from fullrank.api.meta import Json, moment_of, stamp
from fullrank.api.schema import Schema, array, integer, mapping, obj, string, timestamp
from fullrank.dialects.contract import Report


def remembered(report: Report) -> Json:
    """The fields of a status that hold it."""
    members: dict[str, Json] = {}
    sets = (("completed", report.completed), ("started", report.started), ("gone", report.gone))
    for field, by_role in sets:
        for role, known in by_role.items():
            if known:
                members.setdefault(role, {})[field] = indexes.written(known)
    for role, tries in report.retries.items():
        if tries:
            members.setdefault(role, {})["retries"] = {
                str(index): {"times": one.times, "after": stamp(one.after)} for index, one in tries.items()
            }
    return {"members": members, "replaced": sorted(report.replaced)}


def completed(status: Json) -> Indexes:
    return _members(status, "completed")


def started(status: Json) -> Indexes:
    return _members(status, "started")


def gone(status: Json) -> Indexes:
    return _members(status, "gone")


def retries(status: Json) -> Retries:
    members: Mapping[str, Json] = status.get("members") or {}
    return {role: dict(_tries(one["retries"])) for role, one in members.items() if one and one.get("retries")}


def _tries(written: Mapping[str, Json]) -> Iterator[tuple[int, Retry]]:
    for index, one in written.items():
        if index.isdecimal() and one and one.get("times") and one.get("after"):
            yield int(index), Retry(one["times"], moment_of(one["after"]))


def replaced(status: Json) -> frozenset[str]:
    return frozenset(status.get("replaced") or ())


def _members(status: Json, field: str) -> Indexes:
    members: Mapping[str, Json] = status.get("members") or {}
    return {role: indexes.read(one[field]) for role, one in members.items() if one and one.get(field)}


def memory_schema() -> Mapping[str, Schema]:
    tries = {
        "times": integer(description="How often in a row it failed soon after its start."),
        "after": timestamp(description="Its successor is started no earlier."),
    }
    of_a_role = {
        "completed": string(description="Members that succeeded, such as 0-3,7."),
        "started": string(description="Members that are not started a second time."),
        "gone": string(description="Those of them that were taken away; the job goes on without them."),
        "retries": mapping(obj(tries), description="Members that keep failing, by index."),
    }
    return {
        "members": mapping(obj(of_a_role), description="What is remembered of members while the job runs."),
        "replaced": array(string(), description="Failed pods that are being replaced, by uid."),
    }
