"""Which program of which pod a request through the API is meant for."""

import pytest

from fullrank.api.meta import Json
from fullrank.controlplane.proxy_route import Target, port_of
from fullrank.errors import BadRequest

POD: Json = {
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "a"}, {"name": "b", "ports": [{"name": "http", "containerPort": 6006}]}]
    },
}
TARGETS = {
    "web": Target("http", "web", ""),
    "web:80": Target("http", "web", "80"),
    "https:web:http": Target("https", "web", "http"),
    ":web:80": Target("http", "web", "80"),
}


@pytest.mark.parametrize("text", TARGETS)
def test_a_pod_is_named_with_or_without_scheme_and_port(text: str) -> None:
    assert Target.read(text) == TARGETS[text]


@pytest.mark.parametrize("text", ["ftp:web:21", "a:b:c:d"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid pod request"):
        Target.read(text)


def test_a_port_is_a_number_a_name_or_the_first_there_is() -> None:
    assert [port_of(POD, wanted) for wanted in ("", "http", "8080")] == [6006, 6006, 8080]
    for wrong in ("nope", "0", "70000"):
        with pytest.raises(BadRequest, match=f'has no port "{wrong}"'):
            port_of(POD, wrong)
