"""What a cluster is given to run our jobs: definitions of the kinds, an account that may do little, an operator."""

from collections.abc import Iterable, Iterator

from fullrank.api.definitions import definition
from fullrank.api.meta import Json
from fullrank.api.scheme import DEPLOYMENT, EVENT, LEASE, POD, SECRET, SERVICE, Kind
from fullrank.dialects.apps import AppKind
from fullrank.dialects.contract import JobKind

NAME = "fullrank-operator"
LABELS = {"app.kubernetes.io/name": "fullrank", "app.kubernetes.io/component": "operator"}
RBAC = "rbac.authorization.k8s.io"
LOOK = ("get", "list", "watch")


def manifests(
    job_kinds: Iterable[JobKind], app_kinds: Iterable[AppKind], *, image: str, namespace: str
) -> Iterator[Json]:
    """In the order in which they are to be applied."""
    job_kinds, app_kinds = tuple(job_kinds), tuple(app_kinds)
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": LABELS}}
    yield from (job_definition(one) for one in job_kinds)
    yield from (definition(one.kind, one.schema) for one in app_kinds)
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(namespace)}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": LABELS},
        "rules": [*_rules(job_kinds), *_rules_for_apps(app_kinds)],
    }
    yield _binding("ClusterRole", {"name": NAME, "labels": LABELS}, namespace)
    # Whoever holds the lease leads; it lies beside the operator, and no other lease is its business.
    leading = [_rule(LEASE.group, (LEASE.plural,), ("get", "create", "update"))]
    yield {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": _named(namespace), "rules": leading}
    yield _binding("Role", _named(namespace), namespace)
    yield _deployment(image, namespace)


# -- definitions ---------------------------------------------------------------------------------------------------


def job_definition(job_kind: JobKind) -> Json:
    """A job kind's definition, with what its schema alone cannot say: that its queue is fixed."""
    made = definition(job_kind.kind, job_kind.schema)
    (version,) = made["spec"]["versions"]
    place = ("spec", "runPolicy", "schedulingPolicy", "queue")
    if queue := _property(version["schema"]["openAPIV3Schema"], place):
        message = f"{'.'.join(place)} is immutable"
        queue["x-kubernetes-validations"] = [{"rule": "self == oldSelf", "message": message}]
    return made


def _property(structure: Json, place: Iterable[str]) -> Json | None:
    found: Json | None = structure
    for name in place:
        found = (found or {}).get("properties", {}).get(name)
    return found


# -- what the operator may do --------------------------------------------------------------------------------------


def _rules(job_kinds: tuple[JobKind, ...]) -> Iterator[Json]:
    for group in dict.fromkeys(one.kind.group for one in job_kinds):
        plurals = [one.kind.plural for one in job_kinds if one.kind.group == group]
        yield _rule(group, plurals, (*LOOK, "delete"))
        # The second is asked for where owners that block deletion are checked.
        parts = (f"{plural}/{part}" for plural in plurals for part in ("status", "finalizers"))
        yield _rule(group, parts, ("update",))
    yield _rule(POD.group, (POD.plural, SERVICE.plural), (*LOOK, "create", "delete"))
    yield _rule(EVENT.group, (EVENT.plural,), ("get", "create", "patch"))
    for group, kinds in _companions(job_kinds).items():
        yield _rule(group, (kind.plural for kind in kinds), (*LOOK, "create", "update", "delete"))
    # Nobody may grant what he may not do himself, and MPI launchers are let into their workers.
    yield _rule(POD.group, ("pods/exec",), ("create",))


def _rules_for_apps(app_kinds: tuple[AppKind, ...]) -> Iterator[Json]:
    for group in dict.fromkeys(one.kind.group for one in app_kinds):
        plurals = [one.kind.plural for one in app_kinds if one.kind.group == group]
        yield _rule(group, plurals, (*LOOK, "patch"))  # to stop one that has been idle for long
        parts = (f"{plural}/{part}" for plural in plurals for part in ("status", "finalizers"))
        yield _rule(group, parts, ("update",))
    yield _rule(DEPLOYMENT.group, (DEPLOYMENT.plural,), (*LOOK, "create", "update"))
    # Notebooks' tokens, by name: no list of other people's secrets is ever asked for.
    yield _rule(SECRET.group, (SECRET.plural,), ("get", "create"))


def _companions(job_kinds: tuple[JobKind, ...]) -> dict[str, list[Kind]]:
    groups: dict[str, list[Kind]] = {}
    for kind in dict.fromkeys(kind for one in job_kinds for kind in one.framework.companion_kinds):
        groups.setdefault(kind.group, []).append(kind)
    return groups


def _rule(group: str, resources: Iterable[str], verbs: Iterable[str]) -> Json:
    return {"apiGroups": [group], "resources": [*resources], "verbs": [*verbs]}


def _binding(role: str, metadata: Json, namespace: str) -> Json:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{role}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": role, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


# -- the operator --------------------------------------------------------------------------------------------------


def _deployment(image: str, namespace: str) -> Json:
    container = {
        "name": "operator",
        "image": image,
        "args": ["operator"],
        "ports": [{"name": "metrics", "containerPort": 8080}, {"name": "health", "containerPort": 8081}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
    }
    pod = {
        "serviceAccountName": NAME,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _named(namespace),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": LABELS},
            "template": {"metadata": {"labels": LABELS}, "spec": pod},
        },
    }


def _named(namespace: str) -> Json:
    return {"name": NAME, "namespace": namespace, "labels": LABELS}
