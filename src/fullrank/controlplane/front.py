"""The Service `kubernetes`, by which whatever is inside a cluster finds the API: here it leads to the listener."""

from urllib.parse import urlsplit

from fullrank.api.meta import Json
from fullrank.api.scheme import SERVICE
from fullrank.client.port import Client, Key
from fullrank.errors import NotFound

EVERYWHERE = ("0.0.0.0", "::")  # addresses to listen on, not to go to
LOOPBACK = "127.0.0.1"


async def announce(client: Client, url: str) -> None:
    """Writes down where the API is to be found now."""
    wanted = front(url)
    key = Key.of(SERVICE, wanted)
    try:
        await client.patch(key, {"spec": wanted["spec"]})
    except NotFound:
        await client.create(SERVICE, wanted)


def front(url: str) -> Json:
    """No proxy stands in between, so the Service's own address and port are the listener's."""
    place = urlsplit(url)
    address = LOOPBACK if place.hostname in EVERYWHERE else place.hostname or LOOPBACK
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "labels": {"component": "apiserver", "provider": "kubernetes"},
        },
        "spec": {
            "clusterIP": address,
            "clusterIPs": [address],
            "ports": [{"name": "https", "protocol": "TCP", "port": place.port, "targetPort": place.port}],
        },
    }
