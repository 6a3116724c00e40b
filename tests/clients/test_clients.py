"""Clients that others wrote, unchanged, against a home: they list, watch, patch, read logs, and notice nothing.

Each script in `scripts` makes its own claims and ends with `fine`. The training SDK cannot read jobs without a
`runPolicy`; that is so with Kubeflow's operator as well, since nobody writes one into the stored spec.
"""

from pathlib import Path

import pytest

from tests.clients.conftest import Python
from tests.e2e.house import House

pytestmark = [pytest.mark.slow, pytest.mark.index, pytest.mark.timeout(600)]

SCRIPTS = Path(__file__).parent / "scripts"
PACKAGES = {
    "official.py": ("kubernetes<36",),
    "with_kr8s.py": ("kr8s",),
    "with_lightkube.py": ("lightkube",),
    "training_sdk.py": ("kubeflow-training==1.9.*", "kubernetes<36"),
}


@pytest.mark.parametrize("script", PACKAGES)
def test_a_python_client_takes_a_home_for_kubernetes(house: House, python_with: Python, script: str) -> None:
    said = house.run(python_with(*PACKAGES[script]), str(SCRIPTS / script))
    assert said.stdout.endswith("fine\n"), said


def test_the_javascript_client_takes_a_home_for_kubernetes(house: House, node_modules: Path) -> None:
    script = node_modules / "client.mjs"  # where Node looks for modules is decided by where the script is
    script.write_text((SCRIPTS / "client.mjs").read_text())
    assert house.run("node", str(script)).stdout.endswith("fine\n")
