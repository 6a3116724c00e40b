"""A home whose server is killed at random moments while jobs of all sorts run: nothing lost, nothing doubled.

Each rank appends a line to a file of its pod's when it starts and when it ends, so that what really ran can be held
against what the API says: one start for each attempt, the right number of attempts, and the right end.
"""

import json
import ssl
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import anyio
import psutil
from aiohttp import ClientSession, ClientTimeout, TCPConnector

from fullrank.api.annotations import RESTART_SCOPE
from fullrank.api.meta import Json, name_of
from fullrank.client.http import path_of
from fullrank.dialects.contract import JobKind
from fullrank.dialects.registry import JOB_KINDS
from tests.histories.living import TROUBLE, Server

PODS = "/api/v1/namespaces/default/pods"
CLAIM: Json = {
    "metadata": {"name": "notes"},
    "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Mi"}}},
}
ROLES: dict[str, dict[str, int]] = {
    "PyTorchJob": {"Master": 1, "Worker": 2},
    "TFJob": {"Chief": 1, "Worker": 1},
    "XGBoostJob": {"Master": 1, "Worker": 1},
    "PaddleJob": {"Worker": 2},
    "JAXJob": {"Worker": 3},
}
LONG = 1000  # seconds: nobody waits for its end
PATIENCE = 40.0


@dataclass(frozen=True, slots=True, order=True)
class Life:
    """What one pod of a rank wrote down; the first line says when it began."""

    pod: str
    lines: tuple[str, ...]
    uid: str

    @property
    def starts(self) -> int:
        return sum(line.startswith("start") for line in self.lines)


@dataclass
class Home:
    """A home in a folder, its server, and what chance has in store for it."""

    server: Server
    session: ClientSession
    chance: Random
    pace: float  # seconds over which things are spread
    to_end_while_down: list[str] = field(default_factory=list)  # jobs that wait for the server to be dead
    unfinished: int = 0  # jobs
    problems: list[str] = field(default_factory=list)

    @property
    def notes(self) -> Path:
        return self.server.folder / "volumes" / "default" / "notes"

    async def ask(self, method: str, path: str, body: object = None, media: str = "json") -> tuple[int, Any]:
        """Asks until it is answered: what was asked twice may have been done twice, or have been done already."""
        while True:
            try:
                async with self.session.request(
                    method,
                    self.server.url + path,
                    data=None if body is None else json.dumps(body),
                    headers={"Content-Type": f"application/{media}"},
                ) as answer:
                    if answer.status != 503:
                        return answer.status, json.loads(await answer.read())
            except TROUBLE:
                await self.server.up.wait()

    async def until(self, what: str, happened: Callable[[], Awaitable[bool]]) -> None:
        deadline = monotonic() + PATIENCE + self.pace * 2
        while not await happened():
            if monotonic() > deadline:
                raise TimeoutError(f"it never came to this: {what}")
            await anyio.sleep(0.2)

    def lives(self, job: str) -> list[Life]:
        """By pod and then in the order in which they began."""
        found = self.notes.glob(f"life.{job}.*")
        named = [(file.name.split("."), file.read_text().splitlines()) for file in found]
        return sorted(Life(words[2], tuple(lines), words[3]) for words, lines in named if lines)


