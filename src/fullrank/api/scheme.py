"""Kinds: what they are called, where they live, what they can do."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column: a header, and the JSONPath (for core kinds, the reader in `tables`) behind it."""

    name: str
    path: str
    type: str = "string"
    priority: int = 0  # 1 = only with -o wide


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the `scale` subresource finds its numbers: the dotted paths a CustomResourceDefinition names."""

    replicas: str
    observed: str
    selector: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of object, as discovery names it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    columns: tuple[Column, ...] = field(default=(), compare=False)
    scale: Scale | None = field(default=None, compare=False)

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_resource(self) -> str:
        """`pods`, `pytorchjobs.kubeflow.org`: how errors name the collection."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """`Pod`, `PyTorchJob.kubeflow.org`: how errors name one object's kind."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def is_custom(self) -> bool:
        """Whether a cluster serves it from a CustomResourceDefinition, whose rules differ a little."""
        return "." in self.group and not self.group.endswith(".k8s.io")


NAMESPACE = Kind(
    "",
    "v1",
    "Namespace",
    "namespaces",
    namespaced=False,
    short_names=("ns",),
    subresources=("status", "finalize"),
)
NODE = Kind("", "v1", "Node", "nodes", namespaced=False, short_names=("no",), subresources=("status",))
POD = Kind(
    "",
    "v1",
    "Pod",
    "pods",
    short_names=("po",),
    categories=("all",),
    subresources=("status", "log", "binding", "exec"),
)
SERVICE = Kind(
    "", "v1", "Service", "services", short_names=("svc",), categories=("all",), subresources=("status",)
)
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps", short_names=("cm",))
SECRET = Kind("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = Kind("", "v1", "ServiceAccount", "serviceaccounts", short_names=("sa",))
CLAIM = Kind(
    "",
    "v1",
    "PersistentVolumeClaim",
    "persistentvolumeclaims",
    short_names=("pvc",),
    subresources=("status",),
)
POD_TEMPLATE = Kind("", "v1", "PodTemplate", "podtemplates")
EVENT = Kind("", "v1", "Event", "events", short_names=("ev",))
REGARDING_EVENT = Kind(  # the same events, in the words of the newer API
    "events.k8s.io", "v1", "Event", "events", short_names=("ev",)
)
LEASE = Kind("coordination.k8s.io", "v1", "Lease", "leases")
PRIORITY_CLASS = Kind(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, short_names=("pc",)
)

# Only clusters serve these; the embedded home has no need of them.
ROLE = Kind("rbac.authorization.k8s.io", "v1", "Role", "roles")
ROLE_BINDING = Kind("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
AUTOSCALER = Kind(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", short_names=("hpa",)
)
DEPLOYMENT = Kind(
    "apps", "v1", "Deployment", "deployments", short_names=("deploy",), subresources=("status",)
)

CORE_KINDS = (
    NAMESPACE, NODE, POD, SERVICE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, CLAIM, POD_TEMPLATE, EVENT, REGARDING_EVENT,
    LEASE, PRIORITY_CLASS,
)  # fmt: skip


class Scheme:
    """The kinds a home serves, found by what a client knows of them."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self._kinds = tuple(kinds)
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in self._kinds}
        self._by_kind = {(kind.api_version, kind.kind): kind for kind in self._kinds}

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds)

    def at_path(self, group: str, version: str, plural: str) -> Kind | None:
        return self._by_path.get((group, version, plural))

    def named(self, api_version: str, kind: str) -> Kind | None:
        return self._by_kind.get((api_version, kind))
