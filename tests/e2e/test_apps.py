"""The real TensorBoard and the real JupyterLab in a real home, asked as the Job Center asks them."""

import json
import os
import signal
from base64 import b64decode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import anyio
import anyio.to_thread
import pytest

from fullrank.api.apps import NOTEBOOK, NOTEBOOK_APP, TENSORBOARD, TENSORBOARD_APP, App
from fullrank.api.manifests import documents
from fullrank.api.meta import Json, uid_of
from fullrank.api.scheme import CLAIM, POD, SECRET, SERVICE, Kind
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import load
from fullrank.client.port import Key
from fullrank.controllers.jupyter import ask_jupyter
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import NotFound
from tests.e2e.house import House

pytestmark = [pytest.mark.anyio, pytest.mark.index, pytest.mark.timeout(600)]

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK_EXAMPLE = (EXAMPLES / "notebook" / "notebook.yaml").read_text()
PREPARATION = (EXAMPLES / "tensorflow-mnist" / "prepare.yaml").read_text()
PATIENCE = 300.0  # seconds, in which an environment may have to be built
# As small as a JupyterLab can be; the one with TensorFlow in it is for the slow test.
JUPYTER = """
images: ["example/jupyter:1"]
environment:
  requirements: [jupyterlab==4.6.6, ipykernel==7.4.0]
"""


@dataclass
class Home:
    house: House
    client: HttpClient

    async def eventually(self, look: Callable[[], Any]) -> Any:
        """What an answer is once there is one."""
        with anyio.fail_after(PATIENCE):
            while True:
                if answer := await look():
                    return answer
                await anyio.sleep(0.1)

    async def get(self, kind: Kind, name: str) -> Json | None:
        try:
            return await self.client.get(Key(kind, "default", name))
        except NotFound:
            return None

    async def make(self, *kinds: Kind, manifest: str) -> None:
        for kind, obj in zip(kinds, documents(manifest, "manifest"), strict=True):
            obj["metadata"]["namespace"] = "default"
            await self.client.create(kind, obj)

    async def until_phase(self, app: App, name: str, phase: str) -> Json:
        async def there() -> Json | None:
            found = await self.get(app.kind, name)
            return found if found and (found.get("status") or {}).get("phase") == phase else None

        found: Json = await self.eventually(there)
        return found

    async def until_gone(self, kind: Kind, name: str) -> None:
        async def gone() -> bool:
            return await self.get(kind, name) is None

        await self.eventually(gone)

    async def address(self, app: App, name: str) -> str:
        """Where the program answers, once it does."""
        obj = await self.until_phase(app, name, "Running")
        pod = await self.client.get(Key(POD, "default", obj["status"]["pod"]["reference"]["name"]))
        (port,) = pod["spec"]["containers"][0]["ports"]
        return f"http://{pod['status']['podIP']}:{port['containerPort']}{obj['status']['url']}"


@asynccontextmanager
async def a_home(house: House) -> AsyncIterator[Home]:
    await anyio.to_thread.run_sync(house.up)
    async with HttpClient(load([house.home / "kubeconfig"])) as client:
        yield Home(house, client)


