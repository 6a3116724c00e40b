"""Pods as containers of the real Podman and Docker, of an image that is built here: what a kubelet would show."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.e2e.debian_image import layer
from tests.e2e.house import House

IMAGE = "localhost/fullrank-test:1"
MISSING = {
    "podman": "; `make machine` installs what is missing on Debian",
    "docker": "; start its daemon",
}
# As they come, and as they must be where the machine gives root less than it has elsewhere.
LIMITS = ("--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024")
TRIALS = {
    "podman": (["podman", "run"], ["podman", "--runtime", "runc", "run", *LIMITS]),
    "docker": (["docker", "run"], ["docker", "run", *LIMITS]),
}


@pytest.fixture(scope="module", params=TRIALS)
def engine(request: pytest.FixtureRequest) -> Iterator[str]:
    """One that runs containers here, and has the image."""
    engine = str(request.param)
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed{MISSING[engine]}")
    said = ask(engine, "import", "-", IMAGE, stdin=layer())
    for words in TRIALS[engine] if said.returncode == 0 else ():
        said = ask(*words, "--rm", "--network=none", IMAGE, "python3", "-c", "")
        if said.returncode == 0:
            yield engine
            ask(engine, "rmi", "--force", IMAGE)
            return
    pytest.skip(
        f"{engine} runs no container on this machine: {said.stderr.decode().strip()}{MISSING[engine]}"
    )


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, engine: str, kubectl: str) -> Iterator[House]:
    home = tmp_path_factory.mktemp("containers") / "home"
    home.mkdir(mode=0o700)
    house, before = House(home), names_of_containers(engine)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("FULLRANK_RUNTIME", engine)
        house.up()
        yield house
        house.fullrank("down", check=False)
    assert names_of_containers(engine) <= before, "containers outlived their home"


def names_of_containers(engine: str) -> set[str]:
    return {*ask(engine, "ps", "--all", "--format={{.Names}}").stdout.decode().split()}


def ask(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(words, input=stdin, capture_output=True, check=False, timeout=60)


def container(script: str, name: str = "main", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": IMAGE, "command": ["python3", "-u", "-c", script], **more}


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    wanted = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": containers, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": wanted}


@pytest.fixture
def apply(house: House, kubectl: str) -> Any:
    def applied(*objects: dict[str, Any]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": objects}
        house.run(kubectl, "create", "-f", "-", stdin=json.dumps(listed))

    return applied


@pytest.fixture
def look(house: House, kubectl: str) -> Any:
    def looked(kind: str, name: str) -> Any:
        return json.loads(house.run(kubectl, "get", kind, name, "-o", "json").stdout)

    return looked


@pytest.fixture
def ended(house: House, look: Any) -> Any:
    """The pod, once it is over."""

    def over(name: str) -> Any:
        found = look("pod", name)
        return found if found["status"].get("phase") in ("Succeeded", "Failed") else None

    return lambda name: house.wait_for(lambda: over(name))


def state_of(pod: dict[str, Any]) -> dict[str, Any]:
    state: dict[str, Any] = pod["status"]["containerStatuses"][0]["state"]
    return state


RANK = """
import os, socket
address = os.environ["COORDINATOR_ADDRESS"], int(os.environ["COORDINATOR_PORT"])
if os.environ["PROCESS_ID"] == "0":
    with socket.create_server(("0.0.0.0", address[1])) as server:
        print("heard", server.accept()[0].makefile().read(), "on", address[1])
