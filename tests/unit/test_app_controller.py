"""The controller of web programs on a control plane in memory: what there is in the world, step by step."""

from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any

import anyio
import pytest

from fullrank.api.annotations import LAST_VISIT
from fullrank.api.apps import NOTEBOOK, TENSORBOARD
from fullrank.api.meta import Json, stamp
from fullrank.api.scheme import CLAIM, POD, SECRET, SERVICE, Kind
from fullrank.client.port import Key
from fullrank.controllers.apps import AppController
from fullrank.controllers.ports import FIRST, PortBook
from fullrank.dialects.registry import APP_KINDS
from fullrank.errors import NotFound
from fullrank.planning.apps import IDLE_AFTER, STOPPED_AFTER, Use
from tests.build import a_job
from tests.unit.test_app_kinds import a_board, a_notebook
from tests.unit.world import World, a_world

pytestmark = pytest.mark.anyio

BOARD = Key(TENSORBOARD, "kubeflow", "board")
BOARD_POD = "managed-tensorboard-board"
LAB = Key(NOTEBOOK, "kubeflow", "lab")
LAB_POD = "managed-notebook-http-lab"


@dataclass
class Place:
    """The world, the controller in it, and what a JupyterLab there would say when it is asked."""

    world: World
    controller: AppController = field(init=False)
    use: Use | None = None
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        tokens = count(1)
        self.controller = AppController(
            self.world.client,
            self.world.clock,
            APP_KINDS,
            new_token=lambda: f"sesame-{next(tokens)}",
            ask=self.answer,
            ports=PortBook(lambda port: port != 8888),
            pulls=False,
        )

    async def answer(self, url: str, token: str) -> Use | None:
        self.asked.append((url, token))
        return self.use

    async def make(self, kind: Kind, obj: Json) -> None:
        named = {"name": obj["metadata"]["name"], "namespace": "kubeflow"}
        await self.world.client.create(kind, obj | {"metadata": named})

    async def run_pod(self, name: str) -> None:
        await self.world.seen(lambda: self.has(POD, name))
        status = {
            "phase": "Running",
            "podIP": "127.64.0.1",
            "startTime": stamp(self.world.clock.now()),
            "conditions": [{"type": "Ready", "status": "True"}],
        }
        await self.world.client.patch(Key(POD, "kubeflow", name), {"status": status}, subresource="status")

    async def has(self, kind: Kind, name: str) -> bool:
        return name in await self.world.names(kind)

    async def until_phase(self, key: Key, phase: str) -> Json:
        status: Json = {}

        async def there() -> bool:
            status.update((await self.world.client.get(key)).get("status") or {})
            return status.get("phase") == phase

        await self.world.seen(there)
        return status

    async def until_gone(self, kind: Kind, name: str) -> None:
        async def gone() -> bool:
            return not await self.has(kind, name)

        await self.world.seen(gone)

    async def later(self, key: Key, time: timedelta) -> timedelta | None:
        """What the controller does when that time has passed; when it wants to be woken next."""
        await anyio.wait_all_tasks_blocked()
        self.world.clock.advance(time.total_seconds())
        return await self.controller.reconcile(key)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    async with a_world() as world, anyio.create_task_group() as tasks:
        place = Place(world)
        tasks.start_soon(place.controller.run)
        yield place
        tasks.cancel_scope.cancel()


async def a_running_board(place: Place) -> None:
    await place.make(TENSORBOARD, a_board("t9k://pvc/mnist/log"))
    await place.run_pod(BOARD_POD)
    await place.until_phase(BOARD, "Running")


async def test_a_tensorboard_has_a_service_and_a_pod_and_says_where_it_answers(place: Place) -> None:
    await a_running_board(place)
    status = (await place.world.client.get(BOARD))["status"]
    pod = await place.world.client.get(Key(POD, "kubeflow", BOARD_POD))
    assert status["url"] == "/tensorboards/kubeflow/board/"
    assert status["pod"] == {
        "reference": {"name": BOARD_POD, "uid": pod["metadata"]["uid"]},
        "phase": "Running",
    }
    assert pod["spec"]["restartPolicy"] == "Always"
    assert await place.has(SERVICE, BOARD_POD)
    assert not await place.has(SECRET, BOARD_POD)


async def test_a_pass_that_changes_nothing_writes_nothing(place: Place) -> None:
    await a_running_board(place)
    await anyio.wait_all_tasks_blocked()
    before = place.world.store.revision
    await place.later(BOARD, timedelta(minutes=1))
    assert place.world.store.revision == before


async def test_a_pod_that_was_taken_away_is_made_again(place: Place) -> None:
    await a_running_board(place)
    old = await place.world.client.get(Key(POD, "kubeflow", BOARD_POD))
    await place.world.client.delete(Key(POD, "kubeflow", BOARD_POD), grace=0)

    async def another() -> bool:
        try:
            found = await place.world.client.get(Key(POD, "kubeflow", BOARD_POD))
        except NotFound:
            return False
        return bool(found["metadata"]["uid"] != old["metadata"]["uid"])

    await place.world.seen(another)


