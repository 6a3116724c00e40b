"""XGBoostJob, LightGBM's too: the master keeps the tracker, and everybody knows where all the others are."""

from fullrank.api.jobs import TrainingJob
from fullrank.errors import Cause
from fullrank.frameworks.contract import (
    Framework,
    Gang,
    Member,
    Wiring,
    env,
    masters,
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
    leading=(("Master",),),
    master_role=masters,
    complaints=complaints,
)
