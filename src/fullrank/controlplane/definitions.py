"""The CustomResourceDefinitions a cluster that serves our kinds would have: here to be read, not written."""

from collections.abc import Callable, Iterable
from functools import cached_property

import msgspec

from fullrank.api.definitions import DEFINITION, definition
from fullrank.api.meta import Json
from fullrank.api.schema import Schema
from fullrank.api.scheme import Kind
from fullrank.api.selectors import field_selector, label_selector
from fullrank.controlplane.store import Record
from fullrank.errors import NotFound


class Definitions:
    """They are as old as the server and never change, so their revision is always the first."""

    def __init__(self, kinds: Iterable[Kind], schema_of: Callable[[Kind], Schema], since: str) -> None:
        self._kinds = tuple(kind for kind in kinds if kind.is_custom)
        self._schema_of = schema_of
        self._since = since

    def get(self, name: str) -> Record:
        record = self._records.get(name)
        if record is None:
            raise NotFound(f'{DEFINITION.group_resource} "{name}" not found')
        return record

    def select(self, *, labels: str, fields: str) -> list[Record]:
        by_label, by_field = label_selector(labels), field_selector(fields, DEFINITION)
        return [
            record
            for record in self._records.values()
            if by_label.matches(record.obj) and by_field.matches(record.obj)
        ]

    @cached_property
    def _records(self) -> dict[str, Record]:
        served = [
            self._established(kind) for kind in sorted(self._kinds, key=lambda kind: kind.group_resource)
        ]
        return {each["metadata"]["name"]: Record(1, msgspec.json.encode(each), each) for each in served}

    def _established(self, kind: Kind) -> Json:
        base = definition(kind, self._schema_of(kind))
        about = {
            "creationTimestamp": self._since,
            "uid": kind.group_resource,
            "resourceVersion": "1",
            "generation": 1,
        }
        conditions = [
            {"type": "NamesAccepted", "reason": "NoConflicts", "message": "no conflicts found"},
            {
                "type": "Established",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ]
        status = {
            "conditions": [
                each | {"status": "True", "lastTransitionTime": self._since} for each in conditions
            ],
            "acceptedNames": base["spec"]["names"],
            "storedVersions": [kind.version],
        }
        return base | {"metadata": base["metadata"] | about, "status": status}
