"""Who owns which field: managedFields, and server-side apply, by Kubernetes' rules.

Every writer of an object has an entry with the fields it last set. Applying a configuration takes its fields, lets go
of those it no longer mentions (they vanish when nobody else owns them), and is refused where it would change what
another one owns, unless forced. Writing in any other way simply takes the fields that it changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from fullrank.api.fieldsets import Fields, below, difference, intersection, is_wellformed, paths, union
from fullrank.api.meta import Json, annotations_of, stamp
from fullrank.api.schema import Schema
from fullrank.api.structure import (
    Difference,
    check_distinct,
    compared,
    fields_of,
    laid_over,
    with_named_fields,
    without,
)
from fullrank.errors import ApplyConflict, Cause

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
BEFORE_FIRST_APPLY = "before-first-apply"
ANCIENT = "ancient-changes"
MOST_UPDATERS = 10  # entries of writers that do not apply; the oldest are put together beyond that
KUBECTL = "kubectl"
# What the server alone decides is nobody's.
NOBODYS: Fields = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {
        ".": {},
        **{
            f"f:{field}": {}
            for field in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields",
                "resourceVersion",
            )
        },
    },
}  # fmt: skip
# The fields that Kubernetes' own types have even when they are empty: nobody has set those by creating an object.
EMPTY: Mapping[str, Json] = {
    "Pod": {"spec": {"containers": []}, "status": {}},
    "PodTemplate": {"template": {"metadata": {}, "spec": {"containers": []}}},
    "PersistentVolumeClaim": {"spec": {"resources": {}}, "status": {}},
    "Service": {"spec": {}, "status": {"loadBalancer": {}}},
    "Event": {"involvedObject": {}, "source": {}},
    "Lease": {"spec": {}},
    "Namespace": {"spec": {}, "status": {}},
    "Node": {"spec": {}, "status": {}},
}
# What the server gives to a Service after it was written is not its author's.
ALLOTTED: Mapping[str, Fields] = {
    "Service": {"f:spec": {"f:clusterIPs": {}, "f:ipFamilies": {}, "f:ipFamilyPolicy": {}}},
}


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, by which door, and when."""

    manager: str
    now: datetime
    subresource: str = ""


class _Identity(NamedTuple):
    manager: str
    operation: str
    version: str
    subresource: str


@dataclass(frozen=True, slots=True)
class _Entry:
    fields: Fields
    time: str
    version: str


_Owners = dict[_Identity, _Entry]


def signed(author: Author, old: Json | None, new: Json, schema: Schema, *, custom: bool) -> Json:
    """The new object with its managedFields brought up to date, for any write that is not an apply."""
    owners = _owners(new) or (_owners(old) if old else {})
    cleared = new["metadata"].get("managedFields") == [{}]
    if old is not None and (cleared or not owners):
        return _with_owners(
            new, {}
        )  # nobody ever applied to it or created it from outside: nothing is tracked
    before = old if old is not None else _nothing(new, custom=custom)
    return _with_owners(new, _after_update(author, owners, before, new, schema))


def applied(
    author: Author, live: Json | None, config: Json, schema: Schema, *, force: bool, custom: bool
) -> Json:
    """What the live object (or nothing) becomes when the configuration is applied; ApplyConflict if it may not be."""
    check_distinct(config, schema, _titled(config))
    owners = _owners(live) if live else {}
    base = live if live is not None else _nothing(config, custom=custom)
    if live is not None and not owners:
        first = replace(author, manager=BEFORE_FIRST_APPLY, subresource="")
        owners = _after_update(first, {}, _nothing(live, custom=custom), live, schema)
    me = _Identity(author.manager, "Apply", "", author.subresource)
    last = owners.get(me)
    own = _owned(fields_of(config, schema), config, author.subresource)
    owners[me] = _Entry(own, stamp(author.now), config["apiVersion"])
    merged = laid_over(base, config, schema)
    if last is not None:
        held: Fields = {}
        for entry in owners.values():
            held = union(held, entry.fields)
        stale = difference(with_named_fields(last.fields, schema), with_named_fields(held, schema))
        merged = without(merged, _sparing_metadata(stale), schema)
    change = compared(base, merged, schema)
    _check_conflicts(owners, me, change, live, schema, force=force)
    after = {who: entry for who, entry in _disowned(owners, me, change).items() if entry.fields}
    if live is not None and not change.changed and not change.removed and me in after:
        after[me] = replace(after[me], time=last.time if last else "")
    result = _with_owners(merged, after)
    return _with_last_applied(result, config) if author.manager == KUBECTL and live is not None else result