@dataclass
class Job:
    """One job, what its ranks do in each of their lives, and how that ought to end."""

    home: Home
    kind: JobKind
    name: str
    policy: str = "Never"
    endings: tuple[int, ...] = (0,)  # the exit codes of a rank's lives, one after the other
    only_first_fails: bool = False  # the ranks beside Worker 0 wait for it in vain
    waits: bool = False  # for a file before it ends
    first_is_endless: bool = False
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return path_of(self.kind.kind, "default")

    @property
    def ranks(self) -> list[str]:
        roles = ROLES[self.kind.framework.kind]
        return sorted(
            f"{self.name}-{role.lower()}-{index}" for role, size in roles.items() for index in range(size)
        )

    def manifest(self) -> Json:
        container = {
            "name": self.kind.framework.container,
            "image": "alpine:3",
            "command": ["sh", "-c", self._script()],
            "env": [
                {"name": word, "valueFrom": {"fieldRef": {"fieldPath": path}}}
                for word, path in (("POD", "metadata.name"), ("POD_UID", "metadata.uid"))
            ],
            "volumeMounts": [{"name": "notes", "mountPath": "/notes"}],
        }
        spec = {
            "containers": [container],
            "terminationGracePeriodSeconds": 2,
            "volumes": [{"name": "notes", "persistentVolumeClaim": {"claimName": "notes"}}],
        }
        replicas = {
            role: {"replicas": size, "restartPolicy": self.policy, "template": {"spec": spec}}
            for role, size in ROLES[self.kind.framework.kind].items()
        }
        return {
            "apiVersion": self.kind.kind.api_version,
            "kind": self.kind.kind.kind,
            "metadata": {"name": self.name, "annotations": self.annotations},
            "spec": {self.kind.framework.replicas_field: replicas, "runPolicy": {}},
        }

    def _script(self) -> str:
        seconds = self.home.chance.uniform(0.05, 1) * self.home.pace / 5
        ends, endless = " ".join(map(str, self.endings)), f"[ $count -gt 1 ] || sleep {LONG}"
        vain = f"case $POD in *-worker-0) ;; *) set -- {'0 ' * len(self.endings)}; {endless};; esac"
        return "\n".join(
            (
                f": {self.home.server.folder.name}",  # by which leftovers would be recognised
                "life=/notes/life." + self.name + ".$POD.$POD_UID",
                "echo x >> /notes/count.$POD; count=$(wc -l < /notes/count.$POD)",
                "echo start $(date +%s%N) >> $life",
                f"set -- {ends}",
                vain if self.only_first_fails else "",
                f"[ $count -gt {len(self.endings)} ] || shift $((count - 1))",
                endless if self.first_is_endless else "",
                f"until [ -e /notes/go.{self.name} ]; do sleep 0.1; done" if self.waits else "",
                f"sleep {seconds:.2f}",
                "echo end $1 >> $life",
                "exit $1",
            )
        )

    # --- what is done ---

    async def begin(self) -> None:
        code, told = await self.home.ask("POST", self.path, self.manifest())
        assert code == 201 or told["reason"] == "AlreadyExists", told

    async def started(self) -> None:
        async def all_began() -> bool:
            return [life.pod for life in self.home.lives(self.name) if life.lines] == self.ranks

        await self.home.until(f"all ranks of {self.name} began", all_began)

    async def ended(self, state: str) -> None:
        async def over() -> bool:
            _, job = await self.home.ask("GET", f"{self.path}/{self.name}")
            conditions = (job.get("status") or {}).get("conditions") or []
            states = {one["type"] for one in conditions if one["status"] == "True"}
            if states & {"Succeeded", "Failed"} - {state}:
                self.complain(f"ended as {sorted(states)} instead of {state}: {conditions}")
            return bool(states & {"Succeeded", "Failed"})

        await self.home.until(f"{self.name} {state}", over)
        await self.home.until(f"the pods of {self.name} ended", self._pods_ended)

    async def _pods_ended(self) -> bool:
        return all(pod["status"]["phase"] in ("Succeeded", "Failed") for pod in await self.pods())

    async def pods(self) -> list[Json]:
        _, found = await self.home.ask("GET", PODS)
        return [pod for pod in found["items"] if name_of(pod) in self.ranks]

    async def suspend(self, wish: bool) -> None:
        patch = {"spec": {"runPolicy": {"suspend": wish}}}
        code, told = await self.home.ask("PATCH", f"{self.path}/{self.name}", patch, "merge-patch+json")
        assert code == 200, told

    async def gone(self) -> None:
        async def nothing_left() -> bool:
            return not await self.pods()

        await self.home.until(f"the pods of {self.name} are gone", nothing_left)

    def complain(self, what: str) -> None:
        self.home.problems.append(f"{self.kind.kind.kind} {self.name}: {what}")

    # --- what is found ---

    async def check(self, *, lives: int, first: tuple[str, ...] | None = None) -> None:
        """Each rank had so many pods, each of which ran once for each attempt, and the last one ended well."""
        found = self.home.lives(self.name)
        for rank in self.ranks:
            mine = [life for life in found if life.pod == rank]
            if len(mine) != lives:
                self.complain(f"{rank} had {len(mine)} lives, not {lives}: {mine}")
            for number, life in enumerate(mine):
                words = tuple(line.split()[0] + line[3:] * line.startswith("end") for line in life.lines)
                self._check_life(rank, number, words, first if number + 1 < len(mine) else None)
        for pod in await self.pods():
            self._check_pod(pod, found)

    def _check_life(
        self, rank: str, number: int, words: tuple[str, ...], first: tuple[str, ...] | None
    ) -> None:
        failing = not self.only_first_fails or rank.endswith("-worker-0")
        codes = self.endings if failing else (0,) * len(self.endings)
        in_place = self.policy == "OnFailure" and not self.annotations
        due = tuple(word for code in codes for word in ("start", f"end {code}"))
        if not in_place:
            due = ("start", f"end {codes[min(number, len(codes) - 1)]}")
        if first is not None:
            due = first
        cut_short = first is not None and words == ("start",)
        if words != due and not cut_short:
            self.complain(f"{rank} (life {number}) wrote {words}, not {due}")

    def _check_pod(self, pod: Json, found: list[Life]) -> None:
        life = next((one for one in found if one.uid == pod["metadata"]["uid"]), None)
        if life is None:
            self.complain(f"{name_of(pod)} is there and never ran")
            return
        (status,) = pod["status"]["containerStatuses"]
        if status["restartCount"] != life.starts - 1:
            self.complain(
                f"{name_of(pod)} has restartCount {status['restartCount']} but {life.starts} starts"
            )
        code = status["state"]["terminated"]["exitCode"]
        if life.lines[-1] != f"end {code}":
            self.complain(f"{name_of(pod)} has exit code {code}, its rank wrote {life.lines[-1]!r}")


