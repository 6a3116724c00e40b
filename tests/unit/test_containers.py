"""What an engine is told of a container, its images' names, and the little program that holds a pod's network."""

import platform
import signal
import subprocess
import sys
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import pytest

from fullrank.agent.containers import holder
from fullrank.agent.containers.arguments import Ways, container_words, holder_words, pod_of, split
from fullrank.agent.containers.engine import Engine, candidates, free_subnets
from fullrank.agent.containers.images import full_name, image_of, pull_policy
from fullrank.agent.network import Network
from fullrank.agent.nursery.container_log import ContainerLog, kept_bytes
from fullrank.agent.places import Places
from fullrank.agent.runtime import Attempt, Launch, Limits, Mount, Powers
from fullrank.errors import Unavailable

UID = "c9a0a497-e681-4baf-a1cf-2af7eef26a40"
PODMAN = Ways("podman", ("/usr/bin/podman",), ("--usual",), "net", "home")
DOCKER = Ways("docker", ("/usr/bin/docker",), ("--usual",), "net", "home")
ON_HOST = Ways("podman", ("/usr/bin/podman",), (), "", "home")
BEGIN = [
    "create", f"--name=fullrank-{UID}-main-2", "--label=fullrank.dev/home=home", f"--label=fullrank.dev/pod={UID}",
    "--pull=never",
]  # fmt: skip
HELD = [f"--network=container:fullrank-{UID}", f"--ipc=container:fullrank-{UID}"]
K8S_FILE = ["--log-driver=k8s-file", "--log-opt=path=/l", "--env-file=/v"]
END = ["--workdir=/", "--usual", "--entrypoint=sh", "sha256:1", "-c", "true"]


def a_launch(**more: Any) -> Launch:
    launch: dict[str, Any] = {
        "attempt": Attempt(UID, "main", 2), "argv": ("sh", "-c", "true"), "env": {"TOKEN": "hush"}, "log": Path("/l"),
        "hostname": "p", "image": "sha256:1", "address": "10.0.0.2", **more,
    }  # fmt: skip
    return Launch(**launch)


