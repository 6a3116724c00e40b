"""What a reader asked for: the syntax Kubernetes takes, the objects it means, the words it complains in."""

from typing import NamedTuple

import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import CONFIG_MAP, EVENT, NODE, POD, Kind
from fullrank.api.selectors import field_selector, label_selector
from fullrank.errors import BadRequest

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")

LABELS = {
    "nothing asked is everything": ("", True),
    "equal": ("app=web", True),
    "double equal": ("app==web", True),
    "equal to another value": ("app=db", False),
    "unequal": ("app!=db", True),
    "unequal holds when the label is missing": ("zone!=a", True),
    "one of several": ("app in (db, web)", True),
    "none of several": ("app notin (db,web)", False),
    "notin holds when the label is missing": ("zone notin (a)", True),
    "exists": ("app", True),
    "does not exist": ("!app", False),
    "does not exist, with a space": ("! zone", True),
    "all must hold": ("app=web,zone", False),
    "a label called in": ("in=x", True),
    "a prefixed key": ("training.kubeflow.org/job-name=mnist", True),
    "an empty value": ("empty=", True),
    "an empty set means the empty value": ("empty in ()", True),
    "a left-out value is the empty one": ("empty in (,x)", True),
    "greater": ("rank>2", True),
    "not less": ("rank<3", False),
    "a word is neither greater nor less": ("app>2", False),
}


@pytest.mark.parametrize(("text", "selected"), LABELS.values(), ids=LABELS.keys())
def test_labels_select(text: str, selected: bool) -> None:
    labels = {
        "app": "web",
        "in": "x",
        "rank": "3",
        "empty": "",
        "training.kubeflow.org/job-name": "mnist",
    }
    assert label_selector(text).matches({"metadata": {"labels": labels}}) is selected


BAD_LABELS = {
    "a===b": "unable to parse requirement: found '=', expected: identifier",
    "a in (": "unable to parse requirement: found '', expected: ',', ')' or identifier",
    "a=b,,": "found ',', expected: identifier after ','",
    "a,": "found '', expected: identifier after ','",
    "!!a": "unable to parse requirement: found '!', expected: identifier",
    "a foo b": "unable to parse requirement: found 'foo', expected: in, notin, =, ==, !=, gt, lt",
    "a in x": "unable to parse requirement: found 'x' expected: '('",
    "a in (x y)": "unable to parse requirement: found 'y', expected: ',' or ')'",
    "a=b c": "found 'c', expected: ',' or 'end of string'",
    "a!": "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
    ",": "found ',', expected: !, identifier, or 'end of string'",
    "a>b": (
        "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, "
        "the value must be an integer"
    ),
    "-a=b": (
        'unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric '
        "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
        "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
    ),
    "a=-bad-": (
        'unable to parse requirement: values[0][a]: Invalid value: "-bad-": a valid label must be an empty '
        "string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
        "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_LABELS.items(), ids=BAD_LABELS.keys())
def test_bad_label_selectors_get_kubernetes_words(text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        label_selector(text)
    assert str(refusal.value) == message


class Field(NamedTuple):
    kind: Kind
    text: str
    obj: Json
    selected: bool = True


A_POD: Json = {
    "metadata": {"name": "p", "namespace": "n"},
    "spec": {"nodeName": "here"},
    "status": {"phase": "Running"},
}
FIELDS = {
    "nothing asked": Field(POD, "", A_POD),
    "the name": Field(CONFIG_MAP, "metadata.name=p", A_POD),
    "another name": Field(CONFIG_MAP, "metadata.name=q", A_POD, selected=False),
    "the node": Field(POD, "spec.nodeName=here", A_POD),
    "no node": Field(POD, "spec.nodeName=", {"metadata": {}, "spec": {}}),
    "not in a phase, and more": Field(POD, "status.phase!=Failed,status.phase!=Succeeded", A_POD),
    "a flag that is not written is false": Field(NODE, "spec.unschedulable=false", {"metadata": {}}),
    "a flag that is written": Field(NODE, "spec.unschedulable==true", {"spec": {"unschedulable": True}}),
    "what an event is about": Field(EVENT, "involvedObject.name=p", {"involvedObject": {"name": "p"}}),
    "an event's source": Field(EVENT, "source=agent", {"source": {"component": "agent"}}),
    "an escaped comma": Field(EVENT, r"reason=a\,b", {"reason": "a,b"}),
}


@pytest.mark.parametrize("case", FIELDS.values(), ids=FIELDS.keys())
def test_fields_select(case: Field) -> None:
    assert field_selector(case.text, case.kind).matches(case.obj) is case.selected


BAD_FIELDS = {
    "a term without an operator": (
        CONFIG_MAP,
        "metadata.name",
        "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
    ),
    "one sign too many": (
        CONFIG_MAP,
        "metadata.name===x",
        "invalid field selector: unescaped character in value: 61",
    ),
    "a field this plain kind lacks": (
        CONFIG_MAP,
        "spec.nodeName=x",
        '"spec.nodeName" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ),
    "a field pods lack": (POD, "foo=bar", "field label not supported: foo"),
    "a field custom kinds lack": (JOB, "foo=bar", "field label not supported: foo"),
}


@pytest.mark.parametrize(("kind", "text", "message"), BAD_FIELDS.values(), ids=BAD_FIELDS.keys())
def test_bad_field_selectors_get_kubernetes_words(kind: Kind, text: str, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        field_selector(text, kind)
    assert str(refusal.value) == message


def test_a_selector_tells_the_one_name_it_wants() -> None:
    assert field_selector("metadata.name=p", POD).exact("metadata.name") == "p"
    assert field_selector("metadata.name!=p", POD).exact("metadata.name") == ""
