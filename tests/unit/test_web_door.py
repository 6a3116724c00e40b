"""Who gets into the Job Center: people with the link, and our own pages; nobody else's."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fullrank.clock import ManualClock
from fullrank.web.door import Knock, is_page_for_a_person, local_path, refusal
from fullrank.web.sessions import LIFETIME, Sessions, pairs
from tests.unit.job_center import TOKEN, Front, a_front

HOST = "127.0.0.1:7480"
GET = Knock("GET", HOST)
POST = Knock("POST", HOST, origin=f"http://{HOST}")
SOCKET = replace(POST, method="GET", upgrades=True)
LET_IN = {
    "somebody types the address": replace(GET, site="none", dest="document"),
    "a program without a browser looks": GET,
    "a link on another site leads here": replace(GET, site="cross-site", dest="document"),
    "a page of ours loads its style": replace(GET, site="same-origin", dest="style"),
    "the address is localhost": replace(GET, host="localhost:7480"),
    "the address is IPv6": replace(GET, host="[::1]:7480"),
    "a tunnel ends at another port": replace(POST, host="localhost:9000", origin="http://localhost:9000"),
    "a server in front adds TLS": replace(POST, host="localhost", origin="https://localhost"),
    "a page of ours sends a form": replace(POST, site="same-origin", dest="document"),
    "a form of ours comes without its origin": replace(POST, origin="null", site="same-origin"),
    "a page of ours opens a WebSocket": SOCKET,
    "it says so itself as well": replace(SOCKET, site="same-origin", dest="websocket"),
}
REFUSED = {
    "a stranger's name points here": replace(GET, host="evil.example:7480"),
    "a stranger's name looks like localhost": replace(GET, host="localhost.evil.example"),
    "a stranger's name ends like localhost": replace(GET, host="evil-localhost"),
    "an address of another machine": replace(GET, host="192.0.2.1:7480"),
    "no host at all": replace(GET, host=""),
    "a host with a user in it": replace(GET, host="127.0.0.1@evil.example"),
    "a host with a path in it": replace(GET, host="127.0.0.1/evil.example"),
    "another site's form": replace(POST, origin="https://evil.example", site="cross-site"),
    "another site's form, in an old browser": replace(POST, origin="https://evil.example"),
    "a form from another port": replace(POST, origin="http://127.0.0.1:8000"),
    "a form from another port, by a browser that says so": replace(POST, site="same-site"),
    "a form from nowhere": replace(POST, origin=""),
    "a form from a sandboxed frame": replace(POST, origin="null"),
    "a form from another site's sandboxed frame": replace(POST, origin="null", site="cross-site"),
    "another site's WebSocket": replace(SOCKET, origin="https://evil.example"),
    "a WebSocket from another port": replace(SOCKET, origin="http://127.0.0.1:8000"),
    "a WebSocket from nowhere": replace(SOCKET, origin=""),
    "a WebSocket from a sandboxed frame": replace(SOCKET, origin="null"),
    "another site's script": replace(GET, site="cross-site", dest="empty", origin="https://evil.example"),
    "another site's frame": replace(GET, site="cross-site", dest="iframe"),
    "a frame from another port": replace(GET, site="same-site", dest="iframe"),
    "another site's image": replace(GET, site="cross-site", dest="image"),
    "an origin that is none": replace(GET, origin="http://[::1"),
}


@pytest.mark.parametrize("who", LET_IN)
def test_these_are_looked_at(who: str) -> None:
    assert refusal(LET_IN[who], "127.0.0.1") == ""


@pytest.mark.parametrize("who", REFUSED)
def test_these_are_turned_away(who: str) -> None:
    assert refusal(REFUSED[who], "127.0.0.1")


def test_a_server_for_others_may_be_called_anything_but_asks_for_origins_all_the_same() -> None:
    assert refusal(replace(GET, host="gpu-box:7480"), "0.0.0.0") == ""
    assert refusal(replace(POST, host="gpu-box:7480"), "0.0.0.0")
    assert refusal(replace(GET, host="gpu box"), "0.0.0.0")


def test_scripts_and_frames_get_no_page_of_ours() -> None:
    assert [is_page_for_a_person(replace(GET, dest=dest)) for dest in ("", "document")] == [True, True]
    assert not any(is_page_for_a_person(replace(GET, dest=dest)) for dest in ("empty", "iframe", "object"))


PATHS = {
    "/": "/",
    "/notebooks/a/b/lab?x=1&y=//z": "/notebooks/a/b/lab?x=1&y=//z",
    "": "/",
    "//evil.example": "/",
    "/\\evil.example": "/",
    "/a\\b": "/",
    "https://evil.example": "/",
    "javascript:alert(1)": "/",
    "evil.example": "/",
    "/\t/evil.example": "/",
    "/a\r\nSet-Cookie: x=1": "/",
    "/é": "/",
}


@pytest.mark.parametrize("wanted", PATHS)
def test_nobody_is_sent_elsewhere_after_logging_in(wanted: str) -> None:
    assert local_path(wanted) == PATHS[wanted]


@given(st.text())
def test_a_path_to_go_to_never_names_a_host(wanted: str) -> None:
    path = local_path(wanted)
    assert path.startswith("/")
    assert path[1:2] not in ("/", "\\")
    assert path.isascii()
    assert path.isprintable()


# --- sessions ---


def cookie_of(sessions: Sessions, value: str) -> list[str]:
    return [f"_xsrf=1; {sessions.cookie}={value}; theme=dark"]


def test_a_session_lasts_beyond_the_server_until_it_expires() -> None:
    clock = ManualClock()
    value = Sessions(TOKEN, clock).begin()
    later = Sessions(TOKEN, clock)
    assert later.current(cookie_of(later, value)) == value
    clock.advance(LIFETIME.total_seconds() - 1)
    assert later.current(cookie_of(later, value)) == value
    clock.advance(1)
    assert later.current(cookie_of(later, value)) == ""


def test_another_home_knows_neither_the_session_nor_the_cookies_name() -> None:
    ours, theirs = Sessions(TOKEN, ManualClock()), Sessions("another", ManualClock())
    assert ours.cookie != theirs.cookie
    assert theirs.current(cookie_of(theirs, ours.begin())) == ""


def test_a_false_cookie_beside_the_right_one_shuts_nobody_out() -> None:
    sessions = Sessions(TOKEN, ManualClock())
    value = sessions.begin()
    assert sessions.current([f"{sessions.cookie}=false; {sessions.cookie}={value}"]) == value


def test_the_token_is_not_in_the_cookie_and_a_permit_is_for_one_session() -> None:
    sessions = Sessions(TOKEN, ManualClock())
    first, second = sessions.begin(), sessions.begin()
    assert TOKEN not in first
    assert first != second
    assert sessions.permits(first, sessions.permit(first))
    assert not sessions.permits(second, sessions.permit(first))
    assert not sessions.permits(first, "")
    assert not sessions.permits(first, first)


@given(st.lists(st.text()))
def test_no_cookie_header_whatever_opens_the_door(headers: list[str]) -> None:
    sessions = Sessions(TOKEN, ManualClock())
    assert sessions.current(headers) == ""
    assert sessions.current([f"{sessions.cookie}={header}" for header in headers]) == ""


@given(st.integers(0, 107), st.characters())
def test_a_session_changed_in_one_letter_is_none(where: int, letter: str) -> None:
    sessions = Sessions(TOKEN, ManualClock(), nonce=lambda: "0" * 32)
    value = sessions.begin()
    forged = value[:where] + letter + value[where + 1 :]
    assert sessions.current([f"{sessions.cookie}={forged}"]) in ("", value)
    assert (sessions.current([f"{sessions.cookie}={forged}"]) == value) == (forged.strip() == value)


@given(st.lists(st.tuples(st.text("abc-_.", min_size=1), st.text("xyz=./|", max_size=9))))
def test_cookies_are_read_as_they_were_sent(sent: list[tuple[str, str]]) -> None:
    assert pairs(["; ".join(f"{name}={value}" for name, value in sent)]) == sent


# --- over the wire ---


@pytest.mark.anyio
async def test_the_link_logs_in_and_the_cookie_is_for_browsers_only() -> None:
    async with a_front() as front:
        answer = await front.log_in()
        assert (answer.status, answer.headers["Location"]) == (303, "/")
        (cookie,) = answer.headers.getall("Set-Cookie")
        assert TOKEN not in cookie
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert (await front.ask("GET", "/")).status == 200
        deeper = await front.ask("GET", f"/login?token={TOKEN}&next=/notebooks/a/b/")
        assert deeper.headers["Location"] == "/notebooks/a/b/"
        elsewhere = await front.ask("GET", f"/login?token={TOKEN}&next=//evil.example")
        assert elsewhere.headers["Location"] == "/"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path",
    ["/", "/login", "/login?token=", "/login?token=wrong", "/notebooks/default/a/", "/nowhere", "/logout"],
)
async def test_without_the_link_there_is_a_page_that_says_how_to_get_it(path: str) -> None:
    async with a_front() as front:
        answer = await front.ask("GET", path)
        assert answer.status == 401
        assert "Set-Cookie" not in answer.headers
        assert "fullrank open" in await answer.text()


@pytest.mark.anyio
async def test_a_forged_or_expired_cookie_does_not_open() -> None:
    async with a_front() as front:
        answer = await front.log_in()
        (cookie,) = (one.partition(";")[0] for one in answer.headers.getall("Set-Cookie"))
        front.session.cookie_jar.clear()
        assert await _status_with(front, cookie) == 200
        for wrong in (cookie + "0", cookie[:-1], cookie.partition("=")[0] + "=1.2.3", f"x{cookie}", TOKEN):
            assert await _status_with(front, wrong) == 401
        front.clock.advance(LIFETIME.total_seconds())
        assert await _status_with(front, cookie) == 401


async def _status_with(front: Front, cookie: str) -> int:
    return (await front.ask("GET", "/", headers={"Cookie": cookie})).status


@pytest.mark.anyio
async def test_logging_out_takes_a_permit_of_this_very_session() -> None:
    async with a_front() as front:
        await front.log_in()
        page = await (await front.ask("GET", "/")).text()
        permit = page.partition('name="permit" value="')[2].partition('"')[0]
        own = {"Origin": front.url}
        assert (await front.ask("POST", "/logout", data={"permit": permit})).status == 403
        assert (await front.ask("POST", "/logout", data={"permit": "0"}, headers=own)).status == 403
        assert (await front.ask("POST", "/logout", data={}, headers=own)).status == 403
        assert (await front.ask("GET", "/")).status == 200
        assert (await front.ask("POST", "/logout", data={"permit": permit}, headers=own)).status == 303
        assert (await front.ask("GET", "/")).status == 401


@pytest.mark.anyio
async def test_a_name_of_a_stranger_and_a_script_get_nothing_even_with_the_cookie() -> None:
    async with a_front() as front:
        await front.log_in()
        for headers in (
            {"Host": "evil.example"},
            {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Site": "same-origin"},
        ):
            answer = await front.ask("GET", "/", headers=headers)
            assert answer.status == 403
            assert "permit" not in await answer.text()


@pytest.mark.anyio
async def test_what_is_too_long_is_refused() -> None:
    async with a_front() as front:
        await front.log_in()
        assert (await front.ask("GET", "/" + "a" * 20_000)).status == 400
        assert (await front.ask("GET", "/", headers={"X-Long": "a" * 20_000})).status == 400
        many = {f"X-{number}": "" for number in range(200)}
        assert (await front.ask("GET", "/", headers=many)).status == 400
        own = {"Origin": front.url}
        assert (await front.ask("POST", "/logout", data={"permit": "a" * 100_000}, headers=own)).status == 413


@pytest.mark.anyio
async def test_every_page_may_do_no_more_than_it_must() -> None:
    async with a_front() as front:
        await front.log_in()
        for path in ("/", "/nowhere", "/notebooks/default/nobody/", "/static/style.css"):
            headers = (await front.ask("GET", path)).headers
            policy = headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'")
            assert "frame-ancestors 'none'" in policy
            assert "script" not in policy
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
