"""Where a request comes from: the door opens to people and to our own pages, never to a page of somebody else.

A session's cookie comes along with whatever a browser is made to ask, by whichever page. So these facts, which no page
can forge, decide before the cookie is looked at: the name that the browser reached us by, the page's origin, and what
the answer is wanted for (Fetch Metadata, which browsers send to loopback addresses and over TLS).

Programs' pages share our origin. They get nothing that only our own pages may read: those are for a person's own
navigation, and a script cannot make its request look like one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

SAFE = frozenset(("GET", "HEAD"))
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{1,5}))?")
LOCAL_PATH = re.compile(
    r"/(?![/\\])[!-\[\]-~]*"
)  # printable ASCII without the backslash, which browsers take for /


@dataclass(frozen=True, slots=True)
class Knock:
    """What a request says of where it comes from."""

    method: str
    host: str
    origin: str = ""
    site: str = ""  # whose page asks: same-origin, same-site, cross-site; none: the person themselves
    dest: str = ""  # what for: document is a page of its own in a tab
    upgrades: bool = False

    @classmethod
    def read(cls, method: str, headers: Mapping[str, str], *, upgrades: bool) -> "Knock":
        return cls(
            method,
            headers.get("Host", ""),
            headers.get("Origin", ""),
            headers.get("Sec-Fetch-Site", ""),
            headers.get("Sec-Fetch-Dest", ""),
            upgrades,
        )


def refusal(knock: Knock, listen: str) -> str:
    """Why such a request is not looked at any further; empty if it is."""
    if not _reaches(knock.host, listen):
        return f"this server is not called {knock.host[:80]!r}: use its address, or localhost"
    # A form of a page that hides where it is says "null"; so does a stranger's sandboxed frame.
    hidden = knock.origin == "null" and knock.site == "same-origin"
    if knock.origin and not hidden and not _is_origin(knock.origin, knock.host):
        return "a page of another site asked for this"
    own = knock.site == "same-origin" or (not knock.site and bool(knock.origin))
    if knock.upgrades or knock.method not in SAFE:
        return "" if own else "only a page of this server may ask for this"
    if knock.site in ("same-site", "cross-site") and knock.dest != "document":
        return "a page of another site asked for this"
    return ""


def is_page_for_a_person(knock: Knock) -> bool:
    """Whether a person goes there in a tab, as opposed to a script (of a program's page, say) or a frame."""
    return knock.dest in ("", "document")


def local_path(wanted: str) -> str:
    """Where to go after logging in: a path of this server, else its first page."""
    return wanted if LOCAL_PATH.fullmatch(wanted) else "/"


def _reaches(host: str, listen: str) -> bool:
    """Names that strangers' DNS can point at a loopback address are no names of ours.

    A server that listens for others cannot know what they call it; there, a session's cookie is bound to that name.
    """
    if not (found := HOST.fullmatch(host)):
        return False
    name = found["name"].strip("[]").lower()
    if name == "localhost" or not ip_address(listen).is_loopback:
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _is_origin(origin: str, host: str) -> bool:
    """By host and port: a server in front of this one may have added TLS."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
