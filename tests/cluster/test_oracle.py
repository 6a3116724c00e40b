"""A few of the oracle's cases; `make oracle` plays them all."""

import anyio
import pytest

from tests.cluster.control_plane import Cluster, our_operator, training_operator
from tests.oracle.catalogue import CASES
from tests.oracle.compare import Difference
from tests.oracle.expected import unexpected
from tests.oracle.stage import OURS, THEIRS, stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

FEW = (
    "tutorial pytorch-simple",
    "tutorial mpi-benchmarks",
    "tutorial mxnet-distributed",
    "tutorial paddle-distributed",
    "TFJob: dynamic workers",
    "PyTorchJob: an autoscaler",
    "XGBoostJob: ExitCode, a worker exits 137",
)


def test_both_operators_make_the_same_of_the_same_manifests(kubernetes: Cluster) -> None:
    async def played() -> list[Difference]:
        async with stage(kubernetes.connection) as both:
            return await both.play_all((name, CASES[name]) for name in FEW)

    for namespace in (THEIRS, OURS):
        kubernetes.namespace(namespace)
    with training_operator(kubernetes, THEIRS), our_operator(kubernetes, OURS):
        assert unexpected(anyio.run(played)) == []
