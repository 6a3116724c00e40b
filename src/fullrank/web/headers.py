"""What a program is told of a request, and what of its answer gets back.

Nothing of ours goes there, and nothing comes here that reaches beyond the program's own pages.
"""

from collections.abc import Mapping

from multidict import CIMultiDict, CIMultiDictProxy

from fullrank.relay import passed_on
from fullrank.web.sessions import pairs

# What would reach beyond the program's own path: our pages' wall (see `pages`), a worker for the whole site,
# everybody's cookies, or the way to this server itself.
FAR_REACHING = (
    "alt-svc", "clear-site-data", "cross-origin-opener-policy", "service-worker-allowed", "strict-transport-security",
)  # fmt: skip


def outward(
    headers: CIMultiDictProxy[str], *, cookie: str, token: str, remote: str, scheme: str
) -> CIMultiDict[str]:
    """Without our session; with the program's own token; Host and Origin as the browser sent them."""
    sent = passed_on(headers, "cookie", *(("authorization",) if token else ()))
    kept = "; ".join(
        f"{name}={value}" for name, value in pairs(headers.getall("Cookie", [])) if name != cookie
    )
    if kept:
        sent["Cookie"] = kept
    if token:
        sent["Authorization"] = f"token {token}"
    sent["X-Forwarded-For"] = remote
    sent["X-Forwarded-Host"] = headers.get("Host", "")
    sent["X-Forwarded-Proto"] = scheme
    return sent


def homeward(headers: Mapping[str, str], *, cookie: str, path: str) -> CIMultiDict[str]:
    """Cookies stay within the program's path, and no other site may frame its pages."""
    back = passed_on(headers, *FAR_REACHING)
    cookies = back.popall("Set-Cookie", [])
    for one in cookies:
        if one.partition("=")[0].strip() != cookie:
            back.add("Set-Cookie", kept_to(path, one))
    back.add("Content-Security-Policy", "frame-ancestors 'self'")
    return back


def kept_to(path: str, cookie: str) -> str:
    """A Set-Cookie for this path or below it, for this very host."""
    value, *attributes = (part.strip() for part in cookie.split(";"))
    named = [(part.partition("=")[0].strip().lower(), part) for part in attributes]
    wanted = next((part.partition("=")[2].strip() for name, part in reversed(named) if name == "path"), "")
    own = wanted if wanted.startswith(path) else path
    rest = [part for name, part in named if name not in ("path", "domain")]
    return "; ".join((value, f"Path={own}", *rest))
