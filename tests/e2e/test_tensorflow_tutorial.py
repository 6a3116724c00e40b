"""The TensorFlow tutorial, from the notebook to TensorBoard, through the Job Center's door and kubectl."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import anyio
import anyio.to_thread
import pytest
from yarl import URL

from fullrank.api.manifests import documents
from fullrank.api.meta import Json
from tests.e2e.house import House

pytestmark = [pytest.mark.anyio, pytest.mark.index, pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = documents((EXAMPLES / "tensorflow-mnist/prepare.yaml").read_text(), "prepare.yaml")[1]["data"]
WORKERS, EPOCHS, SAMPLES = 4, 10, 6400
PATIENCE = 800.0  # seconds: an environment may have to be built, and four workers share the machine


class Visitor:
    """Somebody with a browser's cookie, in the Job Center."""

    def __init__(self, session: aiohttp.ClientSession, origin: URL) -> None:
        self._session, self._origin = session, origin

    async def page(self, path: str) -> str | None:
        async with self._session.get(self._origin.join(URL(path))) as answer:
            return await answer.text() if answer.status == 200 else None

    async def write(self, path: str, text: str) -> None:
        body = {"type": "file", "format": "text", "content": text}
        async with self._session.put(self._origin.join(URL(path)), json=body) as answer:
            assert answer.status == 201, await answer.text()

    async def type(self, lab: str, line: str, until: str) -> None:
        """Into a new terminal, and waits for the words that end it."""
        async with self._session.post(self._origin.join(URL(f"{lab}api/terminals"))) as answer:
            name = (await answer.json())["name"]
        shown = ""
        address = self._origin.join(URL(f"{lab}terminals/websocket/{name}"))
        async with self._session.ws_connect(address) as socket:
            await socket.send_json(["stdin", f"{line}\r"])
            while until not in shown:
                word, *rest = json.loads((await socket.receive()).data)
                shown += rest[0] if word == "stdout" else ""


@asynccontextmanager
async def logged_in(house: House) -> AsyncIterator[Visitor]:
    link = URL(house.fullrank("open", "--print").stdout.strip())
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, not of a name
    headers = {"Origin": str(link.origin())}
    async with aiohttp.ClientSession(cookie_jar=jar, headers=headers) as session:
        async with session.get(link.origin()) as answer:
            assert answer.status == 401
        async with session.get(link) as answer:
            assert answer.status == 200
        yield Visitor(session, link.origin())


async def eventually(look: Any) -> Any:
    with anyio.fail_after(PATIENCE):
        while True:
            if answer := await look():
                return answer
            await anyio.sleep(0.2)


async def test_the_tutorial_from_notebook_to_tensorboard(house: House, kubectl: str) -> None:
    def ask(*words: str) -> str:
        return house.run(kubectl, *words, patience=PATIENCE).stdout

    async def job() -> Json:
        found: Json = json.loads(
            await anyio.to_thread.run_sync(ask, "get", "tensorflowjob", "mnist", "-o", "json")
        )
        return found

    await anyio.to_thread.run_sync(house.up)
    async with logged_in(house) as visitor:
        ask("create", "-f", str(EXAMPLES / "notebook/notebook.yaml"))
        lab = "/notebooks/default/mnist/"
        await eventually(partial(visitor.page, f"{lab}api/status"))
        for name, text in SCRIPTS.items():
            await visitor.write(f"{lab}api/contents/{name}", text)
        await visitor.type(
            lab, f"FULLRANK_MNIST_SAMPLES={SAMPLES} python download_dataset.py && echo is''there", "isthere"
        )
        claim = house.home / "volumes/default/mnist"
        assert {"mnist.npz", *SCRIPTS} <= {path.name for path in claim.iterdir()}

        ask("create", "-f", str(EXAMPLES / "tensorflow-mnist/tensorflow-mnist.yaml"))
        running = await eventually(partial(_runs, job))
        pods = [one["name"] for one in running["status"]["tasks"][0]["replicas"]]
        assert len(pods) == WORKERS
        assert all(
            re.fullmatch(rf"mnist-[0-9a-f]{{5}}-worker-{index}", pod) for index, pod in enumerate(pods)
        )
        assert ask("get", "pods", "-l", "job-role=master", "-o", "name") == f"pod/{pods[0]}\n"

        await anyio.to_thread.run_sync(
            partial(
                ask,
                "wait",
                "tensorflowjob/mnist",
                "--for=jsonpath={.status.phase}=Succeeded",
                "--timeout=600s",
            )
        )
        log = ask("logs", pods[0])
        assert f"grpc://{pods[0]}.default.svc:2222" in log
        steps = SAMPLES * 8 // 10 // (32 * WORKERS)
        epochs = re.findall(
            rf"^{steps}/{steps} - \d+s - loss: ([\d.]+) - accuracy: [\d.]+ - val_loss: [\d.]+ - val_accuracy: ([\d.]+)",
            log, re.MULTILINE,
        )  # fmt: skip
        assert len(epochs) == EPOCHS
        assert float(epochs[-1][0]) < float(epochs[0][0]) / 2
        assert float(epochs[-1][1]) > 0.9

        assert (claim / "saved_model/saved_model.pb").exists()
        assert not list(claim.glob("*_temp_*"))
        board = (await job())["status"]["tensorboard"]
        assert (board["ready"], board["reason"], board["dependent"]["kind"]) == (
            True,
            "DependentReady",
            "TensorBoard",
        )
        shown = f"/tensorboards/default/{board['dependent']['name']}/"
        tags = json.loads(await eventually(partial(visitor.page, f"{shown}data/plugin/scalars/tags")))
        assert {"train", "validation"} == set(tags)
        assert {"epoch_accuracy", "epoch_loss"} <= set(tags["train"])
        place = json.loads(await visitor.page(f"{shown}data/environment") or "{}")
        assert place["data_location"] == "/fileset-pvc-mnist/log"
        listed = await visitor.page("/")
        assert listed
        for words in ("mnist", "TensorFlowJob", "Done", shown, lab):
            assert words in listed
        phase = ask("get", "tensorboard", board["dependent"]["name"], "-o", "jsonpath={.status.phase}")
        assert phase == "Running"


async def _runs(job: Any) -> Json | None:
    found: Json = await job()
    status = found.get("status") or {}
    return found if (status.get("aggregate") or {}).get("running") == WORKERS else None
