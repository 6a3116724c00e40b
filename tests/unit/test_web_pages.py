"""What people see in the Job Center, whatever is in the objects."""

import re
from html.parser import HTMLParser

import pytest

from fullrank.api.meta import Json
from fullrank.client.port import Key
from fullrank.dialects.notebook import NOTEBOOKS
from fullrank.dialects.registry import JOB_KINDS
from fullrank.dialects.tensorboard import TENSORBOARDS
from fullrank.web import pages
from fullrank.web.overview import Row
from tests.build import a_job
from tests.unit.job_center import Front, a_front

pytestmark = pytest.mark.anyio

HOSTILE = """"'><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}</title>"""
PYTORCH = next(one.kind for one in JOB_KINDS if one.kind.kind == "PyTorchJob")


class Elements(HTMLParser):
    """Which elements a page has, with which attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


async def submit(front: Front, name: str) -> Key:
    job: Json = a_job("PyTorchJob", {"Master": 1}) | {"metadata": {"name": name, "namespace": "default"}}
    return Key.of(PYTORCH, await front.client.create(PYTORCH, job))


async def shown(front: Front) -> str:
    return re.sub(r"\s+", " ", await (await front.ask("GET", "/")).text())


async def test_jobs_tensorboards_and_notebooks_are_listed_with_their_state() -> None:
    async with a_front() as front:
        await front.log_in()
        assert "submits one" in await shown(front)
        key = await submit(front, "mnist")
        status = {"conditions": [{"type": "Running", "status": "True"}]}
        await front.client.patch(key, {"status": status}, subresource="status")
        await front.make(TENSORBOARDS, "board")
        await front.make(NOTEBOOKS, "book", ("127.0.0.1", 1))
        front.clock.advance(300)
        text = await shown(front)
        job, board, book = (
            text.partition(f">{name}<")[2].partition("</tr>")[0] for name in ("mnist", "board", "book")
        )
        assert all(word in job for word in ("default", "PyTorchJob", ">Running<", ">5m<"))
        assert all(word in board for word in ("TensorBoard", ">Pending<"))
        assert all(word in book for word in ("Notebook", ">Running<"))
        assert 'href="/notebooks/default/book/"' in text


async def test_what_somebody_wrote_into_a_status_is_text_and_nothing_else() -> None:
    async with a_front() as front:
        await front.log_in()
        key = await submit(front, "mnist")
        status: Json = {"conditions": [{"type": HOSTILE, "status": "True"}]}
        await front.client.patch(key, {"status": status}, subresource="status")
        await front.make(TENSORBOARDS, "board")
        board = Key(TENSORBOARDS.kind, "default", "board")
        condition = {"type": "Invalid", "status": "True", "message": HOSTILE}
        wrong: Json = {"phase": "Failed", "url": "javascript:alert(1)", "conditions": [condition]}
        await front.client.patch(board, {"status": wrong}, subresource="status")
        for path in ("/", "/tensorboards/default/board/"):
            text = await (await front.ask("GET", path)).text()
            found = Elements(text)
            assert not {"script", "img"} & found.names
            assert not any(name.startswith("on") for name in found.attributes)
            assert "javascript:" not in text
            assert "&lt;script&gt;" in text
            assert "{{ 7*7 }}" in text
    assert not {"script", "img"} & Elements(_page_of(HOSTILE)).names


def _page_of(text: str) -> str:
    row = Row(text, text, text, text, text, text, "/x/")
    return pages.page("overview", jobs=[row], programs=[row], older=1, permit=text).text or ""


CLOSED = {
    "nobody": (404, "There is no Notebook default/nobody."),
    "starting": (503, "is starting"),
    "stopped": (503, "kubectl -n default patch notebook stopped --type=merge"),
    "unreachable": (503, "is starting"),
    "crashing": (503, "is starting"),
}


@pytest.mark.parametrize("name", CLOSED)
async def test_a_program_that_does_not_answer_says_why(name: str) -> None:
    async with a_front() as front:
        await front.log_in()
        if name != "nobody":
            gone = ("127.0.0.1", 1)  # a port at which nobody ever is
            await front.make(NOTEBOOKS, name, None if name == "starting" else gone)
        if name == "stopped":
            await front.client.patch(Key(NOTEBOOKS.kind, "default", name), NOTEBOOKS.switched(on=False))
        status, words = CLOSED[name]
        answer = await front.ask("GET", f"/notebooks/default/{name}/")
        assert (answer.status, words in (await answer.text()).replace("&#34;", '"')) == (status, True)
        assert ("http-equiv" in await answer.text()) == (words == "is starting")


async def test_a_program_without_its_last_slash_is_found() -> None:
    async with a_front() as front:
        await front.log_in()
        answer = await front.ask("GET", "/notebooks/default/a%20b?x=%2F")
        assert (answer.status, answer.headers["Location"]) == (308, "/notebooks/default/a%20b/?x=%2F")
        assert (await front.ask("GET", "/notebooks//evil.example")).status in (308, 404)


async def test_the_page_holds_the_newest_of_very_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fullrank.web.overview.MOST_JOBS", 2)
    async with a_front() as front:
        await front.log_in()
        for name in ("first", "second", "third"):
            await submit(front, name)
            front.clock.advance(60)
        text = await shown(front)
        assert [name in text for name in ("first", "second", "third")] == [False, True, True]
        assert "1 older ones are not shown" in text
