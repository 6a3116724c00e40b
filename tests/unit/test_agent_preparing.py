"""What a container gets: environment, command, volumes, names; and its logs read back."""

import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fullrank.agent.environment import Surroundings, expand, variables
from fullrank.agent.launching import launch_of
from fullrank.agent.logs import PodLogReader
from fullrank.agent.network import Network, port_is_free, render, resolve
from fullrank.agent.places import Places
from fullrank.agent.plain import without_namespaces
from fullrank.agent.runtime import Attempt, Launch, Mount
from fullrank.agent.sources import Source, Sources, Unprepared
from fullrank.agent.volumes import mounts_of, prepare_volumes, release_volumes
from fullrank.api.meta import Json
from fullrank.api.scheme import CLAIM, CONFIG_MAP, SECRET
from fullrank.errors import BadRequest
from fullrank.images.catalogue import Image

AROUND = Surroundings("here", "127.0.0.1", "127.64.0.1", {"cpu": "8"})
SOURCES: Sources = {
    Source(CONFIG_MAP, "settings"): {"a": b"1", "b.txt": b"two"},
    Source(SECRET, "keys"): {"token": b"s3cret"},
    Source(CONFIG_MAP, "none"): None,
    Source(CLAIM, "disk"): {},
    Source(CLAIM, "nowhere"): None,
}


def a_pod(volumes: list[Json] | None = None, **container: Any) -> Json:
    return {
        "metadata": {
            "name": "demo",
            "namespace": "default",
            "uid": "uid-1",
            "labels": {"app": "x", "b": 'say "y"'},
        },
        "spec": {"containers": [{"name": "main", "image": "i", **container}], "volumes": volumes or []},
    }


EXPANSIONS = {
    "plain": "plain",
    "$(A)/$(B)": "1/two",
    "$(UNKNOWN)": "$(UNKNOWN)",
    "$$(A)": "$(A)",
    "$A $$ 100%": "$A $ 100%",
    "$(A": "$(A",
}


@pytest.mark.parametrize("text", EXPANSIONS)
def test_references_are_expanded(text: str) -> None:
    assert expand(text, {"A": "1", "B": "two"}) == EXPANSIONS[text]


def test_variables_come_from_everywhere_in_order() -> None:
    env = [
        {"name": "PLAIN", "value": "x$(a)"},
        {"name": "LATER", "value": "$(PLAIN)-$(AFTER)"},
        {"name": "AFTER", "value": "z"},
        {"name": "FIELD", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CORES", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "BYTES", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
        {"name": "MAYBE", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "k", "optional": True}}},
    ]
    bulk = [{"configMapRef": {"name": "settings"}}, {"prefix": "S_", "secretRef": {"name": "keys"}}]
    pod = a_pod(env=env, envFrom=bulk, resources={"limits": {"memory": "1Gi"}})
    assert variables(pod, pod["spec"]["containers"][0], SOURCES, AROUND) == {
        "a": "1", "b.txt": "two", "S_token": "s3cret", "PLAIN": "x1", "LATER": "x1-$(AFTER)", "AFTER": "z",
        "FIELD": "127.64.0.1", "LABEL": "x", "CORES": "8", "BYTES": "1024", "KEY": "s3cret",
    }  # fmt: skip


