"""What a client may ask of a running container, and in which words it hears what came of it."""

from dataclasses import dataclass
from typing import Any

import pytest
from multidict import MultiDict

from fullrank.api.meta import Json
from fullrank.controlplane.exec_route import Wish, running_container, status_of
from fullrank.errors import BadRequest


@dataclass(frozen=True)
class Ended:
    code: int
    message: str = ""


def test_success_and_exit_codes_are_told_as_kubectl_reads_them() -> None:
    assert status_of(Ended(0)) == {"metadata": {}, "status": "Success"}
    failed = status_of(Ended(3))
    assert (failed["status"], failed["reason"]) == ("Failure", "NonZeroExitCode")
    assert failed["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
    lost = status_of(Ended(126, 'exec: "x": permission denied'))
    assert lost["reason"] == "InternalError"
    assert lost["message"].endswith('error executing command in container: exec: "x": permission denied')


def a_pod(*containers: str, state: Json | None = None, **fields: Any) -> Json:
    statuses = [
        {"name": name, "state": state or {"running": {}}, "restartCount": 0}
        for name in (*containers, "setup")
    ]
    return {
        "metadata": {"name": "p"},
        "spec": {
            "nodeName": "here",
            "containers": [{"name": name} for name in containers],
            "initContainers": [{"name": "setup"}],
            **fields,
        },
        "status": {"phase": "Running", "containerStatuses": statuses},
    }


def test_the_only_container_is_meant_when_none_is_named() -> None:
    assert running_container(a_pod("main"), "") == "main"
    assert running_container(a_pod("main"), "setup") == "setup"


REFUSED = {
    "one of several must be named": (
        a_pod("x", "y"),
        "",
        "a container name must be specified for pod p, choose one of: [x y]",
    ),
    "it must be one of the pod's": (a_pod("x"), "z", "container z is not valid for pod p"),
    "the pod must be somewhere": (a_pod("x", nodeName=""), "x", "pod p does not have a host assigned"),
    "the container must run": (a_pod("x", state={"waiting": {}}), "x", 'container not found ("x")'),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_entered(case: str) -> None:
    pod, container, why = REFUSED[case]
    with pytest.raises(BadRequest) as refused:
        running_container(pod, container)
    assert str(refused.value) == why


def test_a_pod_that_is_over_is_not_entered() -> None:
    pod = a_pod("x")
    pod["status"]["phase"] = "Succeeded"
    with pytest.raises(BadRequest, match="completed pod; current phase is Succeeded"):
        running_container(pod, "x")


WISHES = {
    "no command": ({"stdout": "1"}, "at least 1 command"),
    "no stream": ({"command": "ls"}, "at least 1 of stdin, stdout, stderr"),
    "a terminal with two outputs": (
        {"command": "ls", "stdout": "1", "stderr": "1", "tty": "1"},
        "tty and stderr cannot both be true",
    ),
}


@pytest.mark.parametrize("case", WISHES)
def test_wishes_that_make_no_sense(case: str) -> None:
    query, why = WISHES[case]
    with pytest.raises(BadRequest, match=why):
        Wish.read(MultiDict(query))


def test_every_word_of_a_command_is_a_parameter_of_its_own() -> None:
    query = MultiDict([("command", "sh"), ("command", "-c"), ("command", "ls a"), ("stdin", "true")])
    assert Wish.read(query) == Wish("", ("sh", "-c", "ls a"), True, False, False, False)
