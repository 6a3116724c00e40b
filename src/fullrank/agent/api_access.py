"""What programs in pods need to speak to the API as clients in a cluster do: an address, and files at a known path.

Whoever can submit a job can run code as the user who started the server, so every pod's token is the home's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from fullrank.agent.links import Port, service_variables
from fullrank.api.meta import Json, namespace_of
from fullrank.api.scheme import SERVICE_ACCOUNT
from fullrank.client.port import Key, Reader
from fullrank.errors import NotFound

FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}


@dataclass(frozen=True, slots=True)
class ApiAccess:
    """How the API is reached from this machine."""

    url: str
    ca: str
    token: str

    def variables(self) -> Mapping[str, str]:
        where = urlsplit(self.url)
        host, port = where.hostname or "localhost", where.port or 443
        return service_variables("kubernetes", EVERYWHERE.get(host, host), [Port("https", 443, "TCP", port)])

    def files(self, pod: Json) -> dict[str, str]:
        return {"ca.crt": self.ca, "namespace": namespace_of(pod), "token": self.token}


async def wants_access(client: Reader, pod: Json) -> bool:
    """Whether the pod, or else its service account, leaves the token where it is usually put."""
    spec: Json = pod["spec"]
    wish = spec.get("automountServiceAccountToken")
    if wish is None:
        name = spec.get("serviceAccountName") or "default"
        try:
            account = await client.get(Key(SERVICE_ACCOUNT, namespace_of(pod), name))
        except NotFound:
            return True
        wish = account.get("automountServiceAccountToken")
    return wish is not False
