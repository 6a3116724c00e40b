"""Notebook: a JupyterLab at home in a volume, behind the Job Center's door, which alone knows its token."""

from copy import deepcopy
from typing import Any

from fullrank.api.apps import NOTEBOOK_APP, PORT_NAME, TOKEN_KEY
from fullrank.api.meta import Json
from fullrank.api.notebooks import (
    HOME,
    NOTEBOOK_SPEC,
    mounts_home,
    notebook_complaints,
    notebook_warnings,
)
from fullrank.dialects.apps import POD_IP, AppKind, queue_label, ready_at

USER = 1000
# With a login shell, as Jupyter would start it, the machine's profile hides the environment's python.
SHELL = "--ServerApp.terminado_settings={'shell_command': ['bash']}"


def template(kind: AppKind, notebook: Json, image: str, port: int) -> Json:
    """What the template leaves open, filled in: user, home, command, and a way in."""
    spec: Json = notebook["spec"]
    made: Json = deepcopy(spec["template"])
    metadata, pod = made.get("metadata") or {}, made["spec"]
    first: Json = pod["containers"][0]
    first["image"] = first.get("image") or image
    number = _port(first, port)
    if not (first.get("command") or first.get("args")):
        first["command"], first["args"] = ["jupyter", "lab"], _arguments(kind.url(notebook), number)
    first["workingDir"] = first.get("workingDir") or HOME
    first["env"] = _variables(kind, notebook, first.get("env") or [])
    first["readinessProbe"] = first.get("readinessProbe") or ready_at(f"{kind.url(notebook)}api")
    _provide_home(pod, first)
    identity = {"runAsUser": USER, "runAsGroup": USER, "fsGroup": USER}
    pod["securityContext"] = identity | (pod.get("securityContext") or {})
    labels = (metadata.get("labels") or {}) | queue_label(spec)
    return {"metadata": metadata | {"labels": labels}, "spec": pod}


def _port(container: Json, given: int) -> int:
    """The one that the template calls so, else the given one, which is then declared."""
    ports: list[Json] = container.setdefault("ports", [])
    named: int | None = next((one["containerPort"] for one in ports if one.get("name") == PORT_NAME), None)
    if named is None:
        container["ports"] = [*ports, {"name": PORT_NAME, "containerPort": given}]
    return named or given


def _arguments(url: str, port: int) -> list[str]:
    return [
        "--no-browser",
        "--allow-root",  # where the template asks for that user
        "--ip=$(POD_IP)",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.base_url={url}",
        "--ServerApp.allow_remote_access=True",  # people come by the Job Center's name, not by the pod's
        "--LabApp.news_url=None",
        SHELL,
    ]


def _variables(kind: AppKind, notebook: Json, written: list[Json]) -> list[Json]:
    """The user's own count, but for the two that the way in depends on."""
    secret = {"name": kind.service(notebook), "key": TOKEN_KEY}
    ours: list[Json] = [POD_IP, {"name": "JUPYTER_TOKEN", "valueFrom": {"secretKeyRef": secret}}]
    defaults: list[Json] = [{"name": "HOME", "value": HOME}]
    taken = _names(written) | _names(ours)
    kept = [one for one in written if one.get("name") not in _names(ours)]
    return [*(one for one in defaults if one["name"] not in taken), *ours, *kept]


def _names(variables: list[Json]) -> set[Any]:
    return {one.get("name") for one in variables}


def _provide_home(pod: Json, container: Json) -> None:
    """A home that lasts as long as the pod, where the template gives none."""
    if not mounts_home(container):
        pod["volumes"] = [*(pod.get("volumes") or []), {"name": "t9k-home", "emptyDir": {}}]
        mount = {"name": "t9k-home", "mountPath": HOME}
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]


NOTEBOOKS = AppKind(
    app=NOTEBOOK_APP,
    port=8888,
    spec=NOTEBOOK_SPEC,
    image="fullrank/notebook",
    pulled_image="quay.io/jupyter/tensorflow-notebook",
    switch="runMode",
    off="stopped",
    on="running",
    template=template,
    complaints_of=notebook_complaints,
    warnings_of=notebook_warnings,
)
