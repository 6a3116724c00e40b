import copy
from typing import Any

import pytest

from fullrank.api.meta import Json
from fullrank.api.patches import json_patch, merge_patch, strategic_merge_patch
from fullrank.api.schema import core_schema
from fullrank.errors import BadRequest, Invalid

POD = core_schema("Pod")

MERGES: dict[str, tuple[Any, Any, Any]] = {
    "fields are replaced": ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    "fields are added": ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    "null removes": ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    "lists are taken whole": ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    "objects are merged": ({"a": {"b": 1, "c": 2}}, {"a": {"b": None, "d": 3}}, {"a": {"c": 2, "d": 3}}),
    "nulls inside of what is new vanish": ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    "an object replaces a scalar": ({"a": 1}, {"a": {"b": 2}}, {"a": {"b": 2}}),
}


@pytest.mark.parametrize(("target", "patch", "expected"), MERGES.values(), ids=MERGES)
def test_a_merge_patch(target: Any, patch: Any, expected: Any) -> None:
    before = copy.deepcopy((target, patch))
    assert merge_patch(target, patch) == expected
    assert (target, patch) == before


JSON_PATCHES: dict[str, tuple[Json, list[Json], Json]] = {
    "adds a member": ({"a": 1}, [{"op": "add", "path": "/b", "value": 2}], {"a": 1, "b": 2}),
    "inserts into a list": ({"a": [1, 3]}, [{"op": "add", "path": "/a/1", "value": 2}], {"a": [1, 2, 3]}),
    "appends to a list": ({"a": [1]}, [{"op": "add", "path": "/a/-", "value": 2}], {"a": [1, 2]}),
    "removes from a list": ({"a": [1, 2]}, [{"op": "remove", "path": "/a/0"}], {"a": [2]}),
    "replaces deep inside": (
        {"a": [{"b": 1}, {"b": 2}]},
        [{"op": "replace", "path": "/a/1/b", "value": 3}],
        {"a": [{"b": 1}, {"b": 3}]},
    ),
    "moves": ({"a": {"b": 1}}, [{"op": "move", "from": "/a/b", "path": "/c"}], {"a": {}, "c": 1}),
    "copies": ({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}),
    "tests and goes on": (
        {"a": 1},
        [{"op": "test", "path": "/a", "value": 1}, {"op": "remove", "path": "/a"}],
        {},
    ),
    "unescapes names": ({"a/b": {"c~d": 1}}, [{"op": "remove", "path": "/a~1b/c~0d"}], {"a/b": {}}),
}


@pytest.mark.parametrize(("target", "operations", "expected"), JSON_PATCHES.values(), ids=JSON_PATCHES)
def test_a_json_patch(target: Json, operations: list[Json], expected: Json) -> None:
    before = copy.deepcopy((target, operations))
    assert json_patch(target, operations) == expected
    assert (target, operations) == before


REFUSED: dict[str, tuple[Json, str]] = {
    "a test that fails": ({"op": "test", "path": "/a", "value": 2}, "testing value /a failed"),
    "a removal of nothing": ({"op": "remove", "path": "/z"}, 'there is no "z"'),
    "a place inside of nothing": ({"op": "add", "path": "/z/y", "value": 1}, 'there is no "z"'),
    "a place inside of a number": ({"op": "add", "path": "/a/b", "value": 1}, 'there is no place for "b"'),
    "an index too far": ({"op": "add", "path": "/l/5", "value": 1}, 'there is no element "5" in a list of 2'),
    "an index that is none": ({"op": "remove", "path": "/l/x"}, 'there is no element "x" in a list of 1'),
    "a copy of nothing": ({"op": "copy", "from": "/z", "path": "/b"}, 'there is no "z"'),
    "a move into itself": (
        {"op": "move", "from": "/o", "path": "/o/p"},
        "/o/p is inside of what is moved there",
    ),
    "a verb nobody knows": ({"op": "frob", "path": "/a"}, 'unexpected kind of operation "frob"'),
    "no path": ({"op": "add", "value": 1}, 'operation "add" lacks a path'),
    "no value": ({"op": "add", "path": "/b"}, 'operation "add" of /b lacks a value'),
    "a path without its slash": ({"op": "remove", "path": "a"}, 'path "a" does not start with "/"'),
    "nothing left": ({"op": "remove", "path": ""}, "leaves no object behind"),
}


