"""TensorBoard: shows what trainings log, from folders in claims."""

from fullrank.api.apps import PORT_NAME, TENSORBOARD_APP
from fullrank.api.meta import Json
from fullrank.api.schema import described
from fullrank.api.tensorboards import TENSORBOARD_SPEC, Fileset, board_complaints, filesets
from fullrank.dialects.apps import POD_IP, AppKind, queue_label, ready_at


def template(kind: AppKind, board: Json, image: str, port: int) -> Json:
    spec: Json = board["spec"]
    shown = filesets(spec)
    claims = {one.claim: one.mount for one in shown}
    container: Json = {
        "name": "tensorboard",
        "image": spec.get("image") or image,
        "command": ["tensorboard"],
        "args": [
            "--host=$(POD_IP)",
            f"--port={port}",
            f"--path_prefix={kind.url(board).rstrip('/')}",
            _folders(shown),
        ],
        "env": [POD_IP],
        "ports": [{"name": PORT_NAME, "containerPort": port}],
        "readinessProbe": ready_at(kind.url(board)),
        "volumeMounts": [
            {"name": f"fileset-{index}", "mountPath": mount, "readOnly": True}
            for index, mount in enumerate(claims.values())
        ],
    }
    if spec.get("resources"):
        container["resources"] = spec["resources"]
    volumes = [
        {"name": f"fileset-{index}", "persistentVolumeClaim": {"claimName": claim}}
        for index, claim in enumerate(claims)
    ]
    pod = {"containers": [container], "volumes": volumes, "automountServiceAccountToken": False}
    return {"metadata": {"labels": queue_label(spec)}, "spec": pod}


def _folders(shown: tuple[Fileset, ...]) -> str:
    """One folder is shown as it is; of several, each has its runs under its own name."""
    if len(shown) == 1:
        return f"--logdir={_literal(shown[0].folder)}"
    return f"--logdir_spec={_literal(','.join(f'{one.title}:{one.folder}' for one in shown))}"


def _literal(text: str) -> str:
    """A dollar sign in a folder's name names no variable."""
    return text.replace("$", "$$")


TENSORBOARDS = AppKind(
    app=TENSORBOARD_APP,
    port=6006,
    spec=described(TENSORBOARD_SPEC, "shows what trainings log."),
    image="fullrank/tensorboard",
    pulled_image="tensorflow/tensorflow:2.14.0",
    switch="suspend",
    off=True,
    on=False,
    template=template,
    complaints_of=board_complaints,
    fixed=("resources",),
)
