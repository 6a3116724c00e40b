"""A control plane with all its kinds behind a real door, and enemies: objects with one thing wrong, sent every way."""

import json
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import ClientSession, TCPConnector
from yarl import URL

from fullrank.api.meta import Json
from fullrank.api.scheme import Kind, Scheme
from fullrank.client.http import path_of
from fullrank.clock import SystemClock
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.pki import Credentials, credentials
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.reviews import REVIEWS
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.dialects.contract import JobKind
from fullrank.dialects.registry import SUBMITTED_KINDS
from tests.contract.serving import PretendedLogs

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE")


@dataclass(frozen=True)
class Door:
    """How to knock: with the token, without, or with another one."""

    url: str
    keys: Credentials
    registry: Registry
    known: ClientSession

    def session(self, token: str) -> ClientSession:
        return session_of(self.keys, token)

    async def ask(
        self, method: str, path: str, body: Any = None, media: str = "application/json", **headers: str
    ) -> tuple[int, Any]:
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        async with self.known.request(
            method,
            URL(self.url + path, encoded=True),
            data=None if content is None else BytesIO(content),
            headers={"Content-Type": media, **headers},
        ) as answer:
            raw = await answer.read()
            return answer.status, json.loads(raw) if answer.content_type == "application/json" else raw


def session_of(keys: Credentials, token: str) -> ClientSession:
    tls = ssl.create_default_context(cafile=str(keys.ca))
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return ClientSession(connector=TCPConnector(ssl=tls), headers=headers)


def a_replica(container: str) -> Json:
    spec = {"containers": [{"name": container, "image": "alpine:3"}]}
    return {"replicas": 1, "template": {"spec": spec}}


@asynccontextmanager
async def house_with_a_door(folder: Path) -> AsyncIterator[Door]:
    clock, numbers, admission = SystemClock(), count(1), Admission(SUBMITTED_KINDS)
    store = Store(":memory:", inline=True)
    registry = Registry(store, Scheme(admission.kinds), clock, lambda: f"uid-{next(numbers)}", admission)
    await ensure_namespaces(registry)
    keys = credentials(folder / "pki", clock.now())
    api = Api(registry, admission, Access(keys.token), PretendedLogs(), clock)
    async with serving(api, keys.server_context()) as bound, session_of(keys, keys.token) as session:
        yield Door(bound.url, keys, registry, session)
    store.close()


def all_routes(door: Door) -> Iterator[tuple[str, str]]:
    """Every verb on every collection, object and part of an object, and on what is beside them."""
    paths = ["/", "/api", "/apis", "/api/v1", "/healthz", "/openapi/v2", "/openapi/v3", "/metrics", "/nosuch"]
    for kind in door.registry.scheme:
        space = "default" if kind.namespaced else ""
        paths += [path_of(kind, space), path_of(kind, space, "x"), path_of(kind)]
        paths += [path_of(kind, space, "x", part) for part in (*kind.subresources, "nosuch")]
    paths += [path_of(kind, "default" if kind.namespaced else "") for kind in REVIEWS]
    paths += ["/api/v1/namespaces/default/pods/x:80/proxy/a", "/apis/metrics.k8s.io/v1beta1/nodes"]
    for path in paths:
        for method in METHODS:
            yield method, path


# --- one thing wrong ---

