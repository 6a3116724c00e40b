"""What a Notebook is told: the spec of `tensorstack.dev/v1beta1` Notebooks."""

from fullrank.api.meta import Json
from fullrank.api.pod_rules import pod_spec_complaints
from fullrank.api.schema import array, boolean, core_schema, obj, string
from fullrank.api.tensorboards import SCHEDULER
from fullrank.errors import Cause

HOME = "/t9k/mnt"  # where the notebook's volume is, and where its user is at home

NOTEBOOK_SPEC = obj(
    {
        "type": string("jupyter", description="What runs in it: JupyterLab."),
        "runMode": string(
            "running",
            "stopped",
            description="stopped ends its processes and keeps everything else; running if left out.",
        ),
        "template": core_schema("PodTemplateSpec"),
        "scheduler": SCHEDULER,
        "ssh": obj(
            {"enabled": boolean(), "serviceType": string(), "authorized_keys": array(string())},
            description="Taken in and not served: enter the pod instead.",
        ),
    },
    required=("template",),
    description="A JupyterLab whose first container has a volume at /t9k/mnt, its user's home.",
)


def mounts_home(container: Json) -> bool:
    return any(one.get("mountPath", "").rstrip("/") == HOME for one in container.get("volumeMounts") or ())


def notebook_complaints(spec: Json, path: str) -> list[Cause]:
    """Of the pod that the template describes; its image may be left out."""
    pod: Json = spec["template"].get("spec") or {}
    first, *others = pod.get("containers") or [{}]
    whole = pod | {"containers": [{"image": "-"} | first, *others]} if first else pod
    return pod_spec_complaints(whole, f"{path}.template.spec")


def notebook_warnings(spec: Json, path: str) -> list[str]:
    warned = []
    if (spec.get("ssh") or {}).get("enabled"):
        warned.append(f"{path}.ssh: no SSH server is run; use the notebook's terminals, or kubectl exec")
    if not mounts_home(spec["template"]["spec"]["containers"][0]):
        place = f"{path}.template.spec.containers[0].volumeMounts"
        warned.append(f"{place}: no volume at {HOME}: what is written there is lost when the notebook stops")
    return warned
