"""How to reach a cluster: what kubectl reads, we read, and complain of it in words that help."""

import base64
import stat
import sys
from pathlib import Path

import pytest
import yaml

from fullrank.client.kubeconfig import Connection, Credentials, contexts, in_cluster, load, paths_from, write
from fullrank.errors import BadRequest, Unauthorized

pytestmark = pytest.mark.anyio


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def a_config(
    path: Path, name: str, *, current: str = "", user: object = None, cluster: object = None
) -> Path:
    document = {
        "clusters": [{"name": name, "cluster": cluster or {"server": f"https://{name}:6443/"}}],
        "users": [{"name": name, "user": user or {"token": f"{name}-token"}}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": f"{name}-space"}}
        ],
        "current-context": current,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_current_context_is_used_unless_another_is_named(tmp_path: Path) -> None:
    files = [
        a_config(tmp_path / "one", "one", current="two"),
        a_config(tmp_path / "two", "two", current="one"),
        tmp_path / "missing",
    ]
    assert load(files).server == "https://two:6443"
    chosen = load(files, "one")
    assert (chosen.server, chosen.credentials.token, chosen.namespace) == (
        "https://one:6443",
        "one-token",
        "one-space",
    )
    assert contexts(files) == (["one", "two"], "two")


def test_certificates_come_inline_or_from_files_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "client.crt").write_text("THE CERTIFICATE")
    path = a_config(
        tmp_path / "config",
        "a",
        current="a",
        cluster={
            "server": "https://a",
            "certificate-authority-data": b64("THE CA"),
            "tls-server-name": "kubernetes",
        },
        user={"client-certificate": "client.crt", "client-key-data": b64("THE KEY"), "tokenFile": "token"},
    )
    found = load([path])
    assert (found.ca, found.server_name) == ("THE CA", "kubernetes")
    assert found.credentials == Credentials(certificate="THE CERTIFICATE", key="THE KEY")
    assert found.token_file == tmp_path / "token"


BROKEN = {
    "nothing there": (None, "no kubeconfig"),
    "not YAML": ("{", "is not a readable kubeconfig"),
    "not a mapping": ("- a", "is not a kubeconfig: it holds no mapping"),
    "no current context": ("{}", "no current-context; choose one with --context"),
    "a context nobody knows": (
        "{current-context: x, contexts: [{name: y}]}",
        'there is no context "x"; known: y',
    ),
    "a cluster nobody knows": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c}}]}",
        'there is no cluster "c"; known: none',
    ),
    "a cluster without a server": (
        "{current-context: x, contexts: [{name: x, context: {cluster: c}}], clusters: [{name: c}]}",
        'cluster "c" has no server',
    ),
}


@pytest.mark.parametrize(("text", "complaint"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_kubeconfig_is_named_with_what_is_wrong(
    tmp_path: Path, text: str | None, complaint: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadRequest, match=complaint):
        load([path])


def test_what_is_written_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    wanted = Connection(
        "https://127.0.0.1:1", "CA", Credentials("token", "CERT", "KEY"), namespace="kubeflow"
    )
    write(path, wanted, "fullrank")
    assert load([path]) == wanted
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_merging_keeps_what_else_is_in_the_file(tmp_path: Path) -> None:
    path = a_config(tmp_path / "config", "work", current="work")
    for token in ("old", "new"):
        write(path, Connection("https://here", credentials=Credentials(token)), "fullrank", merge=True)
    assert contexts([path]) == (["work", "fullrank"], "fullrank")
    assert load([path]).credentials.token == "new"
    assert load([path], "work").credentials.token == "work-token"


def test_the_files_are_those_kubectl_would_read(tmp_path: Path) -> None:
    assert paths_from({"KUBECONFIG": "/a:/b::"}) == [Path("/a"), Path("/b")]
    assert paths_from({"HOME": str(tmp_path)}) == [tmp_path / ".kube" / "config"]


def test_a_pod_finds_its_own_way_in(tmp_path: Path) -> None:
    for name, text in (("token", "t"), ("ca.crt", "CA"), ("namespace", "kubeflow\n")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    found = in_cluster(environ, tmp_path)
    assert found == Connection(
        "https://[fd00::1]:443", "CA", token_file=tmp_path / "token", namespace="kubeflow"
    )
    assert in_cluster({}, tmp_path) is None


PLUGIN = """
import json, os, sys
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["kind"] == "ExecCredential" and os.environ["EXTRA"] == "yes"
print(json.dumps({"status": {"token": sys.argv[1]}}))
"""


async def test_a_plugin_hands_out_credentials(tmp_path: Path) -> None:
    script = tmp_path / "plugin.py"
    script.write_text(PLUGIN)
    user = {
        "exec": {
            "command": sys.executable,
            "args": [str(script), "fresh"],
            "env": [{"name": "EXTRA", "value": "yes"}],
        }
    }
    plugin = load([a_config(tmp_path / "config", "a", current="a", user=user)]).plugin
    assert plugin is not None
    assert (await plugin.credentials()).token == "fresh"


async def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = {"exec": {"command": "no-such-plugin", "installHint": "Install it first."}}
    plugin = load([a_config(tmp_path / "config", "a", current="a", user=user)]).plugin
    assert plugin is not None
    with pytest.raises(Unauthorized, match=r"cannot run no-such-plugin for credentials.*Install it first\."):
        await plugin.credentials()


def test_secrets_are_not_shown_by_accident() -> None:
    connection = Connection(
        "https://here", "CA", Credentials("secret-token", "CERT", "secret-key", "u", "secret-word")
    )
    assert "secret" not in repr(connection)
