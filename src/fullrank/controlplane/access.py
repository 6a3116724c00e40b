"""Who is asking: a bearer of the token, or the holder of a certificate of ours. Nobody else gets in."""

from dataclasses import dataclass
from secrets import compare_digest

from aiohttp import web

from fullrank.controlplane.pki import GROUP, USER
from fullrank.errors import Unauthorized

OPEN = frozenset(("/livez", "/readyz", "/version"))


@dataclass(frozen=True, slots=True)
class Identity:
    name: str
    groups: tuple[str, ...]

    @property
    def may_do_everything(self) -> bool:
        """There is one user here; anybody else is a name somebody gave, and may do nothing."""
        return self.name == USER or GROUP in self.groups


class Access:
    def __init__(self, token: str) -> None:
        self._token = token.encode()

    def identity(self, request: web.Request) -> Identity:
        """Who asks, or on whose behalf (`kubectl --as`); Unauthorized if nobody we know."""
        asking = self._proven(request)
        if not (name := request.headers.get("Impersonate-User")):
            return asking
        return Identity(name, (*request.headers.getall("Impersonate-Group", []), "system:authenticated"))

    def _proven(self, request: web.Request) -> Identity:
        """A wrong token is refused even where the certificate would do."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer" and compare_digest(token.strip().encode(errors="replace"), self._token):
            return Identity(USER, (GROUP, "system:authenticated"))
        certificate = request.transport.get_extra_info("peercert") if request.transport else None
        if certificate and not scheme:
            # TLS has verified it: it was issued by our own authority, for a client.
            subject = {name: value for part in certificate.get("subject", ()) for name, value in part}
            groups = (subject.get("organizationName", ""), "system:authenticated")
            return Identity(subject.get("commonName", ""), groups)
        raise Unauthorized("Unauthorized")


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request wants to do, to what."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @classmethod
    def read(cls, method: str, group: str, rest: list[str], *, watching: bool) -> "Wish":
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        name = rest[1] if len(rest) > 1 else ""
        if rest[0] == "namespaces":
            namespace = name
        verb = VERBS.get((method, bool(name)), method.lower())
        return cls("watch" if watching else verb, group, "/".join((rest[0], *rest[2:])), namespace, name)


VERBS = {
    ("GET", True): "get",
    ("GET", False): "list",
    ("POST", False): "create",
    ("PUT", True): "update",
    ("DELETE", False): "deletecollection",
}


def refusal(identity: Identity, wish: Wish) -> str:
    """Why somebody may not, in Kubernetes' words."""
    collection = wish.resource.partition("/")[0]
    about = f"{collection}.{wish.group}" if wish.group else collection
    named = f' "{wish.name}"' if wish.name else ""
    where = f'in the namespace "{wish.namespace}"' if wish.namespace else "at the cluster scope"
    wants = f'cannot {wish.verb} resource "{wish.resource}" in API group "{wish.group}" {where}'
    return f'{about}{named} is forbidden: User "{identity.name}" {wants}'
