import time
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.control_plane import Cluster, cluster, install
from tests.contract.kubernetes import NEEDED, assets

PATIENCE = 90.0  # Kubernetes' garbage collector looks for new kinds, such as ours, every half a minute only


@pytest.fixture(scope="session")
def kubernetes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that has been given what `fullrank install` prints."""
    binaries = assets()
    if binaries is None:
        pytest.skip(NEEDED)
    with cluster(binaries, tmp_path_factory.mktemp("kubernetes")) as one:
        install(one)
        yield one


@pytest.fixture
def namespace(kubernetes: Cluster, request: pytest.FixtureRequest) -> str:
    return kubernetes.namespace(request.node.name.replace("_", "-")[5:60].strip("-"))


def until(true: Callable[[], bool]) -> None:
    """Waits until it is so."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.2)
