"""The Job Center on its port: who gets in, which page they get, and which program they are led to."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import anyio
from aiohttp import web
from yarl import URL

from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.dialects.apps import AppKind
from fullrank.dialects.registry import APP_KINDS
from fullrank.errors import BadRequest, FullrankError, NotFound, Unavailable
from fullrank.listener import Bound, Streams, listening
from fullrank.relay import going_out, is_websocket, relay
from fullrank.web import pages
from fullrank.web.door import Knock, is_page_for_a_person, local_path, refusal
from fullrank.web.headers import homeward, outward
from fullrank.web.overview import overview
from fullrank.web.programs import Failed, Open, Starting, Stopped, find
from fullrank.web.sessions import LIFETIME, Sessions
from fullrank.web.visits import Visits

LARGEST_FORM = 64 << 10
LONGEST_LINE = 16 << 10  # of a request's head: TensorBoard puts long lists of runs into addresses
MOST_HEADERS = 100
HOW_TO_LOG_IN = (
    "fullrank open      # opens the Job Center, logged in\nfullrank status    # shows the login link"
)

log = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class JobCenter:
    """Pages for people, made from what the API says; it keeps nothing itself."""

    def __init__(self, client: Client, token: str, clock: Clock, *, listen: str = "127.0.0.1") -> None:
        self.streams = Streams()
        self.visits = Visits(client, clock)
        self._client, self._clock, self._listen = client, clock, listen
        self._sessions = Sessions(token, clock)

    def application(self, session: aiohttp.ClientSession) -> web.Application:
        made = web.Application(middlewares=[self._door], client_max_size=LARGEST_FORM)
        for name in pages.FILES:
            made.router.add_get(f"/static/{name}", partial(self._file, name))
        made.router.add_get("/login", self._login)
        made.router.add_post("/logout", self._logout)
        made.router.add_get("/", self._overview)
        for app in APP_KINDS:
            below = f"/{app.kind.plural}/{{namespace}}/{{name}}"
            made.router.add_get(below, self._with_slash)
            made.router.add_route("*", f"{below}/{{path:.*}}", partial(self._program, session, app))
        return made

    # --- the door ---

    @web.middleware
    async def _door(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """The HTTP edge: nobody gets past it unseen, and every mishap becomes a page."""
        knock = Knock.read(request.method, request.headers, upgrades=is_websocket(request))
        if reason := refusal(knock, self._listen):
            return pages.notice(403, f"Refused: {reason}.")
        try:
            if not request.path.startswith("/static/") and request.path != "/login":
                if not self._session(request):
                    return self._outside()
                if not self._leads_to_program(request) and not is_page_for_a_person(knock):
                    return pages.notice(403, "Refused: this page is for people, not for scripts or frames.")
            return await handler(request)
        except web.HTTPException as answer:
            return pages.notice(answer.status, f"{request.method} {request.path}: {answer.reason}.")
        except FullrankError as error:
            return pages.notice(error.code, str(error))
        except Exception:
            log.exception("a request for %s failed", request.path)
            return pages.notice(500, "This should not have happened; the server's log tells more.")

    def _session(self, request: web.Request) -> str:
        return self._sessions.current(request.headers.getall("Cookie", []))

    def _leads_to_program(self, request: web.Request) -> bool:
        return any(request.path.startswith(f"/{app.kind.plural}/") for app in APP_KINDS)

    def _outside(self, text: str = "You are not logged in.") -> web.Response:
        says = f"{text} On the machine where Fullrank runs, one of these commands gives you the way in:"
        return pages.notice(401, says, title="Log in first", advice=HOW_TO_LOG_IN)

    async def _login(self, request: web.Request) -> web.Response:
        if not self._sessions.admits(request.query.get("token", "")):
            answer = self._outside("This login link is not, or no longer, valid.")
        else:
            answer = web.Response(status=303, headers=pages.HEADERS)
            answer.headers["Location"] = local_path(request.query.get("next", "/"))
            answer.set_cookie(
                self._sessions.cookie,
                self._sessions.begin(),
                max_age=int(LIFETIME.total_seconds()),
                httponly=True,
                samesite="Lax",
            )
        answer.headers["Referrer-Policy"] = "no-referrer"  # the address has the token in it
        return answer

    async def _logout(self, request: web.Request) -> web.Response:
        permit = (await request.post()).get("permit")
        if not self._sessions.permits(self._session(request), permit if isinstance(permit, str) else ""):
            return pages.notice(
                403, "Refused: this did not come from a page of the Job Center. Reload it, and try again."
            )
        answer = web.Response(status=303, headers={**pages.HEADERS, "Location": "/"})
        answer.del_cookie(self._sessions.cookie, httponly=True, samesite="Lax")
        return answer

    # --- pages ---

    async def _file(self, name: str, _request: web.Request) -> web.Response:
        return pages.file(name)

    async def _overview(self, request: web.Request) -> web.Response:
        seen = await overview(self._client, self._clock.now())
        permit = self._sessions.permit(self._session(request))
        return pages.page("overview", jobs=seen.jobs, programs=seen.programs, older=seen.older, permit=permit)

    # --- programs ---

    async def _with_slash(self, request: web.Request) -> web.Response:
        query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
        location = f"{request.rel_url.raw_path}/{query}"
        return web.Response(status=308, headers={**pages.HEADERS, "Location": location})

    async def _program(
        self, session: aiohttp.ClientSession, app: AppKind, request: web.Request
    ) -> web.StreamResponse:
        key = Key(app.kind, request.match_info["namespace"], request.match_info["name"])
        try:
            found = await find(self._client, app, key)
        except NotFound:
            return pages.notice(404, f"There is no {key}.", title=f"No such {app.kind.kind}")
        if not isinstance(found, Open):
            return closed(key, found)
        if not request.raw_path.startswith("/"):
            raise BadRequest("an address of this server begins with /")
        cookie = self._sessions.cookie
        self.visits.note(key)
        try:
            return await relay(
                request,
                session,
                URL(f"http://{found.address}{request.raw_path}", encoded=True),
                outward(
                    request.headers,
                    cookie=cookie,
                    token=found.token,
                    remote=request.remote or "",
                    scheme=request.scheme,
                ),
                self.streams,
                back=partial(homeward, cookie=cookie, path=app.app.url(key.namespace, key.name)),
                traffic=partial(self.visits.note, key),
            )
        except Unavailable:
            return closed(key, Starting())


def closed(key: Key, found: Starting | Stopped | Failed) -> web.Response:
    """What people see in the place of a program that does not answer."""
    kind = key.kind.kind
    match found:
        case Starting():
            says = f"{key} is starting. This page looks again by itself."
            return pages.notice(503, says, title=f"{kind} is starting", again=True)
        case Stopped(command):
            says = f"{key} is stopped; nothing in it is lost. To bring it back:"
            return pages.notice(503, says, title=f"{kind} is stopped", advice=command)
        case Failed(why):
            return pages.notice(503, f"{key} cannot run: {why}", title=f"{kind} failed")


@asynccontextmanager
async def serving(center: JobCenter, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Bound]:
    """Serves while the context lasts; port 0 is any free one. Unavailable if the address cannot be had."""
    async with going_out() as session, anyio.create_task_group() as tasks:
        tasks.start_soon(center.visits.run)
        async with listening(
            center.application(session),
            center.streams,
            host=host,
            port=port,
            auto_decompress=False,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
            max_headers=MOST_HEADERS,
        ) as bound:
            yield bound
        tasks.cancel_scope.cancel()
