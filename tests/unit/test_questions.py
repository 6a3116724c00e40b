from datetime import UTC, datetime, timedelta

import pytest
from multidict import MultiDict

from fullrank.api.scheme import CORE_KINDS, NAMESPACE, NODE, POD, Kind, Scheme
from fullrank.controlplane.questions import (
    Address,
    LogOptions,
    Query,
    address_of,
    delete_options,
    form_of,
    log_options,
)
from fullrank.controlplane.registry import Preconditions
from fullrank.errors import BadRequest, Invalid, NotFound

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status",))
SCHEME = Scheme([*CORE_KINDS, JOB])
NOW = datetime(2026, 1, 1, tzinfo=UTC)

ADDRESSES = {
    "/pods": Address(POD, "", "", ""),
    "/namespaces/a/pods": Address(POD, "a", "", ""),
    "/namespaces/a/pods/b": Address(POD, "a", "b", ""),
    "/namespaces/a/pods/b/log": Address(POD, "a", "b", "log"),
    "/namespaces": Address(NAMESPACE, "", "", ""),
    "/namespaces/a": Address(NAMESPACE, "", "a", ""),
    "/namespaces/a/status": Address(NAMESPACE, "", "a", "status"),
    "/nodes/n/status": Address(NODE, "", "n", "status"),
    "kubeflow.org/namespaces/a/pytorchjobs/status": Address(JOB, "a", "status", ""),
}


@pytest.mark.parametrize(("path", "expected"), ADDRESSES.items())
def test_a_path_leads_to_a_collection_an_object_or_a_part_of_it(path: str, expected: Address) -> None:
    group, *rest = path.split("/")
    assert address_of(SCHEME, group, "v1", rest) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/things", "/pods/b", "/namespaces/a/nodes", "/namespaces/a/nodes/b", "/namespaces//pods",
        "/namespaces/a/pods/b/frob", "/namespaces/a/pods/b/log/c", "/pytorchjobs", "kubeflow.org/pods",
        "/namespaces/a/configmaps/b/status", "/",
    ],
)  # fmt: skip
def test_a_path_to_nowhere_is_not_found(path: str) -> None:
    group, *rest = path.split("/")
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        address_of(SCHEME, group, "v1", rest)


FORMS = {
    "": "plain",
    "*/*": "plain",
    "application/json": "plain",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io": "table",
    "application/json, application/json;as=Table;v=v1;g=meta.k8s.io": "plain",
    "application/vnd.kubernetes.protobuf,application/json": "plain",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1": "partial",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json": "aggregated",
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json": "plain",
}


@pytest.mark.parametrize(("accept", "form"), FORMS.items())
def test_the_first_form_we_know_is_given(accept: str, form: str) -> None:
    assert form_of(accept) == form


def query(**values: str) -> Query:
    return Query(MultiDict(values))


def test_flags_are_what_go_and_python_write() -> None:
    given = query(a="true", b="True", c="1", d="", e="false", f="False", g="0")
    assert [given.flag(name) for name in "abcdefgh"] == [True, True, True, True, False, False, False, False]


def test_log_options_are_read_and_checked() -> None:
    given = query(follow="True", tailLines="5", sinceSeconds="60", timestamps="true")
    since = NOW - timedelta(seconds=60)
    assert log_options(given, NOW) == LogOptions(follow=True, tail=5, since=since, timestamps=True)
    with pytest.raises(Invalid) as refused:
        log_options(query(tailLines="-1", limitBytes="0", sinceSeconds="1", sinceTime="noon"), NOW)
    assert [cause.field for cause in refused.value.causes] == [
        "tailLines",
        "limitBytes",
        "sinceTime",
        "sinceTime",
    ]
    with pytest.raises(BadRequest, match='tailLines: "x" is not a number'):
        log_options(query(tailLines="x"), NOW)


def test_delete_options_come_from_the_body_or_the_query() -> None:
    body = b'{"preconditions":{"uid":"u","resourceVersion":"7"},"gracePeriodSeconds":0,"propagationPolicy":"Orphan"}'
    given = delete_options(body, "application/json", query(gracePeriodSeconds="5"))
    assert (given.preconditions, given.grace, given.propagation) == (Preconditions("u", "7"), 0, "Orphan")
    asked = delete_options(b"", "", query(gracePeriodSeconds="5", orphanDependents="true", dryRun="All"))
    assert (asked.grace, asked.propagation, asked.dry_run) == (5, "Orphan", True)
    assert delete_options(b"", "", query()).propagation == "Background"