else:
    lines = open("/etc/resolv.conf").read().splitlines()
    server = next(line.split()[1] for line in lines if line.startswith("nameserver"))
    name = b"".join(bytes([len(part)]) + part.encode() for part in address[0].split(".")) + bytes(1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as question:
        question.settimeout(10)
        question.sendto(bytes([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]) + name + bytes([0, 1, 0, 1]), (server, 53))
        answer = question.recv(512)
    assert socket.inet_aton(socket.gethostbyname(address[0])) in answer
    while True:
        try:
            with socket.create_connection(address, 5) as line:
                line.sendall(socket.gethostname().encode())
            break
        except OSError as problem:
            print(problem)
"""


def job(name: str) -> dict[str, Any]:
    replica = {"replicas": 2, "template": {"spec": {"containers": [container(RANK, "jax")]}}}
    spec = {"jaxReplicaSpecs": {"Worker": replica}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "JAXJob", "metadata": {"name": name}, "spec": spec}


def test_two_jobs_at_once_use_the_same_port_by_the_names_of_their_services(
    house: House, apply: Any, look: Any, kubectl: str
) -> None:
    apply(job("one"), job("two"))
    for name in ("one", "two"):
        house.run(kubectl, "wait", "jaxjob", name, "--for=condition=Succeeded", "--timeout=60s")
        said = house.run(kubectl, "logs", f"{name}-worker-0").stdout
        assert said == f"heard {name}-worker-1 on 6666\n"
        assert "fullrank.dev/ports" not in look("jaxjob", name)["metadata"].get("annotations", {})
    assert look("pod", "one-worker-0")["status"]["podIP"].startswith("10.")


def test_a_pod_runs_as_its_manifest_says(
    house: House, apply: Any, ended: Any, kubectl: str, engine: str
) -> None:
    script = (
        "import os, socket, pathlib\n"
        "print(socket.gethostname(), os.getuid(), os.getgid(), 7 in os.getgroups(), os.getcwd())\n"
        "print(os.environ['TOKEN'], repr(os.environ['LINES']), os.environ['IP'] == socket.gethostbyname('p'))\n"
        "print(pathlib.Path('/between/note').read_text(), pathlib.Path('/config/key').read_text())\n"
        "try: open('/etc/new', 'w')\n"
        "except OSError as problem: print(problem.strerror)\n"
        "pathlib.Path('/dev/termination-log').write_text('the end')\n"
    )
    between, config = {"name": "between", "mountPath": "/between"}, {"name": "config", "mountPath": "/config"}
    secret = {"secretKeyRef": {"name": "s", "key": "token"}}
    apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"token": "t0ken"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"key": "value"}},
        pod(
            "p",
            container(
                script,
                workingDir="/tmp",
                volumeMounts=[{**between, "subPath": "part"}, config],
                securityContext={"readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}},
                resources={"limits": {"memory": "200Mi", "cpu": "1"}},
                env=[
                    {"name": "TOKEN", "valueFrom": secret},
                    {"name": "LINES", "value": "a\nb"},
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ],
            ),
            initContainers=[
                container(
                    "import os; os.mkdir('/between/part'); open('/between/part/note', 'w').write('from before')",
                    "first",
                    volumeMounts=[between],
                )
            ],
            securityContext={"runAsUser": 1000, "runAsGroup": 1001, "supplementalGroups": [7]},
            volumes=[
                {"name": "between", "emptyDir": {"medium": "Memory"}},
                {"name": "config", "configMap": {"name": "c"}},
            ],
        ),
    )
    state = state_of(over := ended("p"))
    assert house.run(kubectl, "logs", "p").stdout.splitlines() == [
        "p 1000 1001 True /tmp",
        "t0ken 'a\\nb' True",
        "from before value",
        "Read-only file system",
    ]
    assert (state["terminated"]["reason"], state["terminated"]["message"]) == ("Completed", "the end")
    assert over["status"]["containerStatuses"][0]["containerID"].startswith(f"{engine}://")


AGAIN = """
import json, os, pathlib, ssl, urllib.request
if not os.path.exists("/between/note"):
    open("/between/note", "w").close()
    print("first")
    raise SystemExit(1)
account = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
where = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
asked = urllib.request.Request("https://%s:%s/api/v1/namespaces/default/pods/again" % where)
asked.add_header("Authorization", "Bearer " + (account / "token").read_text())
with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=account / "ca.crt")) as answer:
    print(json.load(answer)["metadata"]["name"])