MISSING: dict[str, tuple[Json, str]] = {
    "an object": ({"configMapKeyRef": {"name": "none", "key": "k"}}, 'configmap "none" not found'),
    "a key": (
        {"secretKeyRef": {"name": "keys", "key": "k"}},
        "couldn't find key k in Secret default/keys",
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_is_named_as_kubelets_do(case: str) -> None:
    origin, message = MISSING[case]
    pod = a_pod(env=[{"name": "A", "valueFrom": origin}])
    with pytest.raises(Unprepared, match=f"^{message}$"):
        variables(pod, pod["spec"]["containers"][0], SOURCES, AROUND)


IMAGE = Image("i", {"PATH": "/env/bin"}, entrypoint=("python",), command=("train.py",), working_dir="/opt")
COMMANDS: dict[str, tuple[Json, tuple[str, ...]]] = {
    "the image's own": ({}, ("python", "train.py")),
    "other arguments": ({"args": ["$(N)"]}, ("python", "4")),
    "another command": ({"command": ["sh"]}, ("sh",)),
    "both": ({"command": ["sh"], "args": ["-c", "x"]}, ("sh", "-c", "x")),
}


@pytest.mark.parametrize("case", COMMANDS)
def test_the_manifest_overrides_the_image(case: str, tmp_path: Path) -> None:
    container, argv = COMMANDS[case]
    pod = a_pod(**container)
    launch = launch_of(
        pod,
        pod["spec"]["containers"][0],
        0,
        image=IMAGE,
        variables={"N": "4"},
        mounts=(),
        places=Places(tmp_path),
        addresses={},
    )
    assert launch.argv == argv
    assert (launch.env["HOSTNAME"], launch.env["PATH"], launch.working_dir) == ("demo", "/env/bin", "/opt")


def test_volumes_become_folders(tmp_path: Path) -> None:
    volumes: list[Json] = [
        {"name": "empty", "emptyDir": {}},
        {"name": "memory", "emptyDir": {"medium": "Memory"}},
        {"name": "host", "hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
        {
            "name": "config",
            "configMap": {"name": "settings", "items": [{"key": "a", "path": "in/a", "mode": 0o400}]},
        },
        {"name": "secret", "secret": {"secretName": "keys", "defaultMode": 0o440}},
        {
            "name": "down",
            "downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]},
        },
        {
            "name": "all",
            "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]},
        },
        {"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}},
        {"name": "optional", "configMap": {"name": "none", "optional": True}},
    ]
    found = prepare_volumes(a_pod(volumes), SOURCES, AROUND, Places(tmp_path))
    assert all(path.is_dir() for path in found.values())
    assert (found["config"] / "in/a").read_text() == "1"
    assert (found["config"] / "in/a").stat().st_mode & 0o777 == 0o400
    assert (found["secret"] / "token").stat().st_mode & 0o777 == 0o440
    assert (found["down"] / "labels").read_text() == 'app="x"\nb="say \\"y\\""'
    shown = sorted(path.name for path in found["all"].iterdir() if not path.name.startswith(".."))
    assert shown == ["a", "b.txt", "token"]
    assert found["disk"] == tmp_path / "volumes/default/disk"
    assert prepare_volumes(a_pod(volumes), SOURCES, AROUND, Places(tmp_path)) == found
    release_volumes("uid-1", Places(tmp_path))
    assert not found["memory"].exists()
    assert not found["secret"].exists()
    assert found["disk"].exists()


UNMOUNTABLE: dict[str, tuple[Json, str]] = {
    "a config map that is not there": (
        {"configMap": {"name": "none"}},
        'volume "v" : configmap "none" not found',
    ),
    "a key that is not there": (
        {"secret": {"secretName": "keys", "items": [{"key": "k", "path": "k"}]}},
        "references non-existent secret key: k",
    ),
    "a claim that is not there": (
        {"persistentVolumeClaim": {"claimName": "nowhere"}},
        'persistentvolumeclaim "nowhere" not found',
    ),
    "a host path of another sort": (
        {"hostPath": {"path": "/etc/passwd", "type": "Directory"}},
        "/etc/passwd is not a directory",
    ),
    "a type we do not have": ({"nfs": {"server": "x"}}, "no volumes of type nfs"),
    "a path that leads out": (
        {"configMap": {"name": "settings", "items": [{"key": "a", "path": "../a"}]}},
        "leads out of the volume",
    ),
}


@pytest.mark.parametrize("case", UNMOUNTABLE)
def test_a_volume_that_cannot_be_had_says_why(case: str, tmp_path: Path) -> None:
    volume, message = UNMOUNTABLE[case]
    with pytest.raises(Unprepared, match=message) as failure:
        prepare_volumes(a_pod([{"name": "v", **volume}]), SOURCES, AROUND, Places(tmp_path))
    assert failure.value.reason == "FailedMount"


@pytest.mark.parametrize("part", ["../x", "/etc", "a/../../b", "link/x", "link"])
def test_a_sub_path_never_leaves_its_volume(part: str, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    (volume / "link").symlink_to(tmp_path)
    container = {"name": "main", "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": part}]}
    with pytest.raises(Unprepared, match="leads out of the volume"):
        mounts_of(container, {"v": volume}, {}, frozenset())


def test_a_sub_path_is_made_and_mounted(tmp_path: Path) -> None:
    mount = {"name": "v", "mountPath": "/m/", "subPathExpr": "$(POD)/logs"}
    mounts = mounts_of(
        {"name": "main", "volumeMounts": [mount]}, {"v": tmp_path}, {"POD": "p"}, frozenset(("v",))
    )
    assert mounts == (Mount(tmp_path / "p/logs", "/m", read_only=True),)
    assert (tmp_path / "p/logs").is_dir()


def a_seat(name: str, uid: str, **spec: Any) -> Json:
    labels = {"job": "mnist", "index": name[-1]}
    return {"metadata": {"name": name, "namespace": "default", "uid": uid, "labels": labels}, "spec": spec}


def a_service(name: str, **selector: str) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"s-{name}"},
        "spec": {"selector": selector},
    }


def test_names_are_those_of_a_cluster() -> None:
    pods = [a_seat("m-0", "u0"), a_seat("m-1", "u1", hostname="one", subdomain="sub")]
    services = [
        a_service("front", index="0"),
        a_service("all", job="mnist"),
        a_service("nobody", job="other"),
    ]
    found = resolve("default", pods, services, lambda pod: f"127.64.0.{pod['metadata']['uid'][-1]}")
    assert found["front.default.svc.cluster.local"] == ["127.64.0.0"]
    assert found["all"] == ["127.64.0.0", "127.64.0.1"]
    assert found["one.sub.default.svc"] == found["m-1"] == found["one"] == ["127.64.0.1"]
    assert "nobody" not in found


def test_a_hosts_file_lists_names_by_address() -> None:
    text = render({"a": ["127.64.0.1"], "b.c": ["127.64.0.1", "127.64.0.2"]}, ["10.0.0.1 far"])
    assert text.splitlines()[3:] == ["127.64.0.1 a b.c", "127.64.0.2 b.c", "10.0.0.1 far"]


def test_addresses_are_kept_and_not_reused_at_once(tmp_path: Path) -> None:
    network = Network(Places(tmp_path), many=True)
    known = {**a_seat("m-0", "u0"), "status": {"podIP": "127.64.0.2"}}
    seats = [network.seat(pod) for pod in (known, a_seat("m-1", "u1"), a_seat("m-2", "u2"))]
    assert seats == ["127.64.0.2", "127.64.0.1", "127.64.0.3"]
    assert network.seat(known) == "127.64.0.2"
    network.unseat(known)
    assert network.seat(a_seat("m-3", "u3")) == "127.64.0.4"


def test_each_home_begins_with_another_address(tmp_path: Path) -> None:
    first, second = (Network(Places(tmp_path), many=True, start=start) for start in (0, 4_000_000_000))
    assert first.seat(a_seat("m-0", "u0")) == "127.64.0.1"
    assert second.seat(a_seat("m-0", "u0")) not in (first.seat(a_seat(f"m-{n}", f"u{n}")) for n in range(100))


def test_hosts_files_follow(tmp_path: Path) -> None:
    network = Network(Places(tmp_path), many=True)
    network.seat(a_seat("m-0", "u0"))
    network.settle()
    hosts = tmp_path / "network/default/hosts"
    assert "127.64.0.1 m-0\n" in hosts.read_text()
    network.learn_service(a_service("front", job="mnist"))
    network.settle()
    assert "127.64.0.1 front m-0 front.default " in hosts.read_text()
    before = hosts.stat().st_ino
    network.settle()
    assert hosts.stat().st_ino == before


def test_a_port_in_use_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not port_is_free(port)
    assert port_is_free(port)


def test_without_namespaces_paths_and_names_are_written_out() -> None:
    launch = Launch(
        Attempt("u", "main", 0),
        argv=("python", "/data/train.py", "--out=/data/out", "/database", "x/data"),
        env={
            "LIST": "/data:/code/x",
            "URL": "tcp://m-0:23456",
            "FQDN": "m-0.default.svc",
            "M": "m-01",
            "S": "a-m-0",
            "HOSTNAME": "m-0",
        },
        log=Path("/log"),
        hostname="m-0",
        working_dir="/code",
        mounts=(Mount(Path("/h/d"), "/data"), Mount(Path("/h/c"), "/code")),
        addresses={"m-0": "127.64.0.1", "m-0.default.svc": "127.64.0.1"},
    )
    plain = without_namespaces(launch)
    assert plain.argv == ("python", "/h/d/train.py", "--out=/h/d/out", "/database", "x/data")
    assert plain.env == {
        "LIST": "/h/d:/h/c/x", "URL": "tcp://127.64.0.1:23456", "FQDN": "127.64.0.1", "M": "m-01", "S": "a-m-0",
        "HOSTNAME": "m-0",
    }  # fmt: skip
    assert plain.working_dir == "/h/c"


LOG = """\
2026-01-01T12:00:00.000000001Z stdout F one
2026-01-01T12:00:01.000000001Z stdout P tw
2026-01-01T12:00:01.000000002Z stdout F o
2026-01-01T12:00:02.000000001Z stderr F three
"""
READINGS: dict[str, tuple[Json, str]] = {
    "everything": ({}, "one\ntwo\nthree\n"),
    "the last line": ({"tail_lines": 1}, "three\n"),
    "no line": ({"tail_lines": 0}, ""),
    "more lines than there are": ({"tail_lines": 99}, "one\ntwo\nthree\n"),
    "since a moment": ({"since": datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)}, "two\nthree\n"),
    "with times": (
        {"timestamps": True, "tail_lines": 3},
        "2026-01-01T12:00:01.000000001Z two\n2026-01-01T12:00:02.000000001Z three\n",
    ),
    "so many bytes": ({"limit_bytes": 5}, "one\nt"),
    "the attempt before": ({"previous": True}, "before\n"),
    "what is followed but over": ({"follow": True}, "one\ntwo\nthree\n"),
}


