"""How to reach a cluster and prove who one is: kubeconfig files, read, merged and written, and a pod's own account."""

import base64
import binascii
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import msgspec
import yaml

from fullrank.api.meta import Json
from fullrank.errors import BadRequest, Unauthorized

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What proves who one is; any of it may be missing."""

    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Plugin:
    """A program that hands out credentials, as cloud providers' kubeconfigs name one."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    api_version: str
    hint: str = ""

    async def credentials(self) -> Credentials:
        told = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        env = {**os.environ, **self.env, "KUBERNETES_EXEC_INFO": msgspec.json.encode(told).decode()}
        try:
            finished = await anyio.run_process(self.argv, env=env, check=False)
        except OSError as error:
            raise Unauthorized(
                f"cannot run {self.argv[0]} for credentials: {error}. {self.hint}".strip()
            ) from error
        if finished.returncode:
            complaint = finished.stderr.decode(errors="replace").strip()
            raise Unauthorized(
                f"{self.argv[0]} gave no credentials (exit {finished.returncode}): {complaint}"
            )
        try:
            status = msgspec.json.decode(finished.stdout, type=Json).get("status") or {}
        except msgspec.DecodeError as error:
            raise Unauthorized(f"{self.argv[0]} answered what is not an ExecCredential: {error}") from error
        certificate, key = status.get("clientCertificateData", ""), status.get("clientKeyData", "")
        return Credentials(status.get("token", ""), certificate, key)


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and one way in. Certificates and keys are PEM text."""

    server: str
    ca: str = field(default="", repr=False)
    credentials: Credentials = Credentials()
    token_file: Path | None = None  # read anew for each request: such tokens are rotated
    plugin: Plugin | None = None
    insecure: bool = False
    server_name: str = ""
    namespace: str = "default"


def paths_from(environ: Mapping[str, str]) -> list[Path]:
    """The files kubectl would read: those in KUBECONFIG, else ~/.kube/config."""
    listed = [Path(part) for part in environ.get("KUBECONFIG", "").split(os.pathsep) if part]
    return listed or [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def in_cluster(environ: Mapping[str, str], account: Path = ACCOUNT) -> Connection | None:
    """The way in that every pod of a cluster is given; None outside of one."""
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        return None
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace = (account / "namespace").read_text().strip() if (account / "namespace").exists() else "default"
    return Connection(
        server, (account / "ca.crt").read_text(), token_file=account / "token", namespace=namespace
    )


def load(paths: Sequence[Path], context: str = "") -> Connection:
    """The connection that a context (else the current one) stands for, over all files; the first file wins."""
    documents = [(path, _read(path)) for path in paths if path.exists()]
    where = ", ".join(str(path) for path in paths)
    if not documents:
        raise BadRequest(f"no kubeconfig: {where} does not exist")
    name = context or next((each for _, doc in documents if (each := doc.get("current-context"))), "")
    if not name:
        raise BadRequest(f"{where}: no current-context; choose one with --context")
    _, chosen = _entry(documents, "contexts", "context", name)
    folder, cluster = _entry(documents, "clusters", "cluster", str(chosen.get("cluster", "")))
    user_folder, user = (
        _entry(documents, "users", "user", chosen["user"]) if chosen.get("user") else (folder, Json())
    )
    if not isinstance(cluster.get("server"), str):
        raise BadRequest(f'{where}: cluster "{chosen.get("cluster")}" has no server')
    return Connection(
        server=cluster["server"].rstrip("/"),
        ca=_pem(cluster, "certificate-authority", folder),
        credentials=_credentials(user, user_folder),
        token_file=user_folder / user["tokenFile"] if user.get("tokenFile") else None,
        plugin=_plugin(user["exec"], user_folder) if user.get("exec") else None,
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        server_name=cluster.get("tls-server-name") or "",
        namespace=chosen.get("namespace") or "default",
    )


def contexts(paths: Sequence[Path]) -> tuple[list[str], str]:
    """The names of all contexts, and the current one."""
    documents = [_read(path) for path in paths if path.exists()]
    names = [str(each.get("name")) for doc in documents for each in _listed(doc, "contexts")]
    current = next((each for doc in documents if (each := doc.get("current-context"))), "")
    return list(dict.fromkeys(names)), current


def write(path: Path, connection: Connection, name: str, *, merge: bool = False) -> None:
    """Writes a kubeconfig that only its owner may read; with `merge`, keeps what else is in the file."""
    document = _read(path) if merge and path.exists() else {}
    text = yaml.safe_dump(_with_context(document, connection, name), sort_keys=False)
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)


def _with_context(document: Json, connection: Connection, name: str) -> Json:
    proof = connection.credentials
    cluster: Json = {"server": connection.server}
    cluster |= {"certificate-authority-data": _encoded(connection.ca)} if connection.ca else {}
    cluster |= {"insecure-skip-tls-verify": True} if connection.insecure else {}
    user: Json = {"token": proof.token} if proof.token else {}
    if proof.certificate:
        user |= {
            "client-certificate-data": _encoded(proof.certificate),
            "client-key-data": _encoded(proof.key),
        }
    context = {"cluster": name, "user": name, "namespace": connection.namespace}
    written: Json = {"apiVersion": "v1", "kind": "Config", **document}
    for part, word, entry in (
        ("clusters", "cluster", cluster),
        ("users", "user", user),
        ("contexts", "context", context),
    ):
        others = [each for each in _listed(document, part) if each.get("name") != name]
        written[part] = [*others, {"name": name, word: entry}]
    return {**written, "current-context": name}


def _read(path: Path) -> Json:
    try:
        document = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadRequest(f"{path} is not a readable kubeconfig: {error}") from error
    if not isinstance(document, dict):
        raise BadRequest(f"{path} is not a kubeconfig: it holds no mapping")
    return document


def _listed(document: Json, part: str) -> list[Json]:
    return [each for each in document.get(part) or [] if isinstance(each, dict)]


def _entry(documents: list[tuple[Path, Json]], part: str, word: str, name: str) -> tuple[Path, Json]:
    """A named entry, and the folder that relative paths in it start from."""
    known: list[str] = []
    for path, document in documents:
        for each in _listed(document, part):
            if each.get("name") == name:
                return path.parent, each.get(word) or {}
            known.append(str(each.get("name")))
    where = ", ".join(str(path) for path, _ in documents)
    raise BadRequest(f'{where}: there is no {word} "{name}"; known: {", ".join(known) or "none"}')


def _pem(entry: Json, field_name: str, folder: Path) -> str:
    try:
        if inline := entry.get(f"{field_name}-data"):
            return base64.b64decode(str(inline)).decode()
        if file := entry.get(field_name):
            return (folder / str(file)).read_text()
    except (OSError, binascii.Error, UnicodeDecodeError) as error:
        raise BadRequest(f"the kubeconfig's {field_name} cannot be read: {error}") from error
    return ""


def _encoded(pem: str) -> str:
    return base64.b64encode(pem.encode()).decode()


def _credentials(user: Json, folder: Path) -> Credentials:
    return Credentials(
        token=user.get("token") or "",
        certificate=_pem(user, "client-certificate", folder),
        key=_pem(user, "client-key", folder),
        username=user.get("username") or "",
        password=user.get("password") or "",
    )


def _plugin(entry: Json, folder: Path) -> Plugin:
    command: Any = entry.get("command") or ""
    if not isinstance(command, str) or not command:
        raise BadRequest("the kubeconfig's exec plugin has no command")
    program = str(folder / command) if "/" in command else command
    return Plugin(
        argv=(program, *(str(each) for each in entry.get("args") or [])),
        env={str(each["name"]): str(each["value"]) for each in entry.get("env") or []},
        api_version=entry.get("apiVersion") or "client.authentication.k8s.io/v1",
        hint=entry.get("installHint") or "",
    )
