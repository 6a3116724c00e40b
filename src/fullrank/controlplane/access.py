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
