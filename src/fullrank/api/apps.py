"""Web programs with a page of their own, as who runs them and who leads people to them have agreed."""

from dataclasses import dataclass
from hashlib import sha1

from fullrank.api.names import label_name_1035
from fullrank.api.scheme import Column, Kind

GROUP, VERSION = "tensorstack.dev", "v1beta1"
PORT_NAME = "http"  # of the one port that a program's pod answers on
TOKEN_KEY = "token"  # in the Secret beside a program that would let nobody in without one
LONGEST = 57  # characters of a name that is cut: a Service may have 63, and five tell it from others
_COLUMNS = (
    Column("Phase", ".status.phase"),
    Column("URL", ".status.url"),
    Column("Age", ".metadata.creationTimestamp", type="date"),
)
TENSORBOARD = Kind(
    GROUP, VERSION, "TensorBoard", "tensorboards", short_names=("tb",), subresources=("status",), columns=_COLUMNS
)  # fmt: skip
NOTEBOOK = Kind(
    GROUP, VERSION, "Notebook", "notebooks", short_names=("nb",), subresources=("status",), columns=_COLUMNS
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class App:
    """A kind of web program; its pod is the one that `status.pod.reference.name` of its object names."""

    kind: Kind
    service_prefix: str  # of its Service, and of the Secret with its token where it has one
    has_token: bool = False

    def url(self, namespace: str, name: str) -> str:
        """Where it answers behind the Job Center's door; the program itself knows it by this path."""
        return f"/{self.kind.plural}/{namespace}/{name}/"

    def service(self, name: str) -> str:
        """The name of everything that belongs to one of them: Service, Secret, and the pod or Deployment."""
        whole = f"{self.service_prefix}-{name}"
        if not label_name_1035(whole):
            return whole
        mark = sha1(name.encode(), usedforsecurity=False).hexdigest()[:5]
        return f"{whole.replace('.', '-')[:LONGEST].rstrip('-')}-{mark}"


TENSORBOARD_APP = App(TENSORBOARD, "managed-tensorboard")
NOTEBOOK_APP = App(NOTEBOOK, "managed-notebook-http", has_token=True)
APPS = (TENSORBOARD_APP, NOTEBOOK_APP)