async def test_what_is_suspended_keeps_its_service_and_comes_back(place: Place) -> None:
    await a_running_board(place)
    await place.world.client.patch(BOARD, {"spec": {"suspend": True}})
    status = await place.until_phase(BOARD, "Paused")
    assert status["url"] == "/tensorboards/kubeflow/board/"
    await place.until_gone(POD, BOARD_POD)
    assert await place.has(SERVICE, BOARD_POD)
    await place.world.client.patch(BOARD, {"spec": {"suspend": False}})
    await place.run_pod(BOARD_POD)
    await place.until_phase(BOARD, "Running")


async def test_everything_goes_with_the_object_but_the_claim(place: Place) -> None:
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    await place.make(CLAIM, {"metadata": {"name": "mnist"}, "spec": claim})
    await place.make(NOTEBOOK, a_notebook())
    await place.run_pod(LAB_POD)
    await place.world.client.delete(LAB)
    for kind in (POD, SERVICE, SECRET):
        await place.until_gone(kind, LAB_POD)
    assert await place.has(CLAIM, "mnist")


async def token(place: Place) -> str:
    secret = await place.world.client.get(Key(SECRET, "kubeflow", LAB_POD))
    return b64decode(secret["data"]["token"]).decode()


async def test_a_notebook_keeps_its_token_when_it_is_stopped_and_resumed(place: Place) -> None:
    await place.make(NOTEBOOK, a_notebook())
    await place.run_pod(LAB_POD)
    first = await token(place)
    await place.world.client.patch(LAB, {"spec": {"runMode": "stopped"}})
    await place.until_phase(LAB, "Paused")
    await place.until_gone(POD, LAB_POD)
    await place.world.client.patch(LAB, {"spec": {"runMode": "running"}})
    await place.run_pod(LAB_POD)
    await place.until_phase(LAB, "Running")
    assert await token(place) == first == "sesame-1"


async def test_what_is_somebody_elses_stays_so(place: Place) -> None:
    theirs: Json = {"metadata": {"name": BOARD_POD}, "spec": {"ports": [{"port": 80}]}}
    await place.make(SERVICE, theirs)
    await place.make(TENSORBOARD, a_board("t9k://pvc/mnist/log"))

    async def told() -> bool:
        text = f'Warning FailedCreateService: Error creating: services "{BOARD_POD}" already exists'
        return text in await place.world.events()

    await place.world.seen(told)
    found = await place.world.client.get(Key(SERVICE, "kubeflow", BOARD_POD))
    assert found["spec"]["ports"][0]["port"] == 80


async def test_what_goes_wrong_in_the_pod_is_told_on_the_object(place: Place) -> None:
    await a_running_board(place)
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 10s"}
    running = {"name": "tensorboard", "restartCount": 1, "ready": False, "image": "", "imageID": ""}
    status = {"phase": "Running", "containerStatuses": [running | {"state": {"waiting": waiting}}]}
    await place.world.client.patch(Key(POD, "kubeflow", BOARD_POD), {"status": status}, subresource="status")

    async def told() -> bool:
        return any("Warning CrashLoopBackOff" in one for one in await place.world.events())

    await place.world.seen(told)


# -- rest ----------------------------------------------------------------------------------------------------------


def idle(obj: Json) -> Any:
    return {one["type"]: one["status"] for one in obj["status"]["conditions"]}.get("Idle")


async def test_a_tensorboard_that_nobody_visits_is_stopped_after_a_day_and_says_so(place: Place) -> None:
    await a_running_board(place)
    visit = {
        "metadata": {"annotations": {LAST_VISIT: stamp(place.world.clock.now() + timedelta(minutes=30))}}
    }
    await place.world.client.patch(BOARD, visit)
    await anyio.wait_all_tasks_blocked()
    assert await place.later(BOARD, IDLE_AFTER) == timedelta(minutes=30)
    assert await place.later(BOARD, timedelta(minutes=30)) == STOPPED_AFTER
    assert idle(await place.world.client.get(BOARD)) == "True"
    await place.later(BOARD, STOPPED_AFTER)
    board = await place.world.client.get(BOARD)
    assert board["spec"]["suspend"] is True

    async def told() -> bool:
        return any("Normal StoppedIdle: Idle for 24 hours" in one for one in await place.world.events())

    await place.world.seen(told)
    await place.until_phase(BOARD, "Paused")


async def test_a_notebook_is_asked_with_its_token_when_it_may_be_idle(place: Place) -> None:
    await place.make(NOTEBOOK, a_notebook())
    await place.run_pod(LAB_POD)
    await place.until_phase(LAB, "Running")
    assert place.asked == []
    place.use = Use(place.world.clock.now(), busy=True)
    await place.later(LAB, IDLE_AFTER)
    assert place.asked[0] == (f"http://127.64.0.1:{FIRST}/notebooks/kubeflow/lab/", "sesame-1")
    assert idle(await place.world.client.get(LAB)) == "False"
    place.use = Use(place.world.clock.now() - 2 * IDLE_AFTER)
    await place.later(LAB, IDLE_AFTER)
    assert idle(await place.world.client.get(LAB)) == "True"
    place.use = None
    await place.later(LAB, STOPPED_AFTER)
    assert idle(await place.world.client.get(LAB)) == "Unknown"
    assert "runMode" not in (await place.world.client.get(LAB))["spec"]