@pytest.mark.parametrize(("operation", "complaint"), REFUSED.values(), ids=REFUSED)
def test_a_json_patch_that_cannot_be_done_says_which_step(operation: Json, complaint: str) -> None:
    with pytest.raises(Invalid) as refused:
        json_patch({"a": 1, "l": [1], "o": {}}, [operation])
    assert complaint in str(refused.value)


def containers(*items: Json) -> Json:
    return {"spec": {"containers": list(items)}}


STRATEGIC: dict[str, tuple[Json, Json, Json]] = {
    "elements are merged by their key": (
        containers({"name": "a", "image": "1", "tty": True}, {"name": "b"}),
        containers({"name": "a", "image": "2"}),
        containers({"name": "a", "image": "2", "tty": True}, {"name": "b"}),
    ),
    "new elements go to the end": (
        containers({"name": "a"}),
        containers({"name": "b"}),
        containers({"name": "a"}, {"name": "b"}),
    ),
    "elements can be deleted": (
        containers({"name": "a"}, {"name": "b"}),
        containers({"name": "a", "$patch": "delete"}),
        containers({"name": "b"}),
    ),
    "a list can be replaced": (
        containers({"name": "a"}, {"name": "b"}),
        containers({"$patch": "replace"}, {"name": "c"}),
        containers({"name": "c"}),
    ),
    "an object can be replaced": (
        {"spec": {"nodeSelector": {"a": "b", "c": "d"}}},
        {"spec": {"nodeSelector": {"$patch": "replace", "e": "f"}}},
        {"spec": {"nodeSelector": {"e": "f"}}},
    ),
    "null removes a key of a map": (
        {"metadata": {"labels": {"a": "b", "c": "d"}}},
        {"metadata": {"labels": {"a": None}}},
        {"metadata": {"labels": {"c": "d"}}},
    ),
    "a list without a key is taken whole": (
        {"spec": {"tolerations": [{"key": "a"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
        {"spec": {"tolerations": [{"key": "b"}]}},
    ),
    "a set is united": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"finalizers": ["b", "c"]}},
        {"metadata": {"finalizers": ["a", "b", "c"]}},
    ),
    "members of a set can be deleted": (
        {"metadata": {"finalizers": ["a", "b"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
        {"metadata": {"finalizers": ["b"]}},
    ),
    "the order can be given": (
        containers({"name": "a"}, {"name": "b"}),
        {"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}},
        containers({"name": "b"}, {"name": "a"}),
    ),
    "what only the server has keeps its place": (
        containers({"name": "a"}, {"name": "mine"}, {"name": "b"}),
        {
            "spec": {
                "$setElementOrder/containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}],
                "containers": [{"name": "c"}],
            }
        },
        containers({"name": "a"}, {"name": "mine"}, {"name": "b"}, {"name": "c"}),
    ),
    "only the retained keys stay": (
        {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}},
        {
            "spec": {
                "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]
            }
        },
        {"spec": {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}},
    ),
}


@pytest.mark.parametrize(("target", "patch", "expected"), STRATEGIC.values(), ids=STRATEGIC)
def test_a_strategic_merge_patch(target: Json, patch: Json, expected: Json) -> None:
    before = copy.deepcopy((target, patch))
    assert strategic_merge_patch(target, patch, POD) == expected
    assert (target, patch) == before


MALFORMED: dict[str, tuple[Json, str]] = {
    "an element without its key": (
        containers({"image": "a"}),
        "does not contain the declared merge key: name",
    ),
    "a directive nobody knows": ({"spec": {"$patch": "frob"}}, "unknown patch type: frob"),
    "an order that is no list": ({"spec": {"$setElementOrder/containers": 5}}, "must be a list"),
    "retained keys that are no list": ({"spec": {"$retainKeys": 5}}, "must be a list"),
}


@pytest.mark.parametrize(("patch", "complaint"), MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_strategic_patch_is_a_bad_request(patch: Json, complaint: str) -> None:
    with pytest.raises(BadRequest, match=complaint.replace("$", r"\$")):
        strategic_merge_patch(containers({"name": "a"}), patch, POD)
