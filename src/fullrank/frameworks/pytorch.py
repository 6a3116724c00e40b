"""PyTorch: ranks meet at the master's port; without a master, torchrun's rendezvous is at worker 0."""

import re
from collections.abc import Collection
from datetime import datetime

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.schema import anything, array, boolean, integer, obj, string
from fullrank.api.scheme import AUTOSCALER
from fullrank.api.tensorboards import TENSORBOARD_SPEC
from fullrank.errors import Cause
from fullrank.frameworks.boards import BOARD_KINDS, board_of
from fullrank.frameworks.contract import (
    Companion,
    Done,
    Framework,
    Gang,
    Member,
    Refusals,
    Wiring,
    all_but_the_leader,
    elastic_needs_workers,
    env,
    leader_alone,
    leader_done,
    leaders_done,
    meeting_at,
    must_be_one,
    words_by_master,
)

MASTER = Member("Master", 0)
FIRST_WORKER = Member("Worker", 0)
REPLICAS = "pytorchReplicaSpecs"
WAITING_FOR_MASTER = (
    "err=1;for i in $(seq {tries}); do if nslookup {master}; then err=0 && break; fi;"
    "echo waiting for master; sleep 2; done; exit $err"
)


def wire(gang: Gang, member: Member) -> Wiring:
    has_master = gang.job.has("Master")
    waits = has_master and member.role != "Master"
    return Wiring(
        env=(
            *env(PYTHONUNBUFFERED=1),
            *(_meeting_point(gang, member) if has_master else ()),
            *_torchrun(gang),
        ),
        init_containers=(_wait_for_master(gang),) if waits else (),
    )


def _meeting_point(gang: Gang, member: Member) -> tuple[Json, ...]:
    port, master, rank = gang.port(MASTER), gang.name(MASTER), gang.rank(member)
    return env(
        MASTER_PORT=port,
        PET_MASTER_PORT=port,
        MASTER_ADDR=master,
        PET_MASTER_ADDR=master,
        WORLD_SIZE=gang.size * _processes_per_node(gang.job),
        RANK=rank,
        PET_NODE_RANK=rank,
    )


def _torchrun(gang: Gang) -> tuple[Json, ...]:
    elastic, given = _elastic(gang.job), gang.job.options.get("nprocPerNode")
    old = _old_spelling(gang.job)
    per_node = env(PET_NPROC_PER_NODE=given or "auto") if given is not None or old is None else ()
    if elastic is None:
        return (*per_node, *env(PET_NNODES=gang.size))
    return (*per_node, *_rendezvous(gang, elastic))


def _rendezvous(gang: Gang, elastic: Json) -> tuple[Json, ...]:
    host = elastic.get("rdzvHost") or gang.name(FIRST_WORKER)
    port = elastic.get("rdzvPort") or gang.port(FIRST_WORKER)
    low, high = bounds(gang.job)
    settings = elastic.get("rdzvConf") or ()
    entries = {
        "PET_RDZV_ENDPOINT": f"{host}:{port}",
        "PET_RDZV_BACKEND": elastic.get("rdzvBackend") or "c10d",
        "PET_NNODES": f"{low}:{high}",
        "PET_MAX_RESTARTS": elastic.get("maxRestarts"),
        "PET_NPROC_PER_NODE": elastic.get("nProcPerNode"),
        "PET_RDZV_ID": elastic.get("rdzvId"),
        "PET_RDZV_CONF": ",".join(f"{one.get('key', '')}={one.get('value', '')}" for one in settings) or None,
        "PET_STANDALONE": "" if elastic.get("standalone") else None,
    }
    return env(**{name: value for name, value in entries.items() if value is not None})


def _elastic(job: TrainingJob) -> Json | None:
    policy: Json | None = job.options.get("elasticPolicy")
    return policy