# -- a job's own ---------------------------------------------------------------------------------------------------


async def a_job_with_a_board(place: Place, **board: Any) -> tuple[Key, str]:
    """The job's key, and what its pods and its TensorBoard are called."""
    spec = {"trainingLogFilesets": ["t9k://pvc/mnist/log"], "image": "tensorflow/tensorflow:2.14.0"} | board
    key = await place.world.submit(a_job("TensorFlowJob", {"worker": 1}, name="mnist", tensorboardSpec=spec))

    async def there() -> bool:
        return bool(await place.world.names(TENSORBOARD)) and bool(await place.world.names(POD))

    await place.world.seen(there)
    (stem,) = await place.world.names(TENSORBOARD)
    await place.world.seen(lambda: place.has(POD, f"{stem}-worker-0"))
    return key, stem


async def said_of_the_board(place: Place, key: Key) -> Any:
    return ((await place.world.client.get(key)).get("status") or {}).get("tensorboard")


async def until_ready(place: Place, key: Key, ready: bool) -> Json:
    async def so() -> bool:
        return bool(((await said_of_the_board(place, key)) or {}).get("ready") is ready)

    await place.world.seen(so)
    found: Json = await said_of_the_board(place, key)
    return found


async def test_a_job_has_its_own_tensorboard_and_says_how_it_is(place: Place) -> None:
    key, stem = await a_job_with_a_board(place)
    waiting = await until_ready(place, key, False)
    assert waiting["note"] == f"TensorBoard [{stem}] is pending"
    await place.run_pod(f"managed-tensorboard-{stem}")
    board = await place.world.client.get(Key(TENSORBOARD, "kubeflow", stem))
    assert await until_ready(place, key, True) == {
        "action": "NOP",
        "ready": True,
        "reason": "DependentReady",
        "type": "Normal",
        "note": f"TensorBoard [{stem}] is ready",
        "dependent": {
            "apiVersion": "tensorstack.dev/v1beta1",
            "kind": "TensorBoard",
            "name": stem,
            "namespace": "kubeflow",
            "uid": board["metadata"]["uid"],
        },
    }
    assert stem.startswith("mnist-")
    assert len(stem) == len("mnist-1f409")
    assert board["spec"]["image"] == "tensorflow/tensorflow:2.14.0"


async def test_a_jobs_tensorboard_outlives_its_success_and_goes_with_it(place: Place) -> None:
    key, stem = await a_job_with_a_board(place)
    await place.run_pod(f"managed-tensorboard-{stem}")
    await place.world.set_phase(f"{stem}-worker-0", "Succeeded", 0)
    await place.until_phase(key, "Succeeded")
    await until_ready(place, key, True)
    await anyio.wait_all_tasks_blocked()
    before = place.world.store.revision
    await place.world.controller.reconcile(key)
    assert place.world.store.revision == before, "a second pass writes nothing"
    await place.world.client.delete(key)
    await place.until_gone(TENSORBOARD, stem)
    await place.until_gone(SERVICE, f"managed-tensorboard-{stem}")


async def test_a_jobs_tensorboard_may_be_paused_by_itself_and_still_follows_the_job(place: Place) -> None:
    key, stem = await a_job_with_a_board(place, suspend=False)
    mine = Key(TENSORBOARD, "kubeflow", stem)
    await place.world.client.patch(mine, {"spec": {"suspend": True}})
    await place.until_phase(mine, "Paused")
    await place.world.client.patch(key, {"spec": {"tensorboardSpec": {"image": "example/board:2"}}})

    async def followed() -> bool:
        return bool((await place.world.client.get(mine))["spec"]["image"] == "example/board:2")

    await place.world.seen(followed)
    assert (await place.world.client.get(mine))["spec"]["suspend"] is True


async def test_a_tensorboard_that_cannot_be_had_as_it_is_wanted_stops_no_training(place: Place) -> None:
    key, stem = await a_job_with_a_board(place, resources={"limits": {"cpu": "1"}})
    await place.world.client.patch(
        key, {"spec": {"tensorboardSpec": {"resources": {"limits": {"cpu": "2"}}}}}
    )

    async def told() -> bool:
        word = "Warning FailedTensorBoard:"
        return any(word in one and "immutable" in one for one in await place.world.events())

    await place.world.seen(told)
    await place.world.client.delete(Key(POD, "kubeflow", f"{stem}-worker-0"))
    await place.world.seen(lambda: place.has(POD, f"{stem}-worker-0"))


async def test_a_tensorboard_that_a_job_does_not_want_any_more_goes(place: Place) -> None:
    key, stem = await a_job_with_a_board(place)
    await until_ready(place, key, False)
    await place.world.client.patch(key, {"spec": {"tensorboardSpec": None}})
    await place.until_gone(TENSORBOARD, stem)

    async def silent() -> bool:
        return await said_of_the_board(place, key) is None

    await place.world.seen(silent)
