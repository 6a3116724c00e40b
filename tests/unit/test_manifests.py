import pytest

from fullrank.api.manifests import documents
from fullrank.errors import BadRequest


def test_several_documents_and_empty_ones_between() -> None:
    assert documents("---\na: 1\n---\n---\nb: 2\n", "x.yaml") == [{"a": 1}, {"b": 2}]


def test_a_date_stays_the_text_it_is() -> None:
    assert documents("when: 2024-01-02\n", "x.yaml") == [{"when": "2024-01-02"}]


BROKEN = {
    "bad indentation": ("a:\n  b: 1\n c: 2\n", "x.yaml: line 3, column 2: not YAML"),
    "a list": ("- 1\n", "document 1 is not an object but list"),
    "a number for a key": ("a: 1\n---\n1: b\n", "document 2: the key 1 is not text: put it in quotes"),
    "a bomb": (
        "a: &a [1,1,1,1,1,1,1,1,1,1]\n"
        + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
            for old, new in zip("abcdef", "bcdefg", strict=True)
        ),
        "too large once its aliases are written out",
    ),
    "code": ("a: !!python/object/apply:os.system [ls]\n", "not YAML: could not determine a constructor"),
    "endless nesting": ("[" * 3000, "nested too deeply"),
    "an object inside itself": ("a: &a\n  b: *a\n", "too large once its aliases are written out"),
}


@pytest.mark.parametrize(("text", "complaint"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_wrong_is_told_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(BadRequest) as caught:
        documents(text, "x.yaml")
    assert complaint in str(caught.value)


UNLIKE_JSON = {
    "bytes": ("a: !!binary aGVsbG8=", "JSON has no bytes"),
    "a set": ("a: !!set {b}", "JSON has no set"),
    "a date": ("a: !!timestamp 2026-01-01", "JSON has no date"),
    "a number of any length": (f"a: {2**70}", "a number of 71 bits is too large"),
    "half a character": ('a: "\\ud800"', "half a character"),
    "half a character in a key": ('"\\ud800": a', "half a character"),
}


@pytest.mark.parametrize(("text", "words"), UNLIKE_JSON.values(), ids=UNLIKE_JSON)
def test_what_json_could_not_say_is_refused(text: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        documents(text, "here")
