"""MXJob: servers and workers find each other through the scheduler; tuning jobs read MX_CONFIG alone."""

import json

from fullrank.api.jobs import TrainingJob
from fullrank.api.schema import string
from fullrank.frameworks.contract import (
    Framework,
    Gang,
    Member,
    Refusals,
    Wiring,
    Words,
    env,
    per_gang,
    plain_words,
)

SCHEDULER = Member("Scheduler", 0)
TUNER_SERVER_KEY = "tuner-server-key"
INVALID = "MXJobSpec is not valid"


def wire(gang: Gang, member: Member) -> Wiring:
    scheduled, role = gang.job.has("Scheduler"), member.role.lower()
    worker = env(DMLC_WORKER_ID=member.index) if member.role == "Worker" else ()
    return Wiring(
        (
            *env(
                MX_CONFIG=f'{{{_cluster(gang)},"task":{{"type":"{role}","index":{member.index}}}}}',
                DMLC_PS_ROOT_PORT=gang.port(SCHEDULER) if scheduled else 0,
                DMLC_PS_ROOT_URI=gang.name(SCHEDULER) if scheduled else "",
                DMLC_NUM_SERVER=gang.count("Server"),
                DMLC_NUM_WORKER=gang.count("Worker"),
                DMLC_ROLE=role,
                DMLC_USE_KUBERNETES=1,
            ),
            *worker,
        )
    )


@per_gang
def _cluster(gang: Gang) -> str:
    roles = sorted(gang.job.roles, key=lambda role: role.name.lower())  # those without members too
    cluster = {
        role.name.lower(): [{"url": gang.name(one), "port": gang.port(one)} for one in gang.of(role.name)]
        for role in roles
    }
    labels = {
        role.name.lower(): ((role.template.get("metadata") or {}).get("annotations") or {}).get(
            TUNER_SERVER_KEY, ""
        )
        for role in roles
    }
    return json.dumps({"cluster": cluster, "labels": labels}, separators=(",", ":"))[1:-1]


def serves(_gang: Gang, member: Member) -> bool:
    return member.role == "Server"


def words(job: TrainingJob) -> Words:
    plain, name = plain_words(job), f"mxjob {job.name}"
    return Words(
        running=plain.running,
        succeeded=plain.succeeded,
        failed=f"{name} is failed because {{count}} {{role}} replica(s) failed.",
        restarting=f"{name} is restarting because {{count}} {{role}} replica(s) failed.",
    )


def warnings(_job: TrainingJob) -> list[str]:
    return ["MXJob is deprecated: Kubeflow dropped it in release v1.9.0. Here it keeps working."]


MXNET = Framework(
    kind="MXJob",
    plural="mxjobs",
    replicas_field="mxReplicaSpecs",
    container="mxnet",
    port_name="mxjob-port",
    port=9091,
    roles=("Scheduler", "Server", "Worker", "TunerTracker", "TunerServer", "Tuner"),
    wire=wire,
    leading=(("Scheduler",),),
    master_role=serves,
    words=words,
    options={"jobMode": string(description="MXTrain or MXTune.")},
    required_options=("jobMode",),
    refusals=Refusals(
        name="MXJob name is invalid: [{problem}]",
        roles=INVALID,
        containers=INVALID,
        image=INVALID,
        main=INVALID,
    ),
    warnings=warnings,
)