VALUES: tuple[Any, ...] = (
    None, 0, -1, 2**31, 2**63, 2**64, 10**30, 1.5, 1e308, True, "", "a", "../..", "x" * 300, "\u0000", "\ud7ff", "日本",
    "1Gi", "1e999999999", "NaN", "true", "2026-13-01", "2026-01-01", "0001-01-01T00:00:00+23:59", [], [[]], [None],
    ["a", "a"], {}, {"": ""}, {"a": None}, {"a": {"b": [1]}}, [{}], [{"name": "a"}, {"name": "a"}], [{"name": None}],
    {"$patch": "delete"}, {"$patch": "replace"}, {"$retainKeys": 5}, [{"$patch": "delete"}], {"matchLabels": 5},
)  # fmt: skip
TIME = "2026-01-01T00:00:00Z"
METADATA: Json = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["a.b/c"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u", "controller": True}],
    "managedFields": [
        {
            "manager": "m", "operation": "Update", "apiVersion": "v1", "time": TIME, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
        }
    ],
}  # fmt: skip
POD_SPEC: Json = {
    "restartPolicy": "Never",
    "terminationGracePeriodSeconds": 3,
    "nodeSelector": {"a": "b"},
    "containers": [
        {
            "name": "main",
            "image": "b",
            "command": ["x"],
            "env": [
                {"name": "A", "value": "b"},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "ports": [{"containerPort": 80, "name": "h"}],
            "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 3},
            "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
        }
    ],
    "initContainers": [{"name": "i", "image": "b"}],
    "volumes": [
        {"name": "v", "emptyDir": {}},
        {"name": "w", "configMap": {"name": "c", "items": [{"key": "a", "path": "b"}]}},
        {"name": "p", "projected": {"sources": [{"configMap": {"name": "x"}}]}},
    ],
    "tolerations": [{"key": "a", "operator": "Exists"}],
}
STATUS: Json = {
    "phase": "Running",
    "startTime": TIME,
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
    "containerStatuses": [{"name": "main", "restartCount": 0, "state": {"running": {"startedAt": TIME}}}],
    "replicaStatuses": {"Worker": {"active": 1}},
}
RUN_POLICY: Json = {
    "suspend": False,
    "cleanPodPolicy": "None",
    "ttlSecondsAfterFinished": 5,
    "activeDeadlineSeconds": 5,
    "backoffLimit": 2,
    "schedulingPolicy": {"minAvailable": 1, "queue": "q", "minResources": {"cpu": 1}, "priorityClass": "x"},
}
BODIES: dict[str, Json] = {
    "Pod": {"spec": POD_SPEC, "status": STATUS},
    "ConfigMap": {"data": {"a": "b"}, "binaryData": {"x": "YQ=="}, "immutable": False},
    "Secret": {"type": "Opaque", "data": {"a": "YQ=="}, "stringData": {"b": "c"}},
    "Service": {
        "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"port": 80, "targetPort": "x"}]}
    },
    "PersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
    "PodTemplate": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": POD_SPEC}},
    "Event": {
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "regarding": {"name": "p"},
        "reason": "R", "message": "m", "type": "Normal", "count": 1, "firstTimestamp": TIME, "lastTimestamp": TIME,
        "source": {"component": "x"}, "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:00.000000Z"},
    },
    "Lease": {"spec": {"holderIdentity": "x", "leaseDurationSeconds": 3, "renewTime": "2026-01-01T00:00:00.000000Z"}},
    "PriorityClass": {"value": 5, "globalDefault": False},
    "Node": {
        "spec": {"unschedulable": False, "taints": [{"key": "a", "effect": "NoSchedule"}]},
        "status": {"capacity": {"cpu": "1"}, "conditions": STATUS["conditions"], "addresses": [{"type": "Hostname"}]},
    },
    "ClusterQueue": {
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu"],
                    "flavors": [{"name": "d", "resources": [{"name": "cpu", "nominalQuota": "4"}]}],
                }
            ],
        }
    },
    "LocalQueue": {"spec": {"clusterQueue": "q", "stopPolicy": "None"}},
    "SubjectAccessReview": {"spec": {"user": "x", "groups": ["y"]}},
}  # fmt: skip
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
GONE = object()