def a_logged_pod(tmp_path: Path, state: str = "running") -> Json:
    status = {"name": "main", "restartCount": 1, "state": {state: {}}, "lastState": {}}
    pod = {**a_pod(), "status": {"containerStatuses": [status]}}
    for number, text in enumerate(("2026-01-01T11:00:00.000000001Z stdout F before\n", LOG)):
        path = Places(tmp_path).log(pod, "main", number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return pod


@pytest.mark.anyio
@pytest.mark.parametrize("case", READINGS)
async def test_logs_are_read_as_asked(case: str, tmp_path: Path) -> None:
    options, text = READINGS[case]
    pieces = PodLogReader(tmp_path).read(a_logged_pod(tmp_path), "main", **options)
    assert b"".join([piece async for piece in pieces]).decode() == text


@pytest.mark.anyio
async def test_the_tail_of_a_long_log_is_found(tmp_path: Path) -> None:
    pod = a_logged_pod(tmp_path)
    lines = [f"2026-01-01T12:00:00.000000001Z stdout F {number:050}" for number in range(5000)]
    Places(tmp_path).log(pod, "main", 1).write_text("\n".join([*lines, ""]))
    pieces = PodLogReader(tmp_path).read(pod, "main", tail_lines=3000)
    text = b"".join([piece async for piece in pieces]).decode()
    assert [int(line) for line in text.splitlines()] == list(range(2000, 5000))


@pytest.mark.anyio
async def test_who_has_not_begun_has_no_log(tmp_path: Path) -> None:
    with pytest.raises(
        BadRequest, match='container "main" in pod "demo" is waiting to start: ContainerCreating'
    ):
        await anext(PodLogReader(tmp_path).read(a_logged_pod(tmp_path, "waiting"), "main"))


def test_a_pod_with_names_of_its_own_has_a_file_of_its_own(tmp_path: Path) -> None:
    network = Network(Places(tmp_path), many=True)
    plain, special, on_host = a_pod(), a_pod(), a_pod()
    plain["metadata"] |= {"uid": "u1", "name": "plain"}
    special["metadata"] |= {"uid": "u2", "name": "special"}
    on_host["metadata"] |= {"uid": "u3", "name": "on-host"}
    special["spec"]["hostAliases"] = [{"ip": "10.1.2.3", "hostnames": ["db", "db.local"]}]
    on_host["spec"]["hostNetwork"] = True
    network.seat(plain)
    network.seat(special)
    assert network.seat(on_host, host="127.0.0.1") == "127.0.0.1"
    network.settle()
    shared, own, host = ((network.folder(pod) / "hosts").read_text() for pod in (plain, special, on_host))
    assert shared.startswith("# Kubernetes-managed hosts file.\n")
    assert own == shared + "\n# Entries added by HostAliases.\n10.1.2.3\tdb\tdb.local\n"
    assert host.startswith("# Kubernetes-managed hosts file (host network).\n")
    assert "127.0.0.1 on-host" in shared