def _sparing_metadata(fields: Fields) -> Fields:
    """Labels may go, and annotations; what they are in may not, as the object's name is in it, too."""
    inner = below(fields.get("f:metadata", {}))
    rest = {step: node for step, node in fields.items() if step != "f:metadata"}
    return rest | ({"f:metadata": inner} if inner else {})


def _titled(config: Json) -> str:
    group, _, version = config["apiVersion"].rpartition("/")
    place = "/".join(
        word for word in (config["metadata"].get("namespace"), config["metadata"].get("name")) if word
    )
    return f"{place}; {group}/{version}, Kind={config['kind']}"


def _after_update(author: Author, owners: _Owners, old: Json, new: Json, schema: Schema) -> _Owners:
    found = compared(_managed(old), _managed(new), schema)
    part = author.subresource
    change = Difference(_owned(found.changed, new, part), _owned(found.removed, new, part))
    me = _Identity(author.manager, "Update", new["apiVersion"], author.subresource)
    after = {who: entry for who, entry in _disowned(owners, None, change).items() if entry.fields}
    if change.changed:
        mine = after[me].fields if me in after else {}
        after[me] = _Entry(union(mine, change.changed), stamp(author.now), new["apiVersion"])
    return _capped(after)


def _managed(obj: Json) -> Json:
    """What comparing is about: a few fields of metadata change with every write and are nobody's."""
    metadata = {
        field: value for field, value in obj["metadata"].items() if f"f:{field}" not in NOBODYS["f:metadata"]
    }
    return {**obj, "metadata": metadata}


def _owned(fields: Fields, obj: Json, subresource: str) -> Fields:
    own = difference(difference(fields, NOBODYS), ALLOTTED.get(obj["kind"], {}))
    if subresource != "status":
        return (
            {step: node for step, node in own.items() if step != "f:status"} if obj["kind"] != "Node" else own
        )
    return own


def _disowned(owners: _Owners, me: _Identity | None, change: Difference) -> _Owners:
    """What is changed or gone is no longer the others'."""
    lost = union(change.changed, change.removed)
    return {
        who: entry if who == me else replace(entry, fields=difference(entry.fields, lost))
        for who, entry in owners.items()
    }


def _check_conflicts(
    owners: _Owners, me: _Identity, change: Difference, live: Json | None, schema: Schema, *, force: bool
) -> None:
    if force or not change.changed:
        return
    conflicts = {
        who: shared
        for who, entry in owners.items()
        if who != me and (shared := intersection(entry.fields, change.changed))
    }
    if conflicts and me.manager == KUBECTL and live is not None:
        allowed = _left_by_client_side_apply(live, schema)
        conflicts = {who: rest for who, shared in conflicts.items() if (rest := difference(shared, allowed))}
    if conflicts:
        raise _conflict(conflicts)


