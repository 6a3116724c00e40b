"""Clients that others wrote, unchanged, against a home: they list, watch, patch, read logs, and notice nothing.

Each script in `scripts` makes its own claims and ends with `fine`. The training SDK cannot read jobs without a
`runPolicy`; that is so with Kubeflow's operator as well, since nobody writes one into the stored spec.
"""

import json
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


def test_the_training_sdk_fine_tunes(house: House, tmp_path: Path) -> None:
    """In an environment of ours: it wants PyTorch, which we get without a gigabyte of CUDA."""
    wanted = tmp_path / "requirements.txt"
    wanted.write_text("kubeflow-training[huggingface]==1.9.4\nkubernetes<36\ntorch==2.13.0\n")
    house.fullrank("env", "create", "sdk", "-r", str(wanted), patience=500)
    built = json.loads(house.fullrank("env", "show", "sdk", "-o", "json").stdout)
    said = house.run(f"{built['path']}/bin/python", str(SCRIPTS / "training_train.py"))
    assert said.stdout.endswith("fine\n"), said
