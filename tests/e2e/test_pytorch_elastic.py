"""An elastic job loses a worker in the middle of its training, and goes on from its last checkpoint."""

import re
from pathlib import Path

import pytest

from tests.e2e.house import House

pytestmark = [pytest.mark.index, pytest.mark.slow, pytest.mark.timeout(600)]

MANIFEST = Path(__file__).parents[2] / "examples/pytorch-elastic/pytorch-elastic.yaml"
EPOCHS = 600


def test_a_worker_that_is_gone_costs_no_epoch(house: House, kubectl: str, tmp_path: Path) -> None:
    manifest = tmp_path / MANIFEST.name
    manifest.write_text(MANIFEST.read_text().replace('value: "20"', f'value: "{EPOCHS}"'))
    house.up()
    house.run(kubectl, "create", "-f", str(manifest))

    def log() -> str:
        return house.run(kubectl, "logs", "pytorch-elastic-worker-0", check=False).stdout

    house.wait_for(lambda: "Epoch 20: workers=2" in log())
    house.run(kubectl, "delete", "pod", "pytorch-elastic-worker-1", "--grace-period=0", "--force")
    house.wait_for(lambda: log().count("rank ") > 1)
    starts = [int(epoch) for epoch in re.findall(r"from epoch (\d+)", log())]
    assert starts[0] == 1
    assert starts[1] > 20
    house.run(
        kubectl,
        "wait",
        "pytorchjob/pytorch-elastic",
        "--for=condition=Succeeded",
        "--timeout=300s",
        patience=320,
    )
    epochs = [int(epoch) for epoch in re.findall(r"Epoch (\d+): workers=", log())]
    assert epochs[-1] == EPOCHS
    assert len(set(epochs)) == EPOCHS
