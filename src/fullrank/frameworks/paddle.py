"""PaddleJob: nodes meet at the master's port, or at worker 0's, and agree on their ranks there."""

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.schema import anything, array, integer, obj
from fullrank.errors import Cause
from fullrank.frameworks.contract import (
    Framework,
    Gang,
    Member,
    Refusals,
    Wiring,
    elastic_needs_workers,
    env,
    masters,
    words_by_master,
)

REPLICAS = "paddleReplicaSpecs"
OWN_ADDRESS: Json = {"name": "POD_IP_DUMMY", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
TASK = {"Master": "PADDLE_SERVER_NUM", "Worker": "PADDLE_TRAINER_NUM"}


def wire(gang: Gang, member: Member) -> Wiring:
    task = env(**{TASK[member.role]: 1}) if gang.job.has("Master") else ()
    return Wiring(
        (
            *env(PYTHONUNBUFFERED=1, PADDLE_JOB_ID=gang.job.name, PADDLE_NNODES=gang.size),
            *_meeting_point(gang, member),
            *task,
        )
    )


def _meeting_point(gang: Gang, member: Member) -> tuple[Json, ...]:
    first = gang.leader or member
    if member == first:
        # A launcher opens the meeting point only if it finds its own address there; a name would not do.
        return (OWN_ADDRESS, *env(PADDLE_MASTER=f"$(POD_IP_DUMMY):{gang.port(first)}"))
    return env(PADDLE_MASTER=f"{gang.name(first)}:{gang.port(first)}")


def complaints(job: TrainingJob) -> list[Cause]:
    return elastic_needs_workers(job, f"spec.{REPLICAS}")


_ELASTIC = obj(
    {
        "minReplicas": integer(),
        "maxReplicas": integer(),
        "maxRestarts": integer(),
        "metrics": array(anything()),
    },
    description="Accepted for manifests that have it; it changes nothing.",
)

PADDLE = Framework(
    kind="PaddleJob",
    plural="paddlejobs",
    replicas_field=REPLICAS,
    container="paddle",
    port_name="master",
    port=36543,
    roles=("Master", "Worker"),
    wire=wire,
    leading=(("Master",), ("Worker",)),
    restart_policy="OnFailure",
    scalable=True,
    selector_in_status=True,
    master_role=masters,
    words=words_by_master,
    options={"elasticPolicy": _ELASTIC},
    refusals=Refusals(main='Required value: must have at least one container with name "{name}"'),
    complaints=complaints,
)
