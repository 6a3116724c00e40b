"""`kubectl auth can-i` and `whoami`: whoever got in may do everything."""

from collections.abc import Callable

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.controlplane.access import Identity

ACCESS_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
SELF_REVIEW = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
RULES_REVIEW = Kind(
    "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
EVERYTHING: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
REVIEWS: dict[Kind, Callable[[Identity], Json]] = {
    ACCESS_REVIEW: lambda _: {"allowed": True},
    RULES_REVIEW: lambda _: EVERYTHING,
    SELF_REVIEW: lambda identity: {"userInfo": {"username": identity.name, "groups": list(identity.groups)}},
}


def reviewed(kind: Kind, asked: Json, identity: Identity) -> Json:
    return {**asked, "kind": kind.kind, "apiVersion": kind.api_version, "status": REVIEWS[kind](identity)}
