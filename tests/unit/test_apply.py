from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullrank.api.apply import Author, applied, signed
from fullrank.api.fieldsets import Fields, difference, intersection, is_wellformed, paths, union
from fullrank.api.meta import Json
from fullrank.api.schema import core_schema
from fullrank.errors import ApplyConflict, BadRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAP = core_schema("ConfigMap")


def config_map(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": data}


def service(*ports: int, **spec: Any) -> Json:
    listed = [{"name": f"p{port}", "port": port, "protocol": "TCP"} for port in ports]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": listed, **spec},
    }


def owners(obj: Json) -> dict[str, list[str]]:
    """Who owns what, in words."""
    return {
        f"{entry['manager']} {entry['operation']}": list(paths(entry["fieldsV1"]))
        for entry in obj["metadata"].get("managedFields", [])
    }


def apply(who: str, live: Json | None, config: Json, *, force: bool = False, at: int = 0) -> Json:
    author = Author(who, NOW + timedelta(seconds=at))
    return applied(author, live, config, core_schema(config["kind"]), force=force, custom=False)


def update(who: str, live: Json, new: Json, part: str = "", at: int = 0) -> Json:
    metadata = {**new["metadata"], "managedFields": live["metadata"].get("managedFields", [])}
    author = Author(who, NOW + timedelta(seconds=at), part)
    return signed(author, live, {**new, "metadata": metadata}, core_schema(new["kind"]), custom=False)


def create(who: str, new: Json) -> Json:
    return signed(Author(who, NOW), None, new, core_schema(new["kind"]), custom=False)


def test_who_applies_owns_what_the_configuration_says() -> None:
    made = apply("me", None, config_map(a="1", b="2"))
    assert made["data"] == {"a": "1", "b": "2"}
    assert owners(made) == {"me Apply": [".data.a", ".data.b"]}
    (entry,) = made["metadata"]["managedFields"]
    assert {word: entry[word] for word in ("apiVersion", "time", "fieldsType")} == {
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
    }


def test_what_is_no_longer_applied_goes() -> None:
    made = apply("me", apply("me", None, config_map(a="1", b="2")), config_map(a="1"))
    assert made["data"] == {"a": "1"}
    assert owners(made) == {"me Apply": [".data.a"]}


def test_what_another_one_applies_too_stays() -> None:
    both = apply("you", apply("me", None, config_map(a="1", b="2")), config_map(b="2"))
    assert owners(both) == {"me Apply": [".data.a", ".data.b"], "you Apply": [".data.b"]}
    left = apply("me", both, config_map(a="1"))
    assert left["data"] == {"a": "1", "b": "2"}
    assert owners(left) == {"me Apply": [".data.a"], "you Apply": [".data.b"]}


def test_applying_the_same_again_changes_nothing_not_even_the_time() -> None:
    made = apply("me", None, config_map(a="1"))
    assert apply("me", made, config_map(a="1"), at=60) == made


def test_one_conflict_is_told_with_its_owner() -> None:
    with pytest.raises(ApplyConflict) as caught:
        apply("you", apply("me", None, config_map(a="1")), config_map(a="2"))
    assert str(caught.value) == 'Apply failed with 1 conflict: conflict with "me": .data.a'
    (cause,) = caught.value.causes
    assert (cause.field, cause.message, cause.reason) == (
        ".data.a",
        'conflict with "me"',
        "FieldManagerConflict",
    )


def test_several_conflicts_are_told_owner_by_owner() -> None:
    live = create("kubectl-create", config_map(a="1", b="2"))
    live = update("scaler", live, {**live, "data": {"a": "3", "b": "2"}})
    with pytest.raises(ApplyConflict) as caught:
        apply("me", live, config_map(a="8", b="9"))
    assert str(caught.value) == (
        "Apply failed with 2 conflicts: "
        'conflicts with "kubectl-create" using v1:\n- .data.b\nconflicts with "scaler" using v1:\n- .data.a'
    )