"""


def test_a_container_that_failed_runs_again_and_speaks_to_the_api(
    house: House, apply: Any, ended: Any, kubectl: str
) -> None:
    mounts = [{"name": "between", "mountPath": "/between"}]
    volumes = [{"name": "between", "emptyDir": {}}]
    apply(pod("again", container(AGAIN, volumeMounts=mounts), volumes=volumes, restartPolicy="OnFailure"))
    status = ended("again")["status"]["containerStatuses"][0]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 1)
    assert house.run(kubectl, "logs", "again").stdout == "again\n"
    assert house.run(kubectl, "logs", "again", "--previous").stdout == "first\n"


ENDINGS = {
    "an error": (container("raise SystemExit(3)"), 3, "Error", ""),
    "a program that is nowhere": ({**container(""), "command": ["nosuch"]}, 128, "StartError", '"nosuch"'),
}


@pytest.mark.parametrize("case", ENDINGS)
def test_an_end_is_told_as_kubelets_tell_it(case: str, apply: Any, ended: Any) -> None:
    spec, code, reason, message = ENDINGS[case]
    name = case.replace(" ", "-")
    apply(pod(name, spec))
    told = state_of(ended(name))["terminated"]
    assert (told["exitCode"], told["reason"]) == (code, reason)
    assert message in told.get("message", "")


def test_who_takes_too_much_memory_is_killed_and_its_neighbour_lives(
    house: House, apply: Any, look: Any, kubectl: str
) -> None:
    greedy = "hoard = []\nwhile True: hoard.append(bytearray(b'x' * 4_000_000))"
    limits: Any = {"resources": {"limits": {"memory": "64Mi"}}}
    apply(pod("greedy", container(greedy, **limits), container("import time; time.sleep(600)", "neighbour")))
    states = {}

    def is_told() -> bool:
        nonlocal states
        statuses = look("pod", "greedy")["status"].get("containerStatuses") or []
        states = {one["name"]: one["state"] for one in statuses}
        return "terminated" in states.get("main", {}) and "running" in states["neighbour"]

    house.wait_for(is_told)
    assert states["main"]["terminated"]["reason"] == "OOMKilled"
    assert states["main"]["terminated"]["exitCode"] == 137
    house.run(kubectl, "delete", "pod", "greedy", "--grace-period=0", "--force")


def test_an_image_that_cannot_be_had_says_why(house: House, apply: Any, look: Any) -> None:
    missing = container("") | {"image": "localhost:1/nobody/nothing:1"}
    apply(pod("missing", missing), pod("never", {**missing, "imagePullPolicy": "Never"}))

    def waiting(name: str) -> Any:
        statuses = look("pod", name)["status"].get("containerStatuses")
        told = (statuses[0]["state"].get("waiting") or {}) if statuses else {}
        return told if told.get("reason") != "ContainerCreating" and told.get("message") else None

    told = house.wait_for(lambda: waiting("missing"))
    assert told["reason"] in ("ErrImagePull", "ImagePullBackOff")
    assert "localhost:1" in told["message"]
    assert house.wait_for(lambda: waiting("never"))["reason"] == "ErrImageNeverPull"


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: print("no"))
print("secret" if os.environ["TOKEN"] else "")
while True: time.sleep(0.05)
"""


@contextmanager
def lists_of_processes() -> Iterator[list[str]]:
    """One after the other, while the block lasts."""
    listed: list[str] = []
    done = Event()

    def listing() -> None:
        while not done.is_set():
            listed.append(subprocess.check_output(["ps", "axww", "-o", "args"], text=True))

    lister = Thread(target=listing)
    lister.start()
    try:
        yield listed
    finally:
        done.set()
        lister.join()