def a_whole_object(kind: Kind) -> Json:
    """One with something in most of its fields; what it lacks for being admitted does no harm here."""
    head = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "whole"} | METADATA,
    }
    job = next((one for one in SUBMITTED_KINDS if isinstance(one, JobKind) and one.kind == kind), None)
    if job is None:
        return head | BODIES.get(kind.kind, {"spec": {}})
    framework = job.framework
    roles = framework.roles or ("worker",)
    listed = kind.group == "batch.tensorstack.dev"
    policy: Any = {"policy": "OnFailure", "limit": 3} if framework.limits_by_role else "OnFailure"
    template = {"spec": {"containers": [{"name": framework.container or "main", "image": "b"}]}}
    one = {"replicas": 1, "restartPolicy": policy, "template": template}
    replicas: Any = [{"type": role} | one for role in roles] if listed else dict.fromkeys(roles, one)
    spec = {framework.replicas_field: replicas, "runPolicy": {} if listed else RUN_POLICY}
    return head | {"spec": spec, "status": STATUS}


def _places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, one in inner:
        yield from _places(one, (*path, step))


def _with(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return None if new is GONE else new
    copy = dict(value) if isinstance(value, dict) else list(value)
    if new is GONE and len(path) == 1:
        del copy[path[0]]
    else:
        copy[path[0]] = _with(copy[path[0]], path[1:], new)
    return copy


def _alone(path: tuple[str | int, ...], new: Any) -> Any:
    """A patch that says this one thing."""
    patch = None if new is GONE else new
    for step in reversed(path):
        patch = {step: patch} if isinstance(step, str) else [patch]
    return patch


async def mutations(door: Door, seed: int, times: int) -> list[str]:
    """What was answered 5xx: objects of all kinds with one thing wrong, created, replaced, patched, applied, shown."""
    chance, found = Random(seed), list[str]()
    kinds = [*door.registry.scheme, *REVIEWS]
    for kind in kinds:
        await door.ask("POST", path_of(kind, "default" if kind.namespaced else ""), a_whole_object(kind))
    for _ in range(times):
        kind = chance.choice(kinds)
        whole = a_whole_object(kind)
        place = chance.choice(list(_places(whole)))
        wrong = chance.choice((*VALUES, GONE))
        found += [told async for told in _assault(door, kind, whole, place, wrong, chance)]
    return [f"seed {seed}: {told}" for told in found]


async def _assault(
    door: Door, kind: Kind, whole: Json, place: tuple[str | int, ...], new: Any, chance: Random
) -> AsyncIterator[str]:
    collection = path_of(kind, "default" if kind.namespaced else "")
    wrong, patch = _with(whole, place, new), _alone(place, new)
    pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in place)
    verb = chance.choice(("add", "replace", "remove", "test", "copy", "move"))
    steps = [
        {"op": verb, "path": pointer, "value": _alone((), new), "from": chance.choice((pointer, "/metadata"))}
    ]
    fresh = wrong
    if isinstance(wrong, dict) and isinstance(wrong.get("metadata"), dict) and "name" in wrong["metadata"]:
        fresh = wrong | {"metadata": wrong["metadata"] | {"name": f"new-{chance.randrange(10**9)}"}}
    asked: list[tuple[str, str, Any, str]] = [("POST", collection, fresh, "application/json")]
    for part in ("", "/status", "/scale"):
        one = f"{collection}/whole{part}"
        asked += [
            ("PUT", one, wrong, "application/json"),
            ("PATCH", one, patch, "application/merge-patch+json"),
            ("PATCH", one, patch, "application/strategic-merge-patch+json"),
            ("PATCH", one, steps, "application/json-patch+json"),
            ("PATCH", f"{one}?fieldManager=me&force=true", wrong, "application/apply-patch+yaml"),
            ("PATCH", f"{one}?fieldManager=me", whole, "application/apply-patch+yaml"),
        ]
    asked += [("DELETE", f"{collection}/whole?dryRun=All", patch, "application/json")]
    for method, path, body, media in asked:
        code, told = await door.ask(method, path, body, media)
        if code >= 500 and "spec replicas field" not in told["message"]:  # which is what Kubernetes says, too
            yield f"{method} {path} {media} {json.dumps(body)[:500]}: {told}"
    for path in (collection, f"{collection}/whole"):
        code, told = await door.ask("GET", path, **TABLE)
        if code >= 500:
            yield f"GET {path}: {told}"
