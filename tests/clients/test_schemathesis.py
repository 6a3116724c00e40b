"""Schemathesis reads our OpenAPI documents and sends what they allow and what they do not: nothing ends in a 5xx.

An answer that never comes counts as an error as well. Paths that stream, and so do not end, are left out.
"""

from pathlib import Path

import pytest

from fullrank.client.kubeconfig import load
from tests.clients.conftest import Python
from tests.e2e.house import House

pytestmark = [pytest.mark.slow, pytest.mark.index, pytest.mark.timeout(600)]

GROUPS = (
    "api/v1",
    "apis/kubeflow.org/v1",
    "apis/batch.tensorstack.dev/v1beta1",
    "apis/tensorstack.dev/v1beta1",
)
OPTIONS = (
    "--max-time=40", "--workers=4", "--phases=coverage,fuzzing", "--continue-on-failure", "--tls-verify=false",
    "--exclude-path-regex=watch|proxy|exec|log", "--suppress-health-check=all", "--warnings=off",
)  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_no_request_ends_in_an_error_of_ours(
    house: House,
    kubectl: str,
    python_with: Python,
    tmp_path: Path,
    group: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)  # it keeps what it finds where it is started
    document = tmp_path / "openapi.json"
    document.write_text(house.run(kubectl, "get", "--raw", f"/openapi/v3/{group}").stdout)
    way_in = load([house.home / "kubeconfig"])
    settings = tmp_path / "schemathesis.toml"  # the token is nobody else's to see in the process list
    settings.write_text(
        f'[headers]\nAuthorization = "Bearer {way_in.credentials.token}"\n'
        f"[checks]\nenabled = false\nnot_a_server_error.enabled = true\n"
    )
    python = python_with("schemathesis==4.32.5")
    words = (python, "-m", "schemathesis.cli", f"--config-file={settings}", "run", str(document))
    said = house.run(*words, "--url", way_in.server, *OPTIONS, check=False)
    assert said.returncode == 0, said.stdout[-4000:]