def test_a_running_container_is_visited_followed_and_in_the_end_killed(
    house: House, apply: Any, ended: Any, kubectl: str
) -> None:
    with lists_of_processes() as listed:
        apply(pod("stubborn", container(STUBBORN, env=[{"name": "TOKEN", "value": "not-in-any-list"}])))
        house.run(kubectl, "wait", "pod/stubborn", "--for=condition=Ready", "--timeout=60s")
    assert any("fullrank-" in one for one in listed)
    assert not any("not-in-any-list" in one for one in listed)
    followed = subprocess.Popen(
        [kubectl, "logs", "--follow", "stubborn"], env=house.environ, text=True, stdout=subprocess.PIPE
    )
    visit = house.run(
        kubectl, "exec", "-i", "stubborn", "--", "sh", "-c", "hostname; cat; exit 7", stdin="in", check=False
    )
    assert (visit.returncode, visit.stdout) == (7, "stubborn\nin")
    house.run(kubectl, "annotate", "pod", "stubborn", "fullrank.dev/stop=enough")
    assert state_of(ended("stubborn"))["terminated"]["exitCode"] == 137
    assert followed.communicate(timeout=30)[0].splitlines() == ["secret", "no"]


def test_nothing_is_lost_of_what_is_written_quickly(
    house: House, apply: Any, ended: Any, kubectl: str
) -> None:
    apply(pod("loud", container("for number in range(100_000): print(number)\nprint('end', end='')")))
    ended("loud")
    said = house.run(kubectl, "logs", "loud").stdout
    assert said == "".join(f"{number}\n" for number in range(100_000)) + "end"


COUNTING = """
import itertools, pathlib, time
for number in itertools.count():
    print(number)
    if pathlib.Path("/share/stop").exists(): raise SystemExit(5)
    time.sleep(0.01)
"""


def test_a_killed_server_loses_no_line_and_no_exit_code(
    house: House, apply: Any, look: Any, ended: Any, kubectl: str, engine: str, tmp_path: Path
) -> None:
    share = tmp_path
    mount = {"name": "share", "mountPath": "/share"}
    volumes = [{"name": "share", "hostPath": {"path": str(share)}}]
    for name in ("ends-without", "ends-after"):
        mounted = {**mount, "subPath": name}
        apply(pod(name, container(COUNTING, volumeMounts=[mounted]), volumes=volumes))
        house.run(kubectl, "wait", f"pod/{name}", "--for=condition=Ready", "--timeout=60s")
    uid = look("pod", "ends-without")["metadata"]["uid"]
    began = look("pod", "ends-after")["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
    house.kill(json.loads(house.fullrank("status", "-o", "json").stdout)["pid"])
    (share / "ends-without" / "stop").touch()
    house.wait_for(lambda: not ask(engine, "ps", "--quiet", f"--filter=name={uid}-main").stdout)
    house.up()
    over = ended("ends-without")
    now = look("pod", "ends-after")["status"]["containerStatuses"][0]
    assert (now["state"], now["restartCount"]) == ({"running": {"startedAt": began}}, 0)
    (share / "ends-after" / "stop").touch()
    for name, told in (("ends-without", over), ("ends-after", ended("ends-after"))):
        assert state_of(told)["terminated"]["exitCode"] == 5
        lines = house.run(kubectl, "logs", name).stdout.splitlines()
        assert lines == [str(number) for number in range(len(lines))]
        assert len(lines) > 10


def test_a_keeper_that_is_killed_is_replaced(
    house: House, apply: Any, look: Any, ended: Any, kubectl: str
) -> None:
    script = "import time\nfor number in range(150): print(number); time.sleep(0.02)\nraise SystemExit(6)"
    apply(pod("kept", container(script)))
    house.run(kubectl, "wait", "pod/kept", "--for=condition=Ready", "--timeout=60s")
    uid = look("pod", "kept")["metadata"]["uid"]
    started = json.loads((house.home / "pods" / uid / "main" / "0" / "started.json").read_text())
    os.kill(started["parent"], signal.SIGKILL)
    assert state_of(ended("kept"))["terminated"]["exitCode"] == 6
    lines = house.run(kubectl, "logs", "kept").stdout.splitlines()
    assert lines == [str(number) for number in range(150)]


def test_an_engine_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    other = House(tmp_path / "home")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", "/nowhere")
        done = other.fullrank("up", "--runtime", "docker", check=False)
    assert done.returncode == 3
    assert "docker is not on this machine: install it" in done.stderr
