import pytest

from fullrank.api.meta import Json
from fullrank.api.scheme import EVENT, POD, REGARDING_EVENT, Kind, Scale
from fullrank.controlplane.access import Identity, Wish, refusal
from fullrank.controlplane.namespaces import remains
from fullrank.controlplane.store import Record
from fullrank.controlplane.views import NoSuchField, newer_event, older_event, view_of

WORKERS = ".status.replicaStatuses.Worker"
PATHS = Scale(".spec.roles.Worker.replicas", f"{WORKERS}.active", f"{WORKERS}.selector")
JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("scale",), scale=PATHS)


def a_job(**worker: object) -> Json:
    metadata = {"name": "j", "namespace": "default", "uid": "u", "resourceVersion": "7", "labels": {"a": "b"}}
    status = {"replicaStatuses": {"Worker": {"active": 1, "selector": "job=j"}}}
    return {"metadata": metadata, "spec": {"roles": {"Worker": worker}, "other": 1}, "status": status}


def test_a_job_is_shown_as_a_scale() -> None:
    assert view_of(JOB, "scale").shown(a_job(replicas=2)) == {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "j", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"replicas": 2},
        "status": {"replicas": 1, "selector": "job=j"},
    }


def test_a_job_that_says_no_number_has_no_scale_but_can_be_given_one() -> None:
    view, job = view_of(JOB, "scale"), a_job(template={})
    with pytest.raises(NoSuchField, match=r"the spec replicas field .*Worker\.replicas. does not exist"):
        view.shown(job)
    assert view.patched(job)["spec"] == {"replicas": 0}
    scaled = view.written(job, view.patched(job) | {"spec": {"replicas": 3}})
    assert scaled["spec"] == {"roles": {"Worker": {"template": {}, "replicas": 3}}, "other": 1}


def test_a_scale_that_was_read_too_long_ago_is_noticed() -> None:
    scale = {"metadata": {"name": "j", "resourceVersion": "5"}, "spec": {"replicas": 3}}
    assert view_of(JOB, "scale").written(a_job(replicas=2), scale)["metadata"]["resourceVersion"] == "5"


def test_an_event_survives_both_tellings() -> None:
    event: Json = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod"},
        "message": "seen",
        "count": 3,
        "reportingComponent": "me",
        "source": {"component": "me"},
        "firstTimestamp": None,
    }
    newer = newer_event(event)
    assert (newer["regarding"], newer["note"], newer["deprecatedCount"]) == ({"kind": "Pod"}, "seen", 3)
    assert older_event(newer) == event


def test_selectors_are_translated_as_well() -> None:
    view = view_of(REGARDING_EVENT, "")
    assert view.stored == EVENT
    assert (
        view.selected("regarding.name=p,reportingController=x")
        == "involvedObject.name=p,reportingComponent=x"
    )


def test_a_plain_kind_is_shown_as_it_is_kept() -> None:
    record = Record(1, b"{}", {})
    assert view_of(POD, "").record(record) is record


WISHES = {
    'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "a"': (
        Wish.read("GET", "", ["namespaces", "a", "pods"], watching=False)
    ),
    'pods "p" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "a"': (
        Wish.read("GET", "", ["namespaces", "a", "pods", "p", "log"], watching=False)
    ),
    'nodes "a" is forbidden: User "jane" cannot delete resource "nodes" in API group "" at the cluster scope': (
        Wish.read("DELETE", "", ["nodes", "a"], watching=False)
    ),
    'things.x.io is forbidden: User "jane" cannot watch resource "things" in API group "x.io" at the cluster scope': (
        Wish.read("GET", "x.io", ["things"], watching=True)
    ),
}


@pytest.mark.parametrize(("told", "wish"), WISHES.items(), ids=range(len(WISHES)))
def test_what_somebody_may_not_do_is_told_in_full(told: str, wish: Wish) -> None:
    assert refusal(Identity("jane", ()), wish) == told


def test_a_namespace_says_what_holds_it() -> None:
    held = {"metadata": {"name": "p", "finalizers": ["example.com/hold"]}}
    found = {each["type"]: each for each in remains({POD: [held, {"metadata": {"name": "q"}}]})}
    assert found["NamespaceContentRemaining"]["message"] == (
        "Some resources are remaining: pods. has 2 resource instances"
    )
    assert found["NamespaceFinalizersRemaining"]["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    assert found["NamespaceDeletionContentFailure"]["status"] == "False"
