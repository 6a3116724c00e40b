"""XGBoost, LightGBM too: the master keeps the tracker, and everybody knows where all the others are."""

from fullrank.api.jobs import TrainingJob
from fullrank.errors import Cause
from fullrank.frameworks.contract import (
    Framework,
    Gang,
    Member,
    Wiring,
    all_but_the_leader,
    env,
    leader_done,
    masters,
    meeting_at,
    must_be_one,
    per_gang,
)

MASTER = Member("Master", 0)
REPLICAS = "xgbReplicaSpecs"


def wire(gang: Gang, member: Member) -> Wiring:
    meeting_point = env(
        MASTER_PORT=gang.port(MASTER),
        MASTER_ADDR=gang.name(MASTER),
        WORLD_SIZE=gang.size,
        RANK=gang.rank(member),
        PYTHONUNBUFFERED=1,
    )
    if not gang.job.has("Worker"):
        return Wiring(meeting_point)
    # LightGBM listens on one port number on every worker; the tracker of XGBoost needs none of this.
    workers = env(WORKER_PORT=gang.port(Member("Worker", 0)), WORKER_ADDRS=_workers(gang))
    return Wiring((*meeting_point, *workers))


@per_gang
def _workers(gang: Gang) -> str:
    return ",".join(gang.name(member) for member in gang.of("Worker"))


def complaints(job: TrainingJob) -> list[Cause]:
    path = f"spec.{REPLICAS}"
    if job.role("Master") is None:
        return [Cause(f"{path}[Master]", "Required value: must be present", "FieldValueRequired")]
    return must_be_one(job, "Master", path)


XGBOOST = Framework(
    kind="XGBoostJob",
    plural="xgboostjobs",
    replicas_field=REPLICAS,
    container="xgboost",
    port_name="xgboostjob-port",
    port=9999,
    roles=("Master", "Worker"),
    wire=wire,
    deletion_told_as="SuccessfulDeleteJob",
    leading=(("Master",),),
    master_role=masters,
    complaints=complaints,
)


# -- TensorStack's kind --------------------------------------------------------------------------------------------


def wire_training(gang: Gang, member: Member) -> Wiring:
    return Wiring(meeting_at(gang, Member("master", 0), member))


def training_complaints(job: TrainingJob) -> list[Cause]:
    if job.has("master"):
        return []
    problem = "Required value: there must be a master"
    return [
        Cause("spec.replicaSpecs", problem, "FieldValueRequired", "add one of type: master, with 1 replica")
    ]


XGBOOST_TRAINING = Framework(
    kind="XGBoostTrainingJob",
    plural="xgboosttrainingjobs",
    replicas_field="replicaSpecs",
    container="xgboost",
    port_name="xgboost-port",
    port=9991,
    roles=("master", "worker"),
    wire=wire_training,
    leading=(("master",),),
    restart_policy="OnFailure",
    finished_at=leader_done,
    tolerates=all_but_the_leader,
    complaints=training_complaints,
    short_names=("xj",),
)