def test_force_takes_the_fields_away_from_their_owner() -> None:
    taken = apply("you", apply("me", None, config_map(a="1", b="2")), config_map(a="2"), force=True)
    assert taken["data"] == {"a": "2", "b": "2"}
    assert owners(taken) == {"me Apply": [".data.b"], "you Apply": [".data.a"]}


def test_an_update_takes_the_fields_it_changes() -> None:
    live = apply("me", None, config_map(a="1", b="2"))
    changed = update("editor", live, {**live, "data": {"a": "1", "b": "3", "c": "4"}})
    assert owners(changed) == {"me Apply": [".data.a"], "editor Update": [".data.b", ".data.c"]}
    gone = update("editor", changed, {**changed, "data": {"b": "3"}})
    assert owners(gone) == {"editor Update": [".data.b"]}


def test_an_update_that_changes_nothing_signs_nothing() -> None:
    live = create("kubectl-create", config_map(a="1"))
    assert update("editor", live, live, at=60) == live


def test_who_creates_owns_all_of_it_but_not_what_the_type_always_has() -> None:
    assert owners(create("kubectl-create", service(80, clusterIP="None", clusterIPs=["None"]))) == {
        "kubectl-create Update": [
            ".spec.clusterIP",
            ".spec.ports",
            '.spec.ports[port=80,protocol="TCP"]',
            '.spec.ports[port=80,protocol="TCP"].name',
            '.spec.ports[port=80,protocol="TCP"].port',
            '.spec.ports[port=80,protocol="TCP"].protocol',
        ]
    }


def test_elements_of_a_list_are_owned_one_by_one() -> None:
    live = apply("you", apply("me", None, service(80, 81)), service(82))
    assert [port["port"] for port in live["spec"]["ports"]] == [80, 81, 82]
    left = apply("me", live, service(81))
    assert [port["port"] for port in left["spec"]["ports"]] == [81, 82]


def test_the_protocol_is_part_of_the_key_even_where_it_is_left_out() -> None:
    config = service(80)
    del config["spec"]["ports"][0]["protocol"]
    live = apply("me", None, service(80))
    assert [port["port"] for port in apply("me", live, config)["spec"]["ports"]] == [80]


def test_a_selector_is_taken_whole() -> None:
    live = apply("me", None, service(80, selector={"a": "1", "b": "2"}))
    assert ".spec.selector" in owners(live)["me Apply"]
    with pytest.raises(ApplyConflict, match=r"\.spec\.selector$"):
        apply("you", live, service(80, selector={"a": "1"}))
    assert apply("me", live, service(80, selector={"a": "1"}))["spec"]["selector"] == {"a": "1"}


def test_an_element_named_twice_is_refused() -> None:
    with pytest.raises(BadRequest) as caught:
        apply("me", None, service(80, 80))
    assert str(caught.value) == (
        "failed to create typed patch object (s; /v1, Kind=Service): "
        '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]'
    )


def test_what_was_there_before_anybody_applied_belongs_to_nobody_in_particular() -> None:
    live = config_map(a="1", b="2")
    assert owners(apply("me", live, config_map(a="1"))) == {
        "before-first-apply Update": [".data", ".data.a", ".data.b"],
        "me Apply": [".data.a"],
    }
    with pytest.raises(ApplyConflict, match='"before-first-apply" using v1'):
        apply("me", live, config_map(a="2"))


def test_what_is_not_tracked_is_not_tracked_by_an_update() -> None:
    live = config_map(a="1")
    assert "managedFields" not in update("editor", live, config_map(a="2"))["metadata"]