def _conflict(conflicts: Mapping[_Identity, Fields]) -> ApplyConflict:
    found = [(_spoken(who), path) for who, fields in sorted(conflicts.items()) for path in paths(fields)]
    causes = [Cause(path, f"conflict with {who}", "FieldManagerConflict") for who, path in found]
    if len(found) == 1:
        ((who, path),) = found
        return ApplyConflict(f"Apply failed with 1 conflict: conflict with {who}: {path}", causes)
    lines = []
    for who in dict.fromkeys(who for who, _ in found):
        lines.append(f"conflicts with {who}:")
        lines += [f"- {path}" for whose, path in found if whose == who]
    told = "\n".join(lines)
    return ApplyConflict(f"Apply failed with {len(found)} conflicts: {told}", causes)


def _spoken(who: _Identity) -> str:
    part = f' with subresource "{who.subresource}"' if who.subresource else ""
    version = f" using {who.version}" if who.operation == "Update" else ""
    return f'"{who.manager}"{part}{version}'


def _left_by_client_side_apply(live: Json, schema: Schema) -> Fields:
    """Fields that kubectl itself once applied from the client's side and nobody has touched since."""
    try:
        config = msgspec.json.decode(annotations_of(live).get(LAST_APPLIED, "{}"))
    except msgspec.DecodeError:
        return {}
    if not isinstance(config, dict):
        return {}
    given = fields_of(config, schema)
    return difference(given, compared(live, laid_over(live, config, schema), schema).changed)


def _with_last_applied(obj: Json, config: Json) -> Json:
    """kubectl's two ways of applying are kept in step for as long as both are used."""
    annotations = annotations_of(obj)
    if LAST_APPLIED not in annotations or config.get("metadata", {}).get("annotations", {}).get(LAST_APPLIED):
        return obj
    text = msgspec.json.encode(config, order="sorted").decode() + "\n"
    return {**obj, "metadata": {**obj["metadata"], "annotations": {**annotations, LAST_APPLIED: text}}}


def _capped(owners: _Owners) -> _Owners:
    updates = sorted(
        (who for who in owners if who.operation == "Update"), key=lambda who: (owners[who].time, who)
    )
    excess = updates[: max(0, len(updates) - MOST_UPDATERS + 1)] if len(updates) > MOST_UPDATERS else []
    if not excess:
        return owners
    kept = {who: entry for who, entry in owners.items() if who not in excess}
    merged = replace(owners[excess[-1]])
    for who in excess[:-1]:
        merged = replace(merged, fields=union(merged.fields, owners[who].fields))
    return {**kept, _Identity(ANCIENT, "Update", merged.version, ""): merged}


def _nothing(obj: Json, *, custom: bool) -> Json:
    empty: Json = {} if custom else EMPTY.get(obj["kind"], {})
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {}, **empty}


def _owners(obj: Json) -> _Owners:
    """The entries of managedFields, none if any of them makes no sense."""
    entries: list[Any] = obj["metadata"].get("managedFields") or []
    found: _Owners = {}
    for entry in entries:
        fields, operation = entry.get("fieldsV1"), entry.get("operation")
        words = [entry.get(word) or "" for word in ("manager", "apiVersion", "subresource", "time")]
        texts = all(isinstance(word, str) for word in words)
        if operation not in ("Apply", "Update") or not texts or not is_wellformed(fields):
            return {}
        manager, version, subresource, time = words
        who = _Identity(manager, operation, version if operation == "Update" else "", subresource)
        found[who] = _Entry(fields, time, version)
    return found


def _with_owners(obj: Json, owners: _Owners) -> Json:
    metadata = {field: value for field, value in obj["metadata"].items() if field != "managedFields"}
    if owners:
        ordered = sorted(owners.items(), key=lambda item: (item[0].operation, item[1].time, item[0]))
        metadata["managedFields"] = [_shown(who, entry) for who, entry in ordered]
    return {**obj, "metadata": metadata}


def _shown(who: _Identity, entry: _Entry) -> Json:
    shown = {
        "manager": who.manager,
        "operation": who.operation,
        "apiVersion": entry.version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": entry.fields,
        "subresource": who.subresource,
    }
    return {word: value for word, value in shown.items() if value != ""}