def bounds(job: TrainingJob) -> tuple[int, int]:
    """The least and the most workers an elastic job runs with; one bound alone is both, none means as many as asked."""
    elastic, workers = _elastic(job) or {}, job.role("Worker")
    low, high = elastic.get("minReplicas"), elastic.get("maxReplicas")
    given = [bound for bound in (low, high) if bound is not None] or [workers.replicas if workers else 0]
    return given[0], given[-1]


def _processes_per_node(job: TrainingJob) -> int:
    given = str(job.options.get("nprocPerNode") or "auto")
    return int(given) if re.fullmatch("[+-]?[0-9]+", given) else 1


def _wait_for_master(gang: Gang) -> Json:
    script = WAITING_FOR_MASTER.format(tries=100, master=gang.name(MASTER))
    return {
        "name": "init-pytorch",
        "image": "alpine:3.10",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", script],
        "resources": {
            "limits": {"cpu": "100m", "memory": "20Mi"},
            "requests": {"cpu": "50m", "memory": "10Mi"},
        },
    }


def finished_at(gang: Gang, done: Done) -> datetime | None:
    """The master's end, else the last worker's; of an elastic job without a master, the first worker's."""
    if _elastic(gang.job) is not None and not gang.job.has("Master"):
        return min(done.values(), default=None)
    return leaders_done(gang, done)


def listeners(gang: Gang) -> tuple[Member, ...]:
    """The master; in an elastic job worker 0 too, where torchrun meets."""
    elastic = _elastic(gang.job) is not None and gang.job.has("Worker")
    return tuple(dict.fromkeys((*leader_alone(gang), *((FIRST_WORKER,) if elastic else ()))))


def is_master(gang: Gang, member: Member) -> bool:
    return member.role == "Master" or member == gang.leader


def companions(gang: Gang, _running: Collection[Member]) -> tuple[Companion, ...]:
    """An autoscaler, while the job may be scaled."""
    job, metrics = gang.job, (_elastic(gang.job) or {}).get("metrics")
    if metrics is None or job.run_policy.suspend or job.status.finished:
        return ()
    low, high = bounds(job)
    target = {"apiVersion": job.api_version, "kind": job.kind, "name": job.name}
    spec = {"scaleTargetRef": target, "minReplicas": low, "maxReplicas": high, "metrics": metrics}
    return (Companion(AUTOSCALER, job.name, {"spec": spec}),)


def complaints(job: TrainingJob) -> list[Cause]:
    path = f"spec.{REPLICAS}"
    found = [*must_be_one(job, "Master", path), *elastic_needs_workers(job, path)]
    if _old_spelling(job) is not None and job.options.get("nprocPerNode") is not None:
        problem = "Forbidden: must not be used with spec.nprocPerNode"
        place = "spec.elasticPolicy.nProcPerNode"
        found.append(Cause(place, problem, "FieldValueForbidden", hint="keep spec.nprocPerNode"))
    return found


def warnings(job: TrainingJob) -> list[str]:
    if _old_spelling(job) is None:
        return []
    return ["spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead"]


def _old_spelling(job: TrainingJob) -> int | None:
    given: int | None = (_elastic(job) or {}).get("nProcPerNode")
    return given


_ELASTIC = obj(
    {
        "minReplicas": integer(description="The least number of workers the job runs with."),
        "maxReplicas": integer(description="The most workers the job may be scaled to."),
        "rdzvBackend": string(description="How workers find each other: c10d, etcd or etcd-v2."),
        "rdzvPort": integer(),
        "rdzvHost": string(),
        "rdzvId": string(),
        "rdzvConf": array(obj({"key": string(), "value": string()})),
        "standalone": boolean(),
        "nProcPerNode": integer(description="Old spelling of spec.nprocPerNode."),
        "maxRestarts": integer(),
        "metrics": array(anything(), description="What an autoscaler on a cluster looks at."),
    },
    description="Lets the number of workers change while the job runs.",
)