# --- how jobs go ---


async def _succeeds(job: Job) -> None:
    await job.begin()
    await job.ended("Succeeded")
    await job.check(lives=1)


async def _fails(job: Job) -> None:
    job.endings = (3,)
    await job.begin()
    await job.ended("Failed")
    found = job.home.lives(job.name)
    if len({life.pod for life in found}) != len(found) or any(life.starts != 1 for life in found):
        job.complain(f"no rank ought to have begun twice: {found}")


async def _restarts_in_place(job: Job) -> None:
    job.policy, job.endings = "OnFailure", (7, 0)
    await job.begin()
    await job.ended("Succeeded")
    await job.check(lives=1)


async def _is_replaced(job: Job) -> None:
    job.policy, job.endings = "ExitCode", (130, 0)
    await job.begin()
    await job.ended("Succeeded")
    await job.check(lives=2)


async def _restarts_as_one(job: Job) -> None:
    job.policy, job.endings, job.only_first_fails = "OnFailure", (130, 0), True
    job.annotations = {RESTART_SCOPE: "gang"}
    await job.begin()
    await job.ended("Succeeded")
    found = job.home.lives(job.name)
    last = {life.pod: life.lines for life in found}
    if sorted(last) != job.ranks or any(lines[-1] != "end 0" for lines in last.values()):
        job.complain(f"the last life of each rank ought to have ended well: {found}")
    if sum(life.lines[-1] == "end 130" for life in found) != 1 or len(found) > 2 * len(job.ranks):
        job.complain(f"there was one failure, and so one attempt more: {found}")
    if any(life.starts != 1 for life in found):
        job.complain(f"a pod ran twice: {found}")


async def _is_suspended(job: Job) -> None:
    job.first_is_endless = True
    await job.begin()
    await job.started()
    await job.suspend(wish=True)
    await job.gone()
    await job.suspend(wish=False)
    await job.ended("Succeeded")
    await job.check(lives=2, first=("start",))