WORDS: dict[str, tuple[Ways, Launch, list[str]]] = {
    "a container joins its pod": (PODMAN, a_launch(), [*BEGIN, *K8S_FILE, *HELD, "--hostname=p", *END]),
    "Docker gives it the pod's hostname by itself": (
        DOCKER,
        a_launch(),
        [*BEGIN, "--log-driver=json-file", "--env-file=/v", *HELD, *END],
    ),
    "a pod on the machine's network has no holder": (
        PODMAN,
        a_launch(address=""),
        [*BEGIN, *K8S_FILE, "--network=host", "--hostname=p", *END],
    ),
    "a variable of several lines is told by its name": (
        PODMAN,
        a_launch(env={"KEY": "a\nb"}),
        [*BEGIN, *K8S_FILE, "--env=KEY", *HELD, "--hostname=p", *END],
    ),
    "whom it runs as": (
        PODMAN,
        a_launch(user=1000, group=5, groups=(7, 8)),
        [*BEGIN, *K8S_FILE, *HELD, "--hostname=p", "--user=1000:5", "--group-add=7", "--group-add=8", *END],
    ),
    "limits": (
        PODMAN,
        a_launch(limits=Limits(memory=1024, cpu=0.001)),
        [
            *BEGIN,
            *K8S_FILE,
            *HELD,
            "--hostname=p",
            "--memory=1024b",
            "--memory-swap=1024b",
            "--cpus=0.01",
            *END,
        ],
    ),
    "powers": (
        PODMAN,
        a_launch(powers=Powers(("SYS_ADMIN",), ("ALL",), all=True, grow=False)),
        [
            *(*BEGIN, *K8S_FILE, *HELD, "--hostname=p", "--privileged", "--security-opt=no-new-privileges"),
            *("--cap-drop=ALL", "--cap-add=SYS_ADMIN", *END),
        ],
    ),
    "Podman's GPUs": (
        PODMAN,
        a_launch(devices=("GPU-1", "GPU-2")),
        [
            *(*BEGIN, *K8S_FILE, *HELD, "--hostname=p"),
            *("--device=nvidia.com/gpu=GPU-1", "--device=nvidia.com/gpu=GPU-2", *END),
        ],
    ),
    "Docker's GPUs": (
        DOCKER,
        a_launch(devices=("GPU-1", "GPU-2")),
        [*BEGIN, "--log-driver=json-file", "--env-file=/v", *HELD, '--gpus="device=GPU-1,GPU-2"', *END],
    ),
    "mounts, outer ones first, whatever is in their names": (
        PODMAN,
        a_launch(
            mounts=(Mount(Path("/x,y"), "/z/in", read_only=True), Mount(Path("/w"), "/z")), names=Path("/n")
        ),
        [
            *(
                *BEGIN,
                *K8S_FILE,
                *HELD,
                "--hostname=p",
                "--mount=type=bind,source=/n/hosts,target=/etc/hosts",
            ),
            *(
                "--mount=type=bind,source=/w,target=/z",
                '--mount=type=bind,"source=/x,y",target=/z/in,readonly',
            ),
            *END,
        ],
    ),
    "a root that cannot be written to": (
        PODMAN,
        a_launch(read_only=True),
        [*BEGIN, *K8S_FILE, *HELD, "--hostname=p", "--read-only", "--read-only-tmpfs=false", *END],
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_an_engine_is_told(case: str) -> None:
    ways, launch, expected = WORDS[case]
    assert container_words(ways, launch, Path("/v")) == expected


def test_no_value_of_a_variable_is_among_the_words() -> None:
    launch = a_launch(env={"TOKEN": "hush", "KEY": "hush\nhush"})
    assert "hush" not in " ".join(container_words(PODMAN, launch, Path("/v")))
    assert split(launch.env) == ("TOKEN=hush\n", {"KEY": "hush\nhush"})


def test_a_holder_has_the_pods_address_and_names_and_is_known_by_its_own() -> None:
    words = holder_words(PODMAN, UID, "p", "10.0.0.2", ["p", "p.default"])
    assert {"--network=net", "--ip=10.0.0.2", "--network-alias=p", "--network-alias=p.default"} <= {*words}
    assert pod_of(f"fullrank-{UID}") == pod_of(f"fullrank-{UID}-main-0") == UID
    assert pod_of("somebody-elses") == ""


POLICIES = {
    "a tag stays what it was": ({"image": "a:1"}, "IfNotPresent"),
    "a digest as well": ({"image": "a@sha256:1"}, "IfNotPresent"),
    "no tag may be another image by now": ({"image": "host:5000/a"}, "Always"),
    "and so may latest": ({"image": "a:latest"}, "Always"),
    "the manifest's own word counts": ({"image": "a", "imagePullPolicy": "Never"}, "Never"),
}


@pytest.mark.parametrize("case", POLICIES)
def test_when_an_image_is_pulled(case: str) -> None:
    container, policy = POLICIES[case]
    assert pull_policy(container) == policy


NAMES = {
    "alpine:3": "docker.io/library/alpine:3",
    "pytorch/pytorch": "docker.io/pytorch/pytorch",
    "quay.io/a/b:1": "quay.io/a/b:1",
    "localhost/a": "localhost/a",
    "host:5000/a": "host:5000/a",
}


@pytest.mark.parametrize("reference", NAMES)
def test_a_name_without_a_registry_is_docker_hubs(reference: str) -> None:
    assert full_name(reference) == NAMES[reference]


def test_an_image_says_what_its_containers_are_given() -> None:
    config = {
        "Env": ["PATH=/bin", "A=b=c"],
        "Entrypoint": ["run"],
        "Cmd": None,
        "WorkingDir": "/w",
        "StopSignal": "QUIT",
    }
    image = image_of("a", {"Id": "sha256:1", "Config": config})
    assert (image.env, image.entrypoint, image.command) == ({"PATH": "/bin", "A": "b=c"}, ("run",), ())
    assert (image.working_dir, image.stop_signal, image.id) == ("/w", "QUIT", "sha256:1")


def test_the_holder_sleeps_until_it_is_killed(tmp_path: Path) -> None:
    if not holder.can_be_made() or sys.platform != "linux":
        pytest.skip("no such program is made for this machine")
    program = tmp_path / "hold"
    program.write_bytes(holder.executable(platform.machine()))
    program.chmod(0o755)
    with subprocess.Popen([program]) as held:
        with pytest.raises(subprocess.TimeoutExpired):
            held.wait(0.05)
        held.kill()
        assert held.wait(1) == -signal.SIGKILL


def test_an_engine_that_is_not_installed_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(
        Unavailable, match=r"podman is not on this machine: install it \(`apt-get install podman`"
    ):
        Engine("podman", tmp_path, {"PATH": str(tmp_path)})


def test_the_plainest_way_is_tried_first(tmp_path: Path) -> None:
    (tmp_path / "runc").touch(mode=0o755)
    ways = list(candidates(PODMAN, {"PATH": str(tmp_path)}))
    assert [way.tool for way in ways[::2]] == [
        PODMAN.tool,
        (*PODMAN.tool, "--runtime", str(tmp_path / "runc")),
    ]
    assert not any("ulimit" in option for option in ways[0].options)
    assert any("--ulimit=nofile" in option for option in ways[-1].options)
    assert len(list(candidates(DOCKER, {"PATH": str(tmp_path)}))) == 2


def test_a_network_keeps_clear_of_those_the_machine_is_on() -> None:
    taken = [IPv4Network("10.224.0.0/16"), IPv4Network("10.225.0.0/20")]
    assert next(free_subnets(taken)) == IPv4Network("10.225.16.0/20")


def test_pods_of_a_network_have_its_addresses_and_a_file_of_names_that_stays_itself(tmp_path: Path) -> None:
    network = Network(Places(tmp_path), subnet=IPv4Network("10.9.0.0/29"), whole=True)
    pods = [
        {"metadata": {"name": f"p{number}", "namespace": "n", "uid": f"u{number}"}, "spec": {}}
        for number in range(2)
    ]
    pods[1]["status"] = {"podIP": "127.64.0.1"}  # from when it was a process
    assert network.seat(pods[0]) == "10.9.0.2"
    network.settle()
    file = tmp_path / "network" / "n" / "hosts"
    before = file.stat().st_ino
    assert network.seat(pods[1]) == "10.9.0.3"
    network.settle()
    assert file.stat().st_ino == before
    assert file.read_text().splitlines()[3:] == ["10.9.0.2 p0", "10.9.0.3 p1"]
    assert network.aliases(pods[1]) == ("p1",)


def test_what_is_in_a_log_is_counted_by_what_was_written(tmp_path: Path) -> None:
    log = ContainerLog(str(tmp_path / "0.log"), largest=1000)
    log.take("stdout", b"one\n\n" + b"x" * 40_000 + b"\n")
    log.take("stderr", b"oh\nno end")
    assert kept_bytes(str(tmp_path / "0.log")) == {"stdout": 5 + 40_001, "stderr": 3}
    assert (tmp_path / "0.log.1").exists()
    assert kept_bytes(str(tmp_path / "1.log")) == {"stdout": 0, "stderr": 0}
    log.close()
