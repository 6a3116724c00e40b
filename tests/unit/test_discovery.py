from fullrank.api.scheme import CORE_KINDS, POD, Kind
from fullrank.controlplane.discovery import Discovery, Resource

JOB = Kind("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status", "scale"))
REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
discovery = Discovery([*map(Resource, (*CORE_KINDS, JOB)), Resource(REVIEW, ("create",))])


def test_groups_are_listed_without_the_core() -> None:
    groups = [group["name"] for group in discovery.groups()["groups"]]
    assert groups == [
        "authorization.k8s.io",
        "coordination.k8s.io",
        "events.k8s.io",
        "kubeflow.org",
        "scheduling.k8s.io",
    ]


def test_a_group_names_its_versions() -> None:
    group = discovery.group("kubeflow.org")
    assert group is not None
    assert group["preferredVersion"] == {"groupVersion": "kubeflow.org/v1", "version": "v1"}
    assert discovery.group("apps") is None
    assert discovery.group("") is None


def test_resources_come_with_their_parts() -> None:
    core = discovery.resources("", "v1")
    assert core is not None
    pods = {line["name"]: line for line in core["resources"] if line["name"].startswith("pods")}
    assert pods["pods"]["shortNames"] == ["po"]
    assert pods["pods/log"]["verbs"] == ["get"]
    assert pods["pods/binding"]["kind"] == "Binding"
    jobs = discovery.resources("kubeflow.org", "v1")
    assert jobs is not None
    scale = next(line for line in jobs["resources"] if line["name"] == "pytorchjobs/scale")
    assert (scale["kind"], scale["group"]) == ("Scale", "autoscaling")
    assert discovery.resources("kubeflow.org", "v2") is None


def test_everything_at_once_says_the_same() -> None:
    (core,) = discovery.aggregated(core=True)["items"]
    pods = next(line for line in core["versions"][0]["resources"] if line["resource"] == "pods")
    assert pods["responseKind"] == {"group": "", "version": "v1", "kind": "Pod"}
    assert {part["subresource"] for part in pods["subresources"]} == set(POD.subresources)
    groups = discovery.aggregated(core=False)["items"]
    assert [group["metadata"]["name"] for group in groups] == [
        each["name"] for each in discovery.groups()["groups"]
    ]
    review = groups[0]["versions"][0]["resources"][0]
    assert (review["scope"], review["verbs"]) == ("Cluster", ["create"])