async def _is_deleted(job: Job) -> None:
    job.first_is_endless = True
    await job.begin()
    await job.started()
    code, told = await job.home.ask("DELETE", f"{job.path}/{job.name}")
    assert code in (200, 404), told
    await job.gone()
    found = job.home.lives(job.name)
    if [life.pod for life in found] != job.ranks or any(len(life.lines) != 1 for life in found):
        job.complain(f"each rank ought to have begun once, and never ended: {found}")


async def _ends_while_the_server_is_down(job: Job) -> None:
    job.waits = True
    await job.begin()
    await job.started()
    job.home.to_end_while_down.append(job.name)
    await job.ended("Succeeded")
    await job.check(lives=1)


COURSES: tuple[Callable[[Job], Awaitable[None]], ...] = (
    _succeeds, _ends_while_the_server_is_down, _restarts_in_place, _is_suspended, _fails, _is_replaced,
    _restarts_as_one, _is_deleted,
)  # fmt: skip


# --- the killing ---


async def killing(home: Home, kills: int) -> None:
    """So many times, and once more for each job that still waits for the server to be dead."""
    while kills > 0 or home.unfinished:
        await anyio.sleep(home.chance.uniform(0, 2))
        if kills <= 0 and not home.to_end_while_down:
            continue
        kills -= 1
        await home.server.kill()
        while home.to_end_while_down:
            await _finish_while_down(home, home.to_end_while_down.pop())
        if home.chance.random() < 0.3:
            await home.server.stillborn(home.chance.uniform(0, 1))
        await anyio.sleep(home.chance.choice((0, 0, home.chance.uniform(0, 2))))
        await home.server.start()


async def _finish_while_down(home: Home, name: str) -> None:
    (home.notes / f"go.{name}").touch()

    async def all_ended() -> bool:
        return all(life.lines[-1].startswith("end") for life in home.lives(name))

    await home.until(f"{name} ended while the server was down", all_ended)


async def trained_through(folder: Path, jobs: int, kills: int, seed: int) -> list[str]:
    words = [
        sys.executable,
        "-m",
        "fullrank",
        "up",
        f"--home={folder}",
        "--gpus=none",
    ]
    server = Server(folder, words)
    await server.start()
    tls = ssl.create_default_context(cafile=str(server.keys.ca))
    headers = {"Authorization": f"Bearer {server.keys.token}"}
    async with ClientSession(
        connector=TCPConnector(ssl=tls, limit=0), headers=headers, timeout=ClientTimeout(total=30)
    ) as session:
        home = Home(server, session, Random(seed), pace=max(4.0, kills * 1.8))
        code, told = await home.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", CLAIM)
        assert code == 201, told
        home.unfinished = jobs
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(killing, home, kills)
            for number, (kind, course) in zip(range(jobs), _courses(home.chance), strict=False):
                delay = home.chance.uniform(0, home.pace)
                tasks.start_soon(_run, Job(home, kind, f"job-{number}"), course, delay)
        home.problems += [f"still runs: {line}" for line in _left_over(folder)]
    await server.stop()
    if "Traceback" in server.log:
        home.problems.append(f"there is a traceback in the log: {server.log[-3000:]}")
    return [f"seed {seed}: {problem}" for problem in home.problems]


def _courses(chance: Random) -> Iterator[tuple[JobKind, Callable[[Job], Awaitable[None]]]]:
    """Every course before any comes again, with kinds as they come."""
    kinds = [kind for kind in JOB_KINDS if kind.framework.kind in ROLES]
    while True:
        for course in COURSES:
            yield chance.choice(kinds), course


async def _run(job: Job, course: Callable[[Job], Awaitable[None]], delay: float) -> None:
    await anyio.sleep(delay)
    try:
        await course(job)
    except TimeoutError as late:
        job.complain(str(late))
    finally:
        job.home.unfinished -= 1


def _left_over(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if any(f": {folder.name}\n" in word for word in words):
            found.append(" ".join(words)[:200])
    return found


def killed_while_training(kills: int, seed: int, jobs: int = 20) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        begun = monotonic()
        found = anyio.run(trained_through, Path(folder), jobs, kills, seed)
        sys.stdout.write(
            f"seed {seed}: {kills} kills, {jobs} jobs, {monotonic() - begun:.0f} s, {len(found)} complaints\n"
        )
    return found
