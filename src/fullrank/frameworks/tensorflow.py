"""TensorFlow: every member opens a server and reads all addresses, and its own place among them, from TF_CONFIG."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.schema import boolean, string
from fullrank.api.tensorboards import TENSORBOARD_SPEC
from fullrank.errors import Cause
from fullrank.frameworks.boards import BOARD_KINDS, board_of
from fullrank.frameworks.contract import (
    Done,
    Framework,
    Gang,
    Member,
    Wiring,
    Words,
    all_but_the_leader,
    env,
    everyone,
    leader_done,
    leaders_done,
    leads,
    per_gang,
)

ROLES = ("Chief", "Master", "Worker", "PS", "Evaluator")
CHIEFS = ("Chief", "Master")
REPLICAS = "tfReplicaSpecs"


def wire(gang: Gang, member: Member) -> Wiring:
    """A single member is on its own and gets nothing."""
    if gang.size == 1:
        return Wiring()
    return Wiring(env(TF_CONFIG=_sparse(gang, member) if _dynamic(gang.job) else _dense(gang, member)))


def _dense(gang: Gang, member: Member) -> str:
    """The whole cluster is written once for all members: only the task differs."""
    return f'{{"cluster":{_cluster(gang)},"task":{_text(_task(member))},"environment":"cloud"}}'


@per_gang
def _cluster(gang: Gang) -> str:
    return _text(_addresses(gang))


@per_gang
def _addresses(gang: Gang) -> Mapping[str, list[str]]:
    names = sorted((role.name for role in gang.job.roles), key=str.lower)  # those without members too
    return {name.lower(): [_address(gang, one) for one in gang.of(name)] for name in names}


def _sparse(gang: Gang, member: Member) -> str:
    """Workers come and go, so that each knows the parameter servers and itself, and a server only itself."""
    own = _address(gang, member)
    workers = {str(member.index): own} if member.role == "Worker" else {}
    servers: list[str] | None = [own] if member.role == "PS" else []
    if member.role == "Worker":
        servers = _addresses(gang).get("ps")
    return _text({"cluster": {"worker": workers, "ps": servers}, "task": _task(member)})


def _address(gang: Gang, member: Member) -> str:
    return f"{gang.host(member)}:{gang.port(member)}"


def _task(member: Member) -> Json:
    return {"type": member.role.lower(), "index": member.index}


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _dynamic(job: TrainingJob) -> bool:
    return bool(job.options.get("enableDynamicWorker"))


def _all_workers(job: TrainingJob) -> bool:
    return bool(job.options.get("successPolicy") == "AllWorkers")


def finished_at(gang: Gang, done: Done) -> datetime | None:
    """The chief's end; without one, worker 0's or, if the job asks for it, the last worker's."""
    first = Member("Worker", 0)
    if gang.leader == first and not _all_workers(gang.job):
        return done.get(first)
    return leaders_done(gang, done)


def tolerates(gang: Gang, member: Member) -> bool:
    """Whether the job can still succeed without this member: a dynamic worker, unless its success is the job's."""
    if not _dynamic(gang.job) or member.role != "Worker":
        return False
    return gang.job.has(*CHIEFS) or (member.index != 0 and not _all_workers(gang.job))


def is_master(gang: Gang, member: Member) -> bool:
    return member.role in CHIEFS or (member.role == "Worker" and leads(gang, member))


def words(job: TrainingJob) -> Words:
    name = f"TFJob {job.namespace}/{job.name}"
    return Words(
        running=f"{name} is running.",
        succeeded=f"{name} successfully completed.",
        failed=f"{name} has failed because {{count}} {{role}} replica(s) failed.",
        restarting=f"job {job.name} is restarting because {{role}} replica(s) failed.",
    )


def complaints(job: TrainingJob) -> list[Cause]:
    if job.role("Chief") is None or job.role("Master") is None:
        return []
    problem = "Forbidden: must not have more than 1 Chief or Master role"
    return [Cause(f"spec.{REPLICAS}", problem, "FieldValueForbidden", "they are two names for one role")]


TENSORFLOW = Framework(
    kind="TFJob",
    plural="tfjobs",
    replicas_field=REPLICAS,
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    roles=ROLES,
    wire=wire,
    deletion_told_as="SuccessfulDeleteJob",
    leading=(CHIEFS, ("Worker",)),
    env_goes_to="main container",
    listeners=everyone,
    master_role=is_master,
    finished_at=finished_at,
    tolerates=tolerates,
    words=words,
    options={
        "successPolicy": string(description='"" (worker 0 decides) or AllWorkers; a chief always decides.'),
        "enableDynamicWorker": boolean(
            description="Workers may come and go; their failure is not the job's."
        ),
    },
    complaints=complaints,
)


# -- TensorStack's kinds: the same servers under other roles, and a main member that alone decides ---------------


def wire_training(gang: Gang, member: Member) -> Wiring:
    """Evaluators look on from outside: they are told the cluster and are no part of it."""
    return Wiring(env(TF_CONFIG=f'{{"cluster":{_training_cluster(gang)},"task":{_text(_task(member))}}}'))


@per_gang
def _training_cluster(gang: Gang) -> str:
    return _text({role: list(found) for role, found in _addresses(gang).items() if role != "evaluator"})


TENSORFLOW_TRAINING = Framework(
    kind="TensorFlowTrainingJob",
    plural="tensorflowtrainingjobs",
    replicas_field="replicaSpecs",
    container="tensorflow",
    port_name="tfjob-port",
    port=2222,
    roles=("chief", "worker", "ps", "evaluator"),
    wire=wire_training,
    leading=(("chief",), ("worker",)),
    restart_policy="OnFailure",
    env_goes_to="main container",
    listeners=everyone,
    finished_at=leader_done,
    tolerates=all_but_the_leader,
    companions=board_of,
    companion_kinds=BOARD_KINDS,
    options={"tensorboardSpec": TENSORBOARD_SPEC},
    short_names=("tj",),
)

# One tutorial calls it so; the manifest, and everything else, is the same.
TENSORFLOW_ALIAS = replace(TENSORFLOW_TRAINING, kind="TensorFlowJob", plural="tensorflowjobs", short_names=())
