"""Who is in: whoever showed the home's token was given a cookie, signed with a key that only the token yields.

Nothing is kept, so a session outlives the server; and since the cookie is not the token, who comes by it can use the
Job Center until it expires, but not the API.
"""

import hmac
import secrets
from collections.abc import Callable, Iterable
from datetime import timedelta
from hashlib import sha256

from fullrank.clock import Clock

LIFETIME = timedelta(days=30)


class Sessions:
    def __init__(
        self, token: str, clock: Clock, nonce: Callable[[], str] = lambda: secrets.token_hex(16)
    ) -> None:
        self._token = token.encode()
        self._key = hmac.digest(self._token, b"fullrank job center", sha256)
        self._clock = clock
        self._nonce = nonce
        # Cookies know hosts but no ports: homes side by side on one machine must not overwrite each other's.
        self.cookie = f"fullrank-{self._sign('name', '')[:8]}"

    def admits(self, token: str) -> bool:
        """Whether this is the home's token."""
        return hmac.compare_digest(token.encode(errors="replace"), self._token)

    def begin(self) -> str:
        """The value of a new session's cookie."""
        claim = f"{int((self._clock.now() + LIFETIME).timestamp())}.{self._nonce()}"
        return f"{claim}.{self._sign('session', claim)}"

    def current(self, cookies: Iterable[str]) -> str:
        """The session in a request's Cookie headers, or nothing.

        Any of several may be the one: a program's page can set a cookie of our name for its own path.
        """
        named = (value for name, value in pairs(cookies) if name == self.cookie)
        return next((value for value in named if self._holds(value)), "")

    def permit(self, session: str) -> str:
        """What a form of ours carries to show that it was read on one of our pages, by this session."""
        return self._sign("permit", session)

    def permits(self, session: str, permit: str) -> bool:
        return hmac.compare_digest(permit.encode(errors="replace"), self.permit(session).encode())

    def _holds(self, value: str) -> bool:
        claim, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode(errors="replace"), self._sign("session", claim).encode()):
            return False
        expires, _, _ = claim.partition(".")
        return self._clock.now().timestamp() < int(expires)  # ours, for it is signed

    def _sign(self, purpose: str, text: str) -> str:
        return hmac.new(self._key, f"{purpose} {text}".encode(errors="replace"), sha256).hexdigest()


def pairs(cookies: Iterable[str]) -> list[tuple[str, str]]:
    """The names and values in Cookie headers, in their order, whatever else is in there."""
    parts = (part.strip().partition("=") for header in cookies for part in header.split(";"))
    return [(name, value) for name, equals, value in parts if equals]