PYTORCH = Framework(
    kind="PyTorchJob",
    plural="pytorchjobs",
    replicas_field=REPLICAS,
    container="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    roles=("Master", "Worker"),
    wire=wire,
    leading=(("Master",), ("Worker",)),
    restart_policy="OnFailure",
    scalable=True,
    selector_in_status=True,
    listeners=listeners,
    master_role=is_master,
    finished_at=finished_at,
    words=words_by_master,
    companions=companions,
    companion_kinds=(AUTOSCALER,),
    options={
        "elasticPolicy": _ELASTIC,
        "nprocPerNode": string(description='Processes on each node: "auto", "cpu", "gpu" or a number.'),
    },
    complaints=complaints,
    warnings=warnings,
)


# -- TensorStack's kind: roles of any name, the first of them in the lead, and torchrun if the job asks for it ------


def wire_training(gang: Gang, member: Member) -> Wiring:
    return Wiring(env=meeting_at(gang, gang.leader or member, member), launcher=_launcher(gang))


def _launcher(gang: Gang) -> tuple[str, ...]:
    """How each member starts its processes: through torchrun, in place of its own command."""
    config: Json = gang.job.options.get("torchrunConfig") or {}
    if not config.get("enabled"):
        return ()
    elastic: Json = gang.job.options.get("elastic") or {}
    nodes = f"{elastic['minReplicas']}:{elastic['maxReplicas']}" if elastic.get("enabled") else str(gang.size)
    options = {
        "--nnodes": nodes,
        "--nproc_per_node": config.get("procPerNode"),
        "--max_restarts": config.get("maxRestarts"),
        "--rdzv_backend": config.get("rdzvBackend") or "c10d",
        "--rdzv_endpoint": "$(MASTER_ADDR):$(MASTER_PORT)",
        "--rdzv_id": gang.job.name,
    }
    said = (f"{option}={value}" for option, value in options.items() if value is not None)
    return ("torchrun", *said, *(config.get("extraOptions") or ()))


def training_complaints(job: TrainingJob) -> list[Cause]:
    elastic: Json = job.options.get("elastic") or {}
    if not elastic.get("enabled"):
        return []
    missing = [name for name in ("minReplicas", "maxReplicas") if elastic.get(name) is None]
    if missing:
        problem = "Required value: elastic training needs its bounds"
        return [Cause(f"spec.elastic.{name}", problem, "FieldValueRequired") for name in missing]
    low, high = elastic["minReplicas"], elastic["maxReplicas"]
    if 0 < low <= high:
        return []
    problem = f"Invalid value: {low}: must be at least 1 and at most maxReplicas, which is {high}"
    return [Cause("spec.elastic.minReplicas", problem)]


_TORCHRUN = obj(
    {
        "enabled": boolean(description="Start each member through torchrun; its command is then ignored."),
        "maxRestarts": integer(),
        "procPerNode": string(description='Processes on each member: a number, or "gpu".'),
        "rdzvBackend": string(description="c10d if left out; etcd and etcd-v2 need an etcd of your own."),
        "extraOptions": array(string(), description="Further options of torchrun."),
    },
    description="How torchrun starts the processes of each member.",
)

PYTORCH_TRAINING = Framework(
    kind="PyTorchTrainingJob",
    plural="pytorchtrainingjobs",
    replicas_field="replicaSpecs",
    container="python",
    counted_as="pytorch",
    port_name="pytorchjob-port",
    port=23456,
    roles=(),
    wire=wire_training,
    leading=(),
    restart_policy="OnFailure",
    finished_at=leader_done,
    tolerates=all_but_the_leader,
    companions=board_of,
    companion_kinds=BOARD_KINDS,
    options={
        "tensorboardSpec": TENSORBOARD_SPEC,
        "torchrunConfig": _TORCHRUN,
        "elastic": obj(
            {
                "enabled": boolean(),
                "minReplicas": integer(description="The least number of members; it cannot be changed."),
                "maxReplicas": integer(description="The most members; it cannot be changed."),
                "expectedReplicas": integer(description="How many are wanted at the moment."),
            },
            description="Lets the number of members change while torchrun runs them.",
        ),
    },
    refusals=Refusals(main=""),
    complaints=training_complaints,
    short_names=("pj",),
    restart_budget=3,
)