def test_kubectl_takes_over_what_it_applied_from_the_clients_side() -> None:
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"a":"1"}}'
    left = {
        "metadata": {"name": "c", "annotations": {"kubectl.kubernetes.io/last-applied-configuration": text}}
    }
    live = create("kubectl-client-side-apply", {**config_map(a="1", b="2"), **left})
    taken = apply("kubectl", live, config_map(a="5"))
    assert taken["data"] == {"a": "5", "b": "2"}
    assert '"a":"5"' in taken["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
    with pytest.raises(ApplyConflict):
        apply("kubectl", live, config_map(b="5"))
    with pytest.raises(ApplyConflict):
        apply("argo", live, config_map(a="5"))


def test_a_status_is_signed_with_its_door() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    live = create("kubectl-create", {**pod, "metadata": {"name": "p", "labels": {"a": "b"}}})
    told = update("kubelet", live, {**live, "status": {"phase": "Running"}}, part="status")
    (entry,) = [each for each in told["metadata"]["managedFields"] if each["manager"] == "kubelet"]
    assert (entry["subresource"], entry["fieldsV1"]) == ("status", {"f:status": {".": {}, "f:phase": {}}})


def test_the_oldest_of_many_writers_are_put_together() -> None:
    live = create("w00", config_map(k00="x"))
    for number in range(1, 15):
        data = {**live["data"], f"k{number:02}": "x"}
        live = update(f"w{number:02}", live, {**live, "data": data}, at=number)
    found = owners(live)
    assert len(found) == 10
    assert found["ancient-changes Update"][:4] == [".data", ".data.k00", ".data.k01", ".data.k02"]


BAD_ENTRIES: dict[str, Any] = {
    "no operation": {"manager": "x", "fieldsV1": {}},
    "fields that are text": {"manager": "x", "operation": "Apply", "fieldsV1": "f:a"},
    "a step of no sort": {"manager": "x", "operation": "Apply", "fieldsV1": {"a": {}}},
    "a key that is no JSON": {"manager": "x", "operation": "Apply", "fieldsV1": {"k:{": {}}},
    "a number for a name": {"manager": 5, "operation": "Apply", "fieldsV1": {"f:a": {}}},
}


@pytest.mark.parametrize("entry", BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_entries_that_make_no_sense_are_not_believed(entry: Json) -> None:
    live = create("kubectl-create", config_map(a="1"))
    forged = {**live, "metadata": {**live["metadata"], "managedFields": [entry]}}
    assert owners(signed(Author("x", NOW), live, forged, MAP, custom=False)) == owners(live)


def test_an_empty_entry_clears_them_all() -> None:
    live = create("kubectl-create", config_map(a="1"))
    cleared = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    assert "managedFields" not in signed(Author("x", NOW), live, cleared, MAP, custom=False)["metadata"]


# --- sets

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
TREES: st.SearchStrategy[Fields] = st.recursive(
    st.just({}),
    lambda inner: st.dictionaries(STEPS, inner | inner.map(lambda tree: {**tree, ".": {}}), max_size=3),
)


@given(TREES, TREES)
def test_sets_of_fields_behave_as_sets(one: Fields, other: Fields) -> None:
    ours, theirs = set(paths(one)), set(paths(other))
    assert set(paths(union(one, other))) == ours | theirs
    assert set(paths(difference(one, other))) == ours - theirs
    assert set(paths(intersection(one, other))) == ours & theirs
    assert is_wellformed(union(one, other))


# --- many hands

KEYS = st.sampled_from(["a", "b", "c", "d"])
APPLIES = st.lists(
    st.tuples(
        st.sampled_from(["me", "you", "she"]), st.dictionaries(KEYS, st.sampled_from(["1", "2"]), min_size=1)
    ),
    min_size=1,
    max_size=8,
)


@given(APPLIES)
def test_what_is_there_is_what_those_who_apply_want_together(
    applies: list[tuple[str, dict[str, str]]],
) -> None:
    live: Json | None = None
    there: dict[str, str] = {}
    owned: dict[str, set[str]] = {}
    for who, data in applies:
        live = apply(who, live, config_map(**data), force=True)
        for key in owned.get(who, set()) - set(data):
            if not any(key in keys for other, keys in owned.items() if other != who):
                there.pop(key, None)
        for key, value in data.items():
            if there.get(key) != value:
                for keys in owned.values():
                    keys.discard(key)
        owned[who] = set(data)
        there |= data
        assert live["data"] == there
        assert owners(live) == {
            f"{each} Apply": [f".data.{key}" for key in sorted(keys)] for each, keys in owned.items() if keys
        }
