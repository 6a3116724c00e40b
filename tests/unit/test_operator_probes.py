"""What an operator tells of itself: counts under the names that dashboards know, and whether it is well."""

import aiohttp
import pytest

from fullrank.api.jobs import JobStatus
from fullrank.controllers.counters import Counters
from fullrank.controllers.probes import parsed, probes
from fullrank.dialects.contract import Mark, Report
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import BadRequest, Unavailable

pytestmark = pytest.mark.anyio

NEW, STARTED = JobStatus(), JobStatus(states=frozenset({"Created", "Running"}))
OVER = JobStatus(states=frozenset({"Created", "Failed"}))
ENDED = Report(marks=(Mark("Failed", "PyTorchJobFailed", "it failed"),))


def counts(*happenings: tuple[JobStatus, Report]) -> list[str]:
    counters = Counters()
    for before, report in happenings:
        counters.reported(before, report, "team", "pytorch")
    lines = counters.text().splitlines()
    return [line.removeprefix("training_operator_jobs_") for line in lines if not line.startswith("#")]


LABELS = '{framework="pytorch",job_namespace="team"}'
COUNTED = {
    "a job that is seen for the first time": ([(NEW, Report())], [f"created_total{LABELS} 1"]),
    "a look at which nothing happened": ([(STARTED, Report())], []),
    "each restart, once": (
        [(STARTED, Report(restarts=2)), (JobStatus(restarts=2, states=STARTED.states), Report(restarts=3))],
        [f"restarted_total{LABELS} 3"],
    ),
    "a success": (
        [(STARTED, Report(marks=(Mark("Succeeded", "PyTorchJobSucceeded", "it ended"),)))],
        [f"successful_total{LABELS} 1"],
    ),
    "a failure, by a limit too": ([(STARTED, ENDED)], [f"failed_total{LABELS} 1"]),
    "an end only once": ([(STARTED, ENDED), (OVER, ENDED)], [f"failed_total{LABELS} 1"]),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_is_counted(case: str) -> None:
    happenings, wanted = COUNTED[case]
    assert counts(*happenings) == wanted


def test_every_kind_is_counted_under_its_framework() -> None:
    found = {one.kind.kind: one.framework.counted_as for one in JOB_KINDS if one.kind.group == "kubeflow.org"}
    assert found == {
        "PyTorchJob": "pytorch", "TFJob": "tensorflow", "MPIJob": "mpi", "MXJob": "mxnet", "PaddleJob": "paddle",
        "XGBoostJob": "xgboost", "JAXJob": "jax",
    }  # fmt: skip
    assert all(one.framework.counted_as for one in JOB_KINDS)


async def test_it_says_whether_it_is_well_and_what_it_has_counted() -> None:
    counters, ready = Counters(), list[bool]()
    counters.deleted("team", "mpi")
    async with (
        probes("127.0.0.1:0", "127.0.0.1:0", counted=counters.text, ready=lambda: bool(ready)) as places,
        aiohttp.ClientSession() as session,
    ):

        async def asked(place: int, path: str) -> tuple[int, str]:
            async with session.get(places[place].url + path) as answer:
                return answer.status, await answer.text()

        status, text = await asked(0, "/metrics")
        assert status == 200
        assert 'training_operator_jobs_deleted_total{framework="mpi",job_namespace="team"} 1\n' in text
        assert "# TYPE training_operator_jobs_created_total counter\n" in text
        assert await asked(1, "/healthz") == (200, "ok")
        assert (await asked(1, "/readyz"))[0] == 503
        ready.append(True)
        assert await asked(1, "/readyz") == (200, "ok")
        with pytest.raises(Unavailable, match="cannot listen on"):
            async with probes(f"127.0.0.1:{places[0].port}", "0", counted=str, ready=bool):
                pass


async def test_at_0_nothing_is_served() -> None:
    async with probes("0", "0", counted=str, ready=bool) as places:
        assert places == []


def test_addresses_are_written_as_go_programs_write_them() -> None:
    assert parsed(":8080") == ("0.0.0.0", 8080)
    assert parsed("127.0.0.1:1") == ("127.0.0.1", 1)
    assert parsed("[::1]:443") == ("::1", 443)
    for wrong in ("", "8080", "host:", "host:port", ":70000"):
        with pytest.raises(BadRequest, match="is no address"):
            parsed(wrong)
