"""Whatever text or bytes they are given, parsers return something or say what is wrong, and nothing else happens."""

import base64
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullrank.api import fieldsets, names
from fullrank.api.manifests import documents
from fullrank.api.meta import is_moment, moment_of
from fullrank.api.patches import json_patch, merge_patch, strategic_merge_patch
from fullrank.api.quantity import amount
from fullrank.api.schema import complaints, core_schema, pruned, unknown_fields
from fullrank.api.scheme import POD, Scheme
from fullrank.api.selectors import field_selector, label_selector
from fullrank.controlplane import paging, protobuf
from fullrank.controlplane.questions import address_of, decoded, form_of, repeated_fields
from fullrank.controlplane.store import Store
from fullrank.errors import FullrankError

QUICK = settings(max_examples=60, deadline=None)
WORDS = st.one_of(st.text(max_size=60), st.text("=!,() <>abn\\.-_/~0129eEkKmMi+", max_size=40))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS)
KEYS = st.one_of(
    WORDS,
    st.sampled_from(
        (
            "metadata",
            "spec",
            "containers",
            "name",
            "env",
            "$patch",
            "$retainKeys",
            "$setElementOrder/containers",
            "ports",
        )
    ),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=4)
POD_TYPE = core_schema("Pod")


@QUICK
@given(WORDS)
def test_words(text: str) -> None:
    for parse in (
        label_selector,
        lambda word: field_selector(word, POD),
        lambda word: documents(word, "here"),
    ):
        with suppress(FullrankError):
            parse(text)
    for rule in (names.label_name, names.subdomain, names.label_value, names.data_key, names.qualified):
        assert all(rule(text))
    form_of(text)
    fieldsets.is_wellformed({text: {}})
    if is_moment(text):
        assert moment_of(text).tzinfo


@QUICK
@given(
    st.one_of(
        WORDS,
        st.integers(),
        st.floats(),
        st.from_regex(r"[+-]?\d{0,30}\.?\d{0,30}([eE]\d{1,12}|[mkKMGTPE]i?)?"),
    )
)
def test_quantities(written: Any) -> None:
    with suppress(ValueError):
        amount(written)


@QUICK
@given(st.one_of(WORDS, st.binary(max_size=80).map(lambda raw: base64.urlsafe_b64encode(raw).decode())))
def test_page_tokens(token: str) -> None:
    store = Store(":memory:", inline=True)
    with suppress(FullrankError):
        paging.page(store, POD, "", chosen=None, limit=1, proceed=token)
    store.close()


@QUICK
@given(
    st.one_of(
        st.binary(max_size=200),
        st.binary(max_size=200).map(lambda raw: b"k8s\x00\n\t\n\x02v1\x12\x03Pod\x12" + raw),
    )
)
def test_bodies(body: bytes) -> None:
    for parse in (protobuf.object_in, decoded):
        with suppress(FullrankError):
            parse(body)
    repeated_fields(body)


@QUICK
@given(OBJECTS, OBJECTS)
def test_patches_and_types(target: dict[str, Any], patch: dict[str, Any]) -> None:
    merge_patch(target, patch)
    complaints(patch, POD_TYPE)
    unknown_fields(patch, POD_TYPE)
    clean = pruned(target, POD_TYPE)
    if not complaints(clean, POD_TYPE, required=False):
        with suppress(FullrankError):
            strategic_merge_patch(clean, patch, POD_TYPE)


@QUICK
@given(
    OBJECTS,
    st.lists(
        st.fixed_dictionaries(
            {"op": st.sampled_from(("add", "replace", "remove", "test", "move", "copy"))},
            optional={"path": st.one_of(LEAVES, WORDS.map("/{}".format)), "from": LEAVES, "value": VALUES},
        ),
        max_size=3,
    ),
)
def test_json_patches(target: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    with suppress(FullrankError):
        json_patch(target, steps)


@QUICK
@given(st.lists(WORDS, min_size=1, max_size=5))
def test_addresses(rest: list[str]) -> None:
    with suppress(FullrankError):
        address_of(Scheme((POD,)), "", "v1", rest)


def test_a_number_that_would_fill_the_memory_is_no_quantity() -> None:
    with pytest.raises(ValueError, match="1e999999999"):
        amount("1e999999999")
