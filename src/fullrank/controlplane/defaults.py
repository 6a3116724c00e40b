"""What the server writes into core objects that their authors left out, because clients and the agent count on it.

The kinds of training jobs get nothing of this: what was submitted is what is shown.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any

from fullrank.api.meta import Json
from fullrank.api.quantity import Quantity, amount, from_milli
from fullrank.api.scheme import CLAIM, EVENT, POD, POD_TEMPLATE, PRIORITY_CLASS, SECRET, SERVICE, Kind

POD_SPEC: Json = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
CONTAINER: Json = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "resources": {},
}
PROBE: Json = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
SERVICE_SPEC: Json = {
    "type": "ClusterIP",
    "sessionAffinity": "None",
    "internalTrafficPolicy": "Cluster",
    "ipFamilies": ["IPv4"],
    "ipFamilyPolicy": "SingleStack",
}
EVENT_FIELDS: Json = {
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
FILE_MODE = 0o644
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def pod(new: Json) -> Json:
    spec = {"enableServiceLinks": True} | pod_spec(new.get("spec") or {})
    status = {"phase": "Pending", "qosClass": quality_of(spec)} | (new.get("status") or {})
    return new | {"spec": spec, "status": status}


def pod_spec(spec: Json) -> Json:
    filled = POD_SPEC | spec
    for field in ("containers", "initContainers"):
        if field in spec:
            filled[field] = [container(each) for each in spec[field]]
    if "volumes" in spec:
        filled["volumes"] = [_volume(each) for each in spec["volumes"]]
    return filled


def container(given: Json) -> Json:
    filled = CONTAINER | {"imagePullPolicy": _pull_policy(given.get("image", ""))} | given
    filled["resources"] = _resources(filled["resources"])
    if "ports" in given:
        filled["ports"] = [{"protocol": "TCP"} | port for port in given["ports"]]
    if "env" in given:
        filled["env"] = [_variable(variable) for variable in given["env"]]
    for name in PROBES:
        if name in given:
            filled[name] = _probe(given[name])
    return filled


def _pull_policy(image: str) -> str:
    """`Always` for the tag that moves, `IfNotPresent` for those that stay."""
    _, _, last = image.rpartition("/")
    name, _, tag = last.partition(":")
    return "Always" if tag in ("", "latest") and "@" not in name else "IfNotPresent"


def _resources(given: Json) -> Json:
    """Amounts as text; what has a limit and no request requests its limit."""
    filled = given | {
        field: {name: canonical(quantity) for name, quantity in given[field].items()}
        for field in ("limits", "requests")
        if given.get(field)
    }
    if filled.get("limits"):
        filled["requests"] = filled["limits"] | (filled.get("requests") or {})
    return filled


def canonical(quantity: Quantity) -> str:
    """A quantity as text: numbers become what Kubernetes would print, text stays as it was written."""
    return quantity if isinstance(quantity, str) else from_milli(round(amount(quantity) * 1000))


def _variable(variable: Json) -> Json:
    source = variable.get("valueFrom") or {}
    if "fieldRef" not in source:
        return variable
    return variable | {"valueFrom": source | {"fieldRef": {"apiVersion": "v1"} | source["fieldRef"]}}


def _probe(probe: Json) -> Json:
    filled = PROBE | probe
    if "httpGet" in probe:
        filled["httpGet"] = {"path": "/", "scheme": "HTTP"} | probe["httpGet"]
    return filled


def _volume(volume: Json) -> Json:
    if set(volume) == {"name"}:
        return volume | {"emptyDir": {}}
    filled = dict(volume)
    for source in ("configMap", "secret", "downwardAPI", "projected"):
        if source in volume:
            filled[source] = {"defaultMode": FILE_MODE} | volume[source]
    if "hostPath" in volume:
        filled["hostPath"] = {"type": ""} | volume["hostPath"]
    return filled


def quality_of(spec: Json) -> str:
    """Guaranteed when every container's CPU and memory are limited to what they request, BestEffort when none asks."""
    containers = [*(spec.get("containers") or []), *(spec.get("initContainers") or [])]
    asked = [_compute(each.get("resources") or {}, "requests") for each in containers]
    limited = [_compute(each.get("resources") or {}, "limits") for each in containers]
    if not any(asked) and not any(limited):
        return "BestEffort"
    guaranteed = all(
        len(limits) == 2 and limits == requests for limits, requests in zip(limited, asked, strict=True)
    )
    return "Guaranteed" if guaranteed else "Burstable"


def _compute(resources: Json, field: str) -> dict[str, Any]:
    amounts = resources.get(field) or {}
    return {
        name: amount(amounts[name]) for name in ("cpu", "memory") if name in amounts and amount(amounts[name])
    }


def service(new: Json) -> Json:
    given = new.get("spec") or {}
    spec = SERVICE_SPEC | given
    if "ports" in given:
        spec["ports"] = [
            {"protocol": "TCP", "targetPort": port.get("port")} | port for port in given["ports"]
        ]
    if spec.get("clusterIP"):
        spec["clusterIPs"] = [spec["clusterIP"]]
    return new | {"spec": spec, "status": {"loadBalancer": {}} | (new.get("status") or {})}


def claim(new: Json) -> Json:
    """A claim is a folder made on first use: there is nothing to wait for, so it is bound from the start."""
    spec = {"volumeMode": "Filesystem"} | (new.get("spec") or {})
    requests = (spec.get("resources") or {}).get("requests") or {}
    capacity = {name: canonical(quantity) for name, quantity in requests.items()}
    bound = {"phase": "Bound", "accessModes": spec.get("accessModes", []), "capacity": capacity}
    status = new.get("status") or {}
    return new | {
        "spec": spec,
        "status": status if status.get("phase", "Pending") != "Pending" else status | bound,
    }


def secret(new: Json) -> Json:
    plain = {key: b64encode(value.encode()).decode() for key, value in (new.get("stringData") or {}).items()}
    filled = {"type": "Opaque"} | {name: value for name, value in new.items() if name != "stringData"}
    return filled | {"data": (new.get("data") or {}) | plain} if plain else filled


def priority_class(new: Json) -> Json:
    return {"preemptionPolicy": "PreemptLowerPriority"} | new


def pod_template(new: Json) -> Json:
    template = new.get("template") or {}
    return new | {"template": {"metadata": {}} | template | {"spec": pod_spec(template.get("spec") or {})}}


def event(new: Json) -> Json:
    """As Kubernetes' own type writes it: some clients cannot read an event without these."""
    return EVENT_FIELDS | new


DEFAULTS: Mapping[Kind, Callable[[Json], Json]] = {
    POD: pod,
    SERVICE: service,
    CLAIM: claim,
    SECRET: secret,
    POD_TEMPLATE: pod_template,
    EVENT: event,
    PRIORITY_CLASS: priority_class,
}
