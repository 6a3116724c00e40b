"""`kubectl auth can-i` and `whoami`: whoever got in may do everything, and nobody else may do anything."""

from collections.abc import Callable

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind
from fullrank.controlplane.access import Identity
from fullrank.errors import BadRequest

AUTHORIZATION = "authorization.k8s.io"
ACCESS_REVIEW = Kind(
    AUTHORIZATION, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False
)
RULES_REVIEW = Kind(
    AUTHORIZATION, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False
)
SUBJECT_REVIEW = Kind(AUTHORIZATION, "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
LOCAL_REVIEW = Kind(AUTHORIZATION, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews")
SELF_REVIEW = Kind("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False)
EVERYTHING: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}
NOTHING: Json = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}


def _access(identity: Identity) -> Json:
    return {"allowed": identity.may_do_everything}


def _subject(_identity: Identity, asked: Json) -> Json:
    spec = asked.get("spec") or {}
    groups = spec.get("groups") or [] if isinstance(spec, dict) else None
    if not isinstance(groups, list):
        raise BadRequest("a review's spec is an object, and its groups are a list")
    return _access(Identity(str(spec.get("user") or ""), tuple(map(str, groups))))


REVIEWS: dict[Kind, Callable[[Identity, Json], Json]] = {
    ACCESS_REVIEW: lambda identity, _asked: _access(identity),
    RULES_REVIEW: lambda identity, _asked: EVERYTHING if identity.may_do_everything else NOTHING,
    SUBJECT_REVIEW: _subject,
    LOCAL_REVIEW: _subject,
    SELF_REVIEW: lambda identity, _asked: {
        "userInfo": {"username": identity.name, "groups": list(identity.groups)}
    },
}


def reviewed(kind: Kind, asked: Json, identity: Identity) -> Json:
    status = REVIEWS[kind](identity, asked)
    return {"metadata": {}, **asked, "kind": kind.kind, "apiVersion": kind.api_version, "status": status}
