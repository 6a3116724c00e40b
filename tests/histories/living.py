"""A server process that is killed and comes back, and clients that write down everything they ask and see."""

import asyncio
import json
import os
import signal
import sqlite3
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import anyio
import anyio.to_thread
from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector

from fullrank.api.meta import Json, name_of, revision_of
from fullrank.clock import SystemClock
from fullrank.controlplane.pki import Credentials, credentials
from tests.histories.checker import Asked, History, Listed, Outcome, Seen, Story, Verb, side_of

MAPS = "/api/v1/namespaces/default/configmaps"
NAMES = [f"map-{number}" for number in range(8)]
THE_END = "the-end"
FILLING = 40  # times the tag is repeated: half an object would show
TROUBLE = (ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)
PATIENCE = 60.0
ENVIRON = os.environ | {"FULLRANK_PORT": "0", "FULLRANK_UI_PORT": "0"}


class Server:
    """A process of ours, from its first greeting to its last breath; `url` changes with each life."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        self.folder = folder
        self.keys: Credentials = credentials(folder / "pki", SystemClock().now())
        self.url = ""
        self.up = anyio.Event()
        self.births: list[float] = []
        self._words = words
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        begun = monotonic()
        self._begin()
        while not (greeting := self._greeting()):
            if monotonic() > begun + PATIENCE or self._running.poll() is not None:
                await self.kill()
                raise AssertionError(f"the server did not come up: {self.log[-2000:]}")
            await anyio.sleep(0.01)
        self.births.append(monotonic() - begun)
        self.url = greeting
        self.up.set()

    async def stillborn(self, seconds: float) -> None:
        """A start that is killed before (or just as) it greets."""
        self._begin()
        await anyio.sleep(seconds)
        await self.kill()

    async def kill(self) -> None:
        if self.up.is_set():  # else there are some who wait for it
            self.up = anyio.Event()
        self._running.kill()
        await anyio.to_thread.run_sync(self._running.wait)

    async def stop(self) -> None:
        """As with Ctrl-C: it stops what it runs, too."""
        self._running.send_signal(signal.SIGINT)
        await anyio.to_thread.run_sync(self._running.wait, PATIENCE)

    @property
    def pid(self) -> int:
        return self._running.pid

    @property
    def log(self) -> str:
        return (self.folder / "server.log").read_text(errors="replace")

    @property
    def _running(self) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        return self._process

    def _begin(self) -> None:
        with (self.folder / "greeting").open("wb") as said, (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._words, env=ENVIRON, stdin=subprocess.DEVNULL, stdout=said, stderr=log
            )

    def _greeting(self) -> str:
        said = (self.folder / "greeting").read_text().partition("\n")
        return next((word for word in said[0].split() if word.startswith("https://") and said[1]), "")


def alone(folder: Path, keep: int = 10_000) -> Server:
    return Server(folder, [sys.executable, "-m", "tests.histories.server", str(folder), str(keep)])


@dataclass
class Witness:
    """What all clients of one run share: the server, the session, chance, and the history they write."""

    server: Server
    session: ClientSession
    chance: Random
    history: History = field(default_factory=History)
    known: dict[str, Json] = field(default_factory=dict)  # the last version anybody saw of each
    tags: int = 0
    over: bool = False
    outrun: anyio.Event = field(default_factory=anyio.Event)  # a watcher has met a 410

    async def ask(
        self, method: str, path: str, body: object = None, media: str = "application/json"
    ) -> tuple[int, Any]:
        """Status 0 stands for a question whose answer never came."""
        try:
            async with self.session.request(
                method,
                self.server.url + path,
                data=None if body is None else json.dumps(body),
                headers={"Content-Type": media},
            ) as answer:
                found = json.loads(await answer.read())
        except TROUBLE:
            await self.server.up.wait()
            return 0, {}
        return (0 if answer.status == 503 else answer.status), found

    def new_tag(self) -> str:
        self.tags += 1
        return f"t{self.tags}"


def a_map(name: str, tag: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"side": side_of(tag), "soak": "yes"}},
        "data": {"tag": tag, "filling": tag * FILLING},
    }


def tag_of(obj: Json) -> str:
    """What was written; half an object would be found out here."""
    tag: str = obj["data"]["tag"]
    assert obj["data"]["filling"] == tag * FILLING, f"half-written: {obj}"
    assert obj["metadata"]["labels"]["side"] == side_of(tag), f"half-written: {obj}"
    return tag


OUTCOMES: dict[int, Outcome] = {0: "unknown", 200: "ok", 201: "ok", 404: "absent", 409: "conflict"}


class Writer:
    """Asks for one thing after another, on objects that others change as well."""

    def __init__(self, witness: Witness) -> None:
        self._witness = witness
        self._chance = Random(witness.chance.random())
        self._verbs: dict[Callable[[str], Awaitable[None]], int] = {
            self._create: 3, self._replace: 5, self._patch: 4, self._steps: 2, self._overwrite: 2, self._delete: 2,
            self._get: 3, self._list: 1,
        }  # fmt: skip

    async def run(self) -> None:
        verbs, weights = list(self._verbs), list(self._verbs.values())
        while not self._witness.over:
            (verb,) = self._chance.choices(verbs, weights)
            await verb(self._chance.choice(NAMES))

    async def _exchange(
        self,
        verb: Verb,
        name: str,
        question: tuple[str, str, object, str],
        *,
        tag: str = "",
        base: int | None = None,
    ) -> None:
        begun = monotonic()
        code, answer = await self._witness.ask(*question)
        ended = monotonic()
        assert code in OUTCOMES, f"{question} was answered {code}: {answer}"
        outcome = OUTCOMES[code]
        if outcome == "conflict" and answer["reason"] == "AlreadyExists":
            outcome = "exists"
        version = 0
        if outcome == "ok" and verb != "delete":
            self._witness.known[name] = answer
            version, tag = revision_of(answer), tag_of(answer)
        if outcome in ("absent", "ok") and verb in ("get", "delete"):
            self._witness.known.pop(name, None) if outcome == "absent" or verb == "delete" else None
        self._witness.history.asked.append(Asked(verb, name, begun, ended, outcome, tag, base, version))

    async def _create(self, name: str) -> None:
        tag = self._witness.new_tag()
        await self._exchange("create", name, ("POST", MAPS, a_map(name, tag), "application/json"), tag=tag)

    async def _replace(self, name: str) -> None:
        if known := self._witness.known.get(name):
            tag, base = self._witness.new_tag(), revision_of(known)
            new = a_map(name, tag)
            new["metadata"]["resourceVersion"] = str(base)
            await self._exchange(
                "update", name, ("PUT", f"{MAPS}/{name}", new, "application/json"), tag=tag, base=base
            )

    async def _patch(self, name: str) -> None:
        if known := self._witness.known.get(name):
            tag, base = self._witness.new_tag(), revision_of(known)
            patch = a_map(name, tag)
            patch["metadata"] = {"resourceVersion": str(base), "labels": patch["metadata"]["labels"]}
            media = f"application/{self._chance.choice(('merge', 'strategic-merge'))}-patch+json"
            await self._exchange(
                "update", name, ("PATCH", f"{MAPS}/{name}", patch, media), tag=tag, base=base
            )

    async def _steps(self, name: str) -> None:
        """A JSON patch that compares nothing."""
        tag = self._witness.new_tag()
        new = a_map(name, tag)
        steps = [
            {"op": "replace", "path": "/data", "value": new["data"]},
            {"op": "replace", "path": "/metadata/labels", "value": new["metadata"]["labels"]},
        ]
        media = "application/json-patch+json"
        await self._exchange("update", name, ("PATCH", f"{MAPS}/{name}", steps, media), tag=tag)

    async def _overwrite(self, name: str) -> None:
        tag = self._witness.new_tag()
        await self._exchange(
            "update", name, ("PUT", f"{MAPS}/{name}", a_map(name, tag), "application/json"), tag=tag
        )

    async def _delete(self, name: str) -> None:
        if known := self._witness.known.get(name):
            base = revision_of(known)
            options = {"preconditions": {"resourceVersion": str(base)}}
            await self._exchange(
                "delete", name, ("DELETE", f"{MAPS}/{name}", options, "application/json"), base=base
            )

    async def _get(self, name: str) -> None:
        await self._exchange("get", name, ("GET", f"{MAPS}/{name}", None, "application/json"))

    async def _list(self, _name: str) -> None:
        listed = await listing(self._witness, limit=self._chance.choice((0, 3)))
        if listed:
            self._witness.history.listed.append(listed)


async def listing(witness: Witness, *, limit: int = 0, side: str = "") -> Listed | None:
    """All there is, page by page, at the revision of the first page; nothing if an answer never came."""
    selector = "soak%3Dyes" + (f"%2Cside%3D{side}" if side else "")
    path = f"{MAPS}?labelSelector={selector}" + (f"&limit={limit}" if limit else "")
    begun, ended, revision, proceed = monotonic(), 0.0, 0, ""
    found: dict[str, tuple[int, str]] = {}
    while True:
        code, page = await witness.ask("GET", f"{path}&continue={proceed}" if proceed else path)
        if code in (0, 410):
            return None
        assert code == 200, page
        ended = ended or monotonic()
        revision = revision or revision_of(page)
        assert revision_of(page) == revision, "a later page is of another revision"
        found |= {name_of(item): (revision_of(item), tag_of(item)) for item in page["items"]}
        proceed = page["metadata"].get("continue", "")
        if not proceed:
            return Listed(begun, ended, revision, found)


@dataclass
class Watcher:
    """Follows the collection from a list on, over whatever ends a watch; it is done when it has seen the end."""

    witness: Witness
    story: Story
    seconds: int = 30  # that it asks each watch to last
    attention: int = 1_000_000  # events after which it leaves by itself
    pause: float = 0.0  # the longest it then stays away
    initial: bool = False  # begins with sendInitialEvents instead of a list
    gone: int = 0  # how often it was told that history has moved on
    revision: int = 0

    async def run(self) -> None:
        chance = Random(self.witness.chance.random())
        while not self._done:
            try:
                await self._follow()
            except TROUBLE:
                await self.witness.server.up.wait()
            if self.pause and not self.witness.over:
                await anyio.sleep(chance.uniform(0, self.pause))

    @property
    def _done(self) -> bool:
        last = self.story.seen[-1] if self.story.seen else None
        if isinstance(last, Listed):
            return THE_END in last.found
        return any(isinstance(one, Seen) and one.name == THE_END for one in self.story.seen[-3:])

    async def _follow(self) -> None:
        if not self.revision and not self.initial:
            listed = await listing(self.witness, side=self.story.side)
            if listed is None or self._tell(listed):
                return
        query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds={self.seconds}&labelSelector=soak%3Dyes"
        query += f"%2Cside%3D{self.story.side}" if self.story.side else ""
        if self.revision:
            query += f"&resourceVersion={self.revision}"
        else:
            query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
        begun = monotonic()
        async with self.witness.session.get(
            f"{self.witness.server.url}{MAPS}?{query}", timeout=ClientTimeout(total=None, sock_read=PATIENCE)
        ) as answer:
            if answer.status == 410:
                self._start_over()
                return
            assert answer.status in (200, 503), await answer.text()
            events = (json.loads(line) async for line in answer.content if line.endswith(b"\n"))
            if not self.revision:
                await self._begin(events, begun)
            for _ in range(self.attention):
                if self._done or self._hear(await anext(events, None)):
                    return

    async def _begin(self, events: AsyncIterator[Json], begun: float) -> None:
        found: dict[str, tuple[int, str]] = {}
        async for event in events:
            obj = event["object"]
            if event["type"] == "BOOKMARK":
                assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
                self._tell(Listed(begun, monotonic(), revision_of(obj), found))
                return
            found[name_of(obj)] = (revision_of(obj), tag_of(obj))

    def _tell(self, listed: Listed) -> bool:
        self.story.seen.append(listed)
        self.revision = listed.revision
        return self._done

    def _hear(self, event: Json | None) -> bool:
        """Whether there is a reason to stop listening."""
        if event is None or not self.revision:
            return True
        obj = event["object"]
        if event["type"] == "ERROR":
            assert obj["code"] == 410, obj
            self._start_over()
            return True
        self.revision = revision_of(obj)
        if event["type"] == "BOOKMARK":
            self.story.seen.append(Seen("BOOKMARK", self.revision, monotonic()))
        else:
            self.story.seen.append(Seen(event["type"], self.revision, monotonic(), name_of(obj), tag_of(obj)))
        return self._done

    def _start_over(self) -> None:
        self.gone += 1
        self.witness.outrun.set()
        self.revision = 0


@asynccontextmanager
async def witnessing(server: Server, seed: int) -> AsyncIterator[Witness]:
    """A client of a server that is up; the server is killed at the end, however that comes."""
    context = ssl.create_default_context(cafile=str(server.keys.ca))
    headers = {"Authorization": f"Bearer {server.keys.token}"}
    await server.start()
    try:
        async with ClientSession(
            connector=TCPConnector(ssl=context, limit=0), headers=headers, timeout=ClientTimeout(total=30)
        ) as session:
            yield Witness(server, session, Random(seed))
    finally:
        with anyio.CancelScope(shield=True):
            await server.kill()


@dataclass(frozen=True)
class Told:
    history: History
    gone: int  # 410s that watchers met
    births: list[float]  # seconds from start to greeting, of each life


async def lived(
    server: Server,
    seed: int,
    *,
    kills: int = 0,
    seconds: float = 1.0,
    writers: int = 10,
    behind: bool = False,
) -> Told:
    """A history of `kills` + 1 lives of the server, each up to `seconds` long; `behind`: until one has met a 410."""
    async with witnessing(server, seed) as witness:
        watchers = [
            Watcher(witness, Story("steady")),
            Watcher(witness, Story("hasty"), seconds=1),
            Watcher(witness, Story("initial"), initial=True, seconds=2),
            Watcher(witness, Story("even", side="even")),
            Watcher(
                witness, Story("slow"), attention=20, pause=3.0 if behind else 1.0, initial=bool(seed % 2)
            ),
        ]
        witness.history.stories = [watcher.story for watcher in watchers]
        async with anyio.create_task_group() as following:
            for watcher in watchers:
                following.start_soon(watcher.run)
            async with anyio.create_task_group() as writing:
                for _ in range(writers):
                    writing.start_soon(Writer(witness).run)
                for _ in range(kills):
                    await anyio.sleep(witness.chance.uniform(0, seconds))
                    await server.kill()
                    await server.start()
                await anyio.sleep(seconds)
                if behind:
                    await witness.outrun.wait()
                witness.over = True
            await _end(witness)
    return Told(witness.history, sum(watcher.gone for watcher in watchers), server.births)


async def _end(witness: Witness) -> None:
    tag = next(word for word in ("the-end", "the-very-end") if side_of(word) == "even")
    begun = monotonic()
    code, made = await witness.ask("POST", MAPS, a_map(THE_END, tag))
    assert code == 201, made
    witness.history.asked.append(
        Asked("create", THE_END, begun, monotonic(), "ok", tag, version=revision_of(made))
    )
    witness.history.final = revision_of(made)
    listed = await listing(witness)
    assert listed is not None
    witness.history.listed.append(listed)


def file_complaints(folder: Path) -> list[str]:
    """What SQLite itself has to say about the file."""
    database = sqlite3.connect(folder / "state.db")
    found = [row[0] for row in database.execute("PRAGMA integrity_check")]
    database.close()
    return [] if found == ["ok"] else found