def processes(*words: str) -> list[int]:
    """Those whose command line has all of the words."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if all(word in line for word in words):
            found.append(int(path.parent.name))
    return found


# -- TensorBoard ---------------------------------------------------------------------------------------------------


async def losses(address: str, run: str) -> list[float] | None:
    """What a TensorBoard shows, or None as long as it does not."""
    question = {"run": run, "tag": "loss"}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{address}data/plugin/scalars/scalars", params=question) as answer,
        ):
            rows = await answer.json() if answer.status == 200 else []
    except aiohttp.ClientError:
        return None
    return [value for _, _, value in rows] or None


async def test_a_jobs_tensorboard_shows_its_curves_for_as_long_as_the_job_is_there(house: House) -> None:
    async with a_home(house) as home:
        file = str(EXAMPLES / "tensorboard" / "tensorboard.yaml")
        done = await anyio.to_thread.run_sync(lambda: house.fullrank("run", file, patience=PATIENCE))
        assert ": Succeeded" in done.stdout
        listed = (await home.client.select(TENSORBOARD, "default")).items
        own, by_hand = sorted((one["metadata"]["name"] for one in listed), key=len, reverse=True)
        assert by_hand == "curves"
        for name in (own, by_hand):
            address = await home.address(TENSORBOARD_APP, name)
            shown = await home.eventually(partial(losses, address, "node-1"))
            assert shown[0] == 16.0
            assert len(shown) == 20

        service = TENSORBOARD_APP.service(own)
        pod = await home.client.get(Key(POD, "default", service))
        (process,) = processes("tensorboard", f"--path_prefix=/tensorboards/default/{own}\0")
        os.kill(process, signal.SIGKILL)

        async def restarted() -> bool:
            found = await home.get(POD, service)
            states = ((found or {}).get("status") or {}).get("containerStatuses") or [{"restartCount": 0}]
            return bool(found and uid_of(found) == uid_of(pod) and states[0]["restartCount"])

        await home.eventually(restarted)
        address = await home.address(TENSORBOARD_APP, own)
        assert await home.eventually(partial(losses, address, "node-0"))

        owner = (await home.client.get(Key(TENSORBOARD, "default", own)))["metadata"]["ownerReferences"][0]
        job = next(one.kind for one in JOB_KINDS if one.kind.kind == owner["kind"])
        await home.client.delete(Key(job, "default", owner["name"]))
        for kind, name in ((TENSORBOARD, own), (SERVICE, service), (POD, service)):
            await home.until_gone(kind, name)
        assert processes("tensorboard", f"--path_prefix=/tensorboards/default/{own}\0") == []
        assert await home.get(CLAIM, "curves")
        assert (house.home / "volumes/default/curves/log/node-0").is_dir()
        assert (await home.until_phase(TENSORBOARD_APP, by_hand, "Running"))["status"]["url"]


# -- Notebook ------------------------------------------------------------------------------------------------------


class Lab:
    """A JupyterLab, entered as the Job Center does: with its token, by another name, from a page of that name."""

    def __init__(self, session: aiohttp.ClientSession, address: str) -> None:
        self._session = session
        self._address = address

    async def post(self, path: str, **body: Any) -> Any:
        async with self._session.post(f"{self._address}{path}", json=body) as answer:
            assert answer.status in (200, 201), await answer.text()
            return await answer.json()

    async def execute(self, code: str) -> str:
        """What a kernel prints."""
        kernel = await self.post("api/kernels", name="python3")
        wanted = {
            "header": {
                "msg_id": uuid4().hex,
                "msg_type": "execute_request",
                "session": "test",
                "version": "5.3",
            },
            "parent_header": {},
            "metadata": {},
            "content": {"code": code, "silent": False},
            "channel": "shell",
        }
        async with self._session.ws_connect(f"{self._address}api/kernels/{kernel['id']}/channels") as socket:
            await socket.send_json(wanted)
            while True:
                heard = json.loads((await socket.receive()).data)
                if heard["msg_type"] in ("stream", "error"):
                    return str(heard["content"].get("text") or heard["content"])

    async def type(self, line: str, until: str) -> None:
        """Types a line into a new terminal, and waits until it shows certain words."""
        terminal = await self.post("api/terminals")
        shown = ""
        async with self._session.ws_connect(
            f"{self._address}terminals/websocket/{terminal['name']}"
        ) as socket:
            await socket.send_json(["stdin", f"{line}\r"])
            with anyio.fail_after(PATIENCE):
                while until not in shown:
                    word, *rest = json.loads((await socket.receive()).data)
                    shown += rest[0] if word == "stdout" else ""


@asynccontextmanager
async def a_lab(home: Home, name: str) -> AsyncIterator[Lab]:
    address = await home.address(NOTEBOOK_APP, name)
    secret = await home.client.get(Key(SECRET, "default", NOTEBOOK_APP.service(name)))
    token = b64decode(secret["data"]["token"]).decode()
    async with aiohttp.ClientSession() as stranger, stranger.get(f"{address}api/status") as answer:
        assert answer.status == 403
    headers = {"Authorization": f"token {token}", "Host": "box:7480", "Origin": "http://box:7480"}
    async with aiohttp.ClientSession(headers=headers) as session:
        async with session.get(f"{address}api/status") as answer:
            assert answer.status == 200
        async with session.get(f"{address}lab") as answer:
            assert NOTEBOOK_APP.url("default", name) in await answer.text()
        use = await ask_jupyter(address, token)
        assert use is not None
        assert use == await ask_jupyter(address, token), "to be asked is no use"
        assert await ask_jupyter(address, "another") is None
        yield Lab(session, address)


async def test_a_notebook_works_and_its_files_outlive_it(house: House) -> None:
    (house.home / "images").mkdir()
    (house.home / "images" / "jupyter.yaml").write_text(JUPYTER)
    manifest = NOTEBOOK_EXAMPLE.replace(
        "t9kpublic/tensorflow-2.14.0-notebook-cpu:1.77.1", "example/jupyter:1"
    )
    files = house.home / "volumes/default/mnist"
    async with a_home(house) as home:
        await home.make(CLAIM, NOTEBOOK, manifest=manifest)
        async with a_lab(home, "mnist") as lab:
            code = "import os; open('hello.py', 'w').write('print(6 * 7)'); print(os.getcwd(), os.environ['HOME'])"
            assert await lab.execute(code) == "/t9k/mnt /t9k/mnt\n"
            await lab.type("python hello.py", until="42")
        assert (files / "hello.py").read_text() == "print(6 * 7)"
        if os.getuid() == 0:
            assert (files / "hello.py").stat().st_uid == 1000

        key = Key(NOTEBOOK, "default", "mnist")
        await home.client.patch(key, {"spec": {"runMode": "stopped"}})
        await home.until_phase(NOTEBOOK_APP, "mnist", "Paused")
        await home.until_gone(POD, NOTEBOOK_APP.service("mnist"))
        assert await home.get(SERVICE, NOTEBOOK_APP.service("mnist"))
        await home.client.patch(key, {"spec": {"runMode": "running"}})
        async with a_lab(home, "mnist") as lab:
            assert await lab.execute("exec(open('hello.py').read())") == "42\n"

        await home.client.delete(key)
        for kind in (POD, SERVICE, SECRET):
            await home.until_gone(kind, NOTEBOOK_APP.service("mnist"))
        assert await home.get(CLAIM, "mnist")
        assert (files / "hello.py").exists()


LISTING = """
apiVersion: batch.tensorstack.dev/v1beta1
kind: GenericJob
metadata: {name: look}
spec:
  replicaSpecs:
  - type: worker
    template:
      spec:
        securityContext: {runAsUser: 1000}
        containers:
        - {name: main, image: "alpine:3", command: [ls, /mnt], volumeMounts: [{name: data, mountPath: /mnt}]}
        volumes: [{name: data, persistentVolumeClaim: {claimName: mnist}}]
"""


@pytest.mark.slow
async def test_what_the_tutorial_prepares_in_a_notebook_is_what_its_jobs_find(house: House) -> None:
    scripts = documents(PREPARATION, "prepare.yaml")[1]["data"]
    async with a_home(house) as home:
        await home.make(CLAIM, NOTEBOOK, manifest=NOTEBOOK_EXAMPLE)
        async with a_lab(home, "mnist") as lab:
            assert len(scripts) == 2
            for name, text in scripts.items():
                await lab.execute(f"print(open({name!r}, 'w').write({text!r}))")
            words = "FULLRANK_MNIST_SAMPLES=640 python download_dataset.py && echo was''done"
            await lab.type(words, until="wasdone")
        looked = await anyio.to_thread.run_sync(lambda: house.fullrank("run", "-", stdin=LISTING))
        for name in ("download_dataset.py", "keras_mnist_trainingjob.py", "mnist.npz"):
            assert f"│ {name}\n" in looked.stdout
