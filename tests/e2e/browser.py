"""A real browser without a window, driven over its DevTools protocol: Chromium as the system has it."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import anyio
import anyio.abc
import pytest
from aiohttp import ClientSession, ClientWebSocketResponse

PATIENCE = 60.0
FLAGS = (
    "--headless=new", "--remote-debugging-port=0", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip


class Moved(Exception):
    """The page that was asked something is not there any more: the browser goes to another one."""


class Page:
    """A tab with cookies of its own."""

    def __init__(self, browser: "Browser", session: str) -> None:
        self._browser, self._session = browser, session

    async def go(self, url: str) -> None:
        """Returns when the page is there; it may go on loading."""
        answer = await self._browser.ask("Page.navigate", session=self._session, url=url)
        assert not answer.get("errorText"), f"{url}: {answer['errorText']}"
        await self.until("document.readyState !== 'loading'")

    async def value(self, expression: str) -> Any:
        """What JavaScript on the page says; a promise is waited for."""
        answer = await self._browser.ask(
            "Runtime.evaluate",
            session=self._session,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str) -> Any:
        """What it says once that is something."""
        with anyio.move_on_after(PATIENCE):
            while True:
                with suppress(Moved):
                    if found := await self.value(expression):
                        return found
                await anyio.sleep(0.05)
        text = await self.value("location + '\\n' + document.body.innerText")
        raise AssertionError(f"{expression} did not come true within {PATIENCE:g} s on {text}")

    async def text(self) -> str:
        found: str = await self.value("document.body.innerText")
        return found

    async def picture(self) -> str:
        """As PNG, in base64."""
        answer = await self._browser.ask("Page.captureScreenshot", session=self._session)
        found: str = answer["data"]
        return found

    async def type(self, text: str) -> None:
        await self._browser.ask("Input.insertText", session=self._session, text=text)

    async def press(self, key: str, code: int, text: str = "", modifiers: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            await self._browser.ask(
                "Input.dispatchKeyEvent",
                session=self._session,
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
                modifiers=modifiers,
            )


class Browser:
    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._answers: dict[int, Any] = {}
        self._news = anyio.Event()

    async def page(self) -> Page:
        context = (await self.ask("Target.createBrowserContext"))["browserContextId"]
        target = await self.ask("Target.createTarget", url="about:blank", browserContextId=context)
        attached = await self.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"])
        await self.ask("Page.enable", session=attached["sessionId"])
        return page

    async def ask(self, method: str, *, session: str = "", **params: Any) -> Any:
        number = next(self._numbers)
        words = {"id": number, "method": method, "params": params}
        await self._socket.send_json(words | ({"sessionId": session} if session else {}))
        with anyio.fail_after(PATIENCE):
            while number not in self._answers:
                await self._news.wait()
        answer = self._answers.pop(number)
        if any(word in answer.get("error", {}).get("message", "") for word in ("navigated", "context")):
            raise Moved(answer["error"]["message"])
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    async def listen(self) -> None:
        async for message in self._socket:
            heard = message.json()
            if "id" in heard:
                self._answers[heard["id"]] = heard
                self._news.set()
                self._news = anyio.Event()


@asynccontextmanager
async def chromium(folder: Path) -> AsyncIterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed: `make machine` installs it")
    sandbox = ("--no-sandbox",) if os.geteuid() == 0 else ()  # which root cannot have
    words = [program, *FLAGS, *sandbox, f"--user-data-dir={folder}"]
    async with await anyio.open_process(words, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL) as process:
        try:
            address = await _address(folder / "DevToolsActivePort", process)
            async with (
                ClientSession() as session,
                session.ws_connect(address, max_msg_size=0) as socket,
                anyio.create_task_group() as tasks,
            ):
                browser = Browser(socket)
                tasks.start_soon(browser.listen)
                try:
                    yield browser
                finally:
                    with anyio.move_on_after(5, shield=True):
                        await browser.ask("Browser.close")
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.move_on_after(5, shield=True):
                await process.wait()
            if process.returncode is None:
                process.kill()


async def _address(note: Path, process: anyio.abc.Process) -> str:
    with anyio.fail_after(PATIENCE):
        while len(lines := _lines(note)) < 2:
            assert process.returncode is None, f"Chromium ended with {process.returncode}"
            await anyio.sleep(0.02)
    return f"ws://127.0.0.1:{lines[0]}{lines[1]}"


def _lines(note: Path) -> list[str]:
    return note.read_text().split() if note.exists() else []
