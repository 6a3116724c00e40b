"""What batch.tensorstack.dev/v1beta1 jobs look like."""

from fullrank.api.schema import (
    Schema,
    array,
    boolean,
    core_schema,
    integer,
    obj,
    string,
    timestamp,
    whole_object,
)
from fullrank.api.tensorboards import SCHEDULER
from fullrank.dialects.checks import RESTART_POLICIES
from fullrank.dialects.memory import memory_schema
from fullrank.frameworks.contract import Framework

CLEAN_UP_POLICIES = ("None", "Unfinished", "All")
_CLEAN_UP = string(*CLEAN_UP_POLICIES, description="Which pods go when the job has ended; None if left out.")


def schema(framework: Framework) -> Schema:
    limits = {"cleanUpPolicy": _CLEAN_UP} if framework.limits_by_role else {"runPolicy": _run_policy()}
    spec = {
        "replicaSpecs": array(_replica(framework), description="The roles of the job and their members."),
        "runMode": _run_mode(),
        "scheduler": SCHEDULER,
        **limits,
        **framework.options,
    }
    return whole_object(
        obj(spec, required=("replicaSpecs",)),
        _status(),
        description=f"{framework.kind}: a distributed job.",
    )


def _replica(framework: Framework) -> Schema:
    policies = tuple(RESTART_POLICIES)
    restart = string(*policies, description="When a failed member is replaced; OnFailure if left out.")
    if framework.limits_by_role:
        limit = integer(minimum=0, description="How often members of this role are replaced; 0 if left out.")
        restart = obj({"policy": string("Always", "OnFailure", "Never"), "limit": limit})
    weight = {"scalingWeight": integer(minimum=0, description="The role's share when the job is scaled.")}
    return obj(
        {
            "type": string(description="The role."),
            "replicas": integer(description="How many members this role has; 1 if left out."),
            "restartPolicy": restart,
            "template": core_schema("PodTemplateSpec"),
        }
        | (weight if "elastic" in framework.options else {}),
        required=("type",),
    )


def _run_policy() -> Schema:
    return obj(
        {
            "activeDeadlineSeconds": integer(
                format="int64", minimum=1, description="The job fails when it is active for longer."
            ),
            "backoffLimit": integer(minimum=0, description="How often members are replaced, all together."),
            "cleanUpPolicy": _CLEAN_UP,
            "ttlSecondsAfterFinished": integer(
                minimum=0, description="The job itself goes this long after its end."
            ),
        }
    )


def _run_mode() -> Schema:
    switch = {
        "enabled": boolean(),
        "enable": boolean(description="Another spelling of enabled, found in manifests."),
    }
    common = {"type": string(), "skipInitContainer": boolean(), "command": array(string())}
    return obj(
        {
            "debug": obj(
                switch | {"replicaSpecs": array(obj(common, required=("type",)))},
                description="Members are started with everything they need, but run `sleep inf`, or what is said here.",
            ),
            "pause": obj(
                switch | {"resumeSpecs": array(obj(common | {"args": array(string())}, required=("type",)))},
                description="Members are stopped; afterwards they run what is said here, or what they ran before.",
            ),
        }
    )


def _status() -> Schema:
    condition = {name: string() for name in ("type", "status", "reason", "message")}
    container = {"name": string(), "state": string(), "exitCode": integer()}
    replica = {"name": string(), "uid": string(), "phase": string(), "containers": array(obj(container))}
    task = {"type": string(), "restartCount": integer(), "replicas": array(obj(replica))}
    phases = ("creating", "pending", "running", "succeeded", "failed", "unknown", "deleted")
    owner = {name: string() for name in ("apiVersion", "kind", "name", "namespace", "uid")}
    board = {name: string() for name in ("action", "note", "reason", "type")}
    return obj(
        {
            "phase": string(),
            "conditions": array(
                obj(condition | {"lastTransitionTime": timestamp()}, required=("type", "status"))
            ),
            "tasks": array(obj(task)),
            "aggregate": obj({name: integer() for name in phases}),
            "backoffCount": integer(description="How often members were replaced so far."),
            "startTime": timestamp(),
            "completionTime": timestamp(),
            "tensorboard": obj(board | {"ready": boolean(), "dependent": obj(owner)}),
            **memory_schema(),
        }
    )
