"""The Job Center in a real browser: the way in, the list, and programs behind the door."""

import os
import sys
from collections.abc import AsyncIterator
from json import dumps
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from tests.e2e.browser import Page, chromium
from tests.e2e.house import House
from tests.e2e.test_apps import JUPYTER

pytestmark = pytest.mark.anyio

# A page with a WebSocket, at the path that it was told: what JupyterLab is, in a few lines.
PROGRAM = """
import os
from aiohttp import web

async def page(request):
    await request.read()
    seen = dict(request.cookies) | {"authorization": request.headers.get("Authorization", "")[:6]}
    return web.json_response(seen) if request.path.endswith("/seen") else web.Response(
        text="<!doctype html><title>Program</title><h1>A program of somebody</h1>", content_type="text/html")

async def echo(request):
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    async for message in socket:
        await socket.send_str(message.data.upper())
    return socket

application = web.Application()
application.router.add_get("/notebooks/default/program/socket", echo)
application.router.add_route("*", "/{path:.*}", page)
web.run_app(application, host=os.environ["POD_IP"], port=8931, print=None)
"""
SOCKET = """new Promise((done, failed) => {
  const socket = new WebSocket(`ws://${location.host}/notebooks/default/program/socket`);
  socket.onopen = () => socket.send("through the door");
  socket.onmessage = event => { socket.close(); done(event.data); };
  socket.onerror = () => failed("no WebSocket");
})"""
SPYING = """(async () => {
  const answer = await fetch("/");
  const opened = window.open("/");
  const permit = () => { try { return opened.document.querySelector("[name=permit]"); } catch { return null; } };
  for (let i = 0; i < 50 && !opened.closed && !permit(); i++) await new Promise(done => setTimeout(done, 20));
  const frame = document.createElement("iframe");
  frame.src = "/";
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  let framed = null;
  try { framed = frame.contentDocument && frame.contentDocument.querySelector("[name=permit]"); } catch {}
  return { fetched: answer.status, opened: !!permit(), framed: !!framed, cookie: document.cookie };
})()"""


def a_notebook(name: str, container: dict[str, Any]) -> dict[str, Any]:
    # As whoever runs the tests, who alone may be able to read the Python that runs them.
    who = {"runAsUser": os.getuid(), "runAsGroup": os.getgid(), "fsGroup": os.getgid()}
    template = {"spec": {"securityContext": who, "containers": [{"name": "notebook", **container}]}}
    return {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "Notebook",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "jupyter", "template": template},
    }


def submit(house: House, kubectl: str, obj: dict[str, Any]) -> None:
    """Returns when it runs."""
    house.run(kubectl, "create", "-f", "-", stdin=dumps(obj))
    name = f"{obj['kind'].lower()}/{obj['metadata']['name']}"
    words = (kubectl, "get", name, "-o", "jsonpath={.status.phase}")
    house.wait_for(lambda: house.run(*words).stdout == "Running")


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with chromium(tmp_path / "browser") as browser:
        yield await browser.page()


async def test_the_link_leads_to_the_list_and_on_to_a_program_with_a_websocket(
    house: House, kubectl: str, page: Page
) -> None:
    await anyio.to_thread.run_sync(house.up)
    link = (await anyio.to_thread.run_sync(house.fullrank, "open", "--print")).stdout.strip()
    address = link.partition("/login")[0]
    container = {
        "image": "python:3.11",
        "command": [sys.executable, "-c", PROGRAM],
        "ports": [{"name": "http", "containerPort": 8931}],
    }
    await anyio.to_thread.run_sync(submit, house, kubectl, a_notebook("program", container))

    for path in ("/", "/notebooks/default/program/", "/login?token=guessed"):
        await page.go(address + path)
        assert "fullrank open" in await page.text()

    await page.go(link)
    assert await page.value("location.pathname + location.search") == "/"
    assert await page.value(
        "document.querySelector('tbody').innerText.split(/\\s+/).slice(0, 4).join(' ')"
    ) == ("program default Notebook Running")
    assert await page.value("document.cookie") == ""

    await page.value("document.querySelector('tbody a').click()")
    await page.until("document.title === 'Program'")
    assert await page.value("location.pathname") == "/notebooks/default/program/"
    assert await page.value(SOCKET) == "THROUGH THE DOOR"
    assert await page.value("fetch('seen', {method: 'POST'}).then(answer => answer.json())") == {
        "authorization": "token "
    }
    # A program's page has our origin, and yet no way to read a page of ours or what lets forms through.
    assert await page.value(SPYING) == {"fetched": 403, "opened": False, "framed": False, "cookie": ""}

    await page.go(address)
    await page.value("document.querySelector('form button').click()")
    await page.until("document.title.startsWith('Log in')")
    log = (house.home / "server.log").read_text()
    assert link.partition("token=")[2] not in log


@pytest.mark.index
@pytest.mark.timeout(600)
async def test_the_notebook_opens_in_a_browser(house: House, kubectl: str, page: Page) -> None:
    (house.home / "images").mkdir()
    (house.home / "images" / "jupyter.yaml").write_text(JUPYTER)
    await anyio.to_thread.run_sync(house.up)
    link = (await anyio.to_thread.run_sync(house.fullrank, "open", "--print")).stdout.strip()
    port = {"name": "http", "containerPort": 8932}
    notebook = a_notebook("book", {"image": "example/jupyter:1", "ports": [port]})
    await anyio.to_thread.run_sync(submit, house, kubectl, notebook)
    await page.go(f"{link}&next=/notebooks/default/book/lab")

    cards = "[...document.querySelectorAll('.jp-LauncherCard')].map(card => card.innerText.trim())"
    await page.until(f"{cards}.includes('Terminal')")
    assert {"Terminal", "Text File", "Markdown File", "Python File"} <= set(await page.value(cards))

    await page.value(
        "[...document.querySelectorAll('.jp-LauncherCard')].find(c => /Terminal/.test(c.innerText)).click()"
    )
    await page.until("!!document.querySelector('.jp-Terminal .xterm-helper-textarea')")
    typed = "fetch('/notebooks/default/book/files/typed.txt').then(a => a.ok ? a.text() : '')"
    while not await page.value(typed):  # what is typed before the shell is there is lost
        await page.value("document.querySelector('.jp-Terminal .xterm-helper-textarea').focus()")
        await page.type("echo $((40+2)) > typed.txt")
        await page.press("Enter", 13, "\r")
        await anyio.sleep(0.5)
    assert (await page.value(typed)).strip() == "42"

    assert await page.value(KERNEL) == "42"


KERNEL = """(async () => {
  const base = "/notebooks/default/book/";
  const kernel = await (await fetch(base + "api/kernels", {method: "POST", body: "{}"})).json();
  const socket = new WebSocket(`ws://${location.host}${base}api/kernels/${kernel.id}/channels`);
  await new Promise((done, failed) => { socket.onopen = done; socket.onerror = failed; });
  const content = {code: "6 * 7", silent: false, store_history: false, user_expressions: {}, allow_stdin: false};
  const header = {msg_id: "1", msg_type: "execute_request", username: "", session: "1", version: "5.3"};
  const ask = {header, parent_header: {}, metadata: {}, channel: "shell", buffers: [], content};
  return await new Promise(done => {
    socket.onmessage = event => {
      const heard = JSON.parse(event.data);
      if (heard.header.msg_type === "execute_result") done(heard.content.data["text/plain"]);
    };
    socket.send(JSON.stringify(ask));
  });
})()"""
