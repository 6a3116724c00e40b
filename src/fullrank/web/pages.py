"""Pages as text: templates in which everything is escaped, and the headers that let a page do no more than it must."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"
FILES = {"style.css": "text/css", "icon.svg": "image/svg+xml"}
POLICY = "; ".join((
    "default-src 'none'", "style-src 'self'", "img-src 'self'", "form-action 'self'", "base-uri 'none'",
    "frame-ancestors 'none'",
))  # fmt: skip
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": POLICY,
    # A program's page that opens one of ours in a window gets no hold of it.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Not "no-referrer", which would hide from us as well that our own forms are ours.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def page(name: str, status: int = 200, **values: Any) -> web.Response:
    text = _templates().get_template(f"{name}.html").render(values)
    return web.Response(status=status, text=text, content_type="text/html", headers=HEADERS)


def notice(status: int, text: str, *, title: str = "", advice: str = "", again: bool = False) -> web.Response:
    """A page that says one thing, and what to do about it; with `again` the browser asks again by itself."""
    heading = title or HTTPStatus(status).phrase
    return page("notice", status, title=heading, text=text, advice=advice, again=again)


def file(name: str) -> web.Response:
    body = (STATIC / name).read_bytes()
    return web.Response(
        body=body,
        headers=HEADERS | {"Content-Type": f"{FILES[name]}; charset=utf-8", "Cache-Control": "max-age=3600"},
    )


@cache
def _templates() -> "Environment":
    from jinja2 import (
        Environment,
        FileSystemLoader,
        StrictUndefined,
    )  # not before the first page is asked for

    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
