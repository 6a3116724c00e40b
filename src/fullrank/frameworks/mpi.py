"""MPIJob: the launcher runs mpirun, which starts its ranks on the workers through `kubectl exec`.

The workers only wait. What the launcher has to know is in files: the hosts and their slots, the script that mpirun
calls instead of ssh, and one that lists the workers running at the moment. It may look at pods and exec into the
workers, nothing else.
"""

from collections.abc import Collection

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.schema import integer, string
from fullrank.api.scheme import CONFIG_MAP, ROLE, ROLE_BINDING, SERVICE_ACCOUNT
from fullrank.errors import Cause
from fullrank.frameworks.contract import (
    Companion,
    Framework,
    Gang,
    Member,
    Refusals,
    Wiring,
    env,
    none_has_one,
)

LAUNCHER = Member("Launcher", 0)
REPLICAS = "mpiReplicaSpecs"
KUBECTL, CONFIG = "mpi-job-kubectl", "mpi-job-config"
KUBECTL_PATH, CONFIG_PATH = "/opt/kube", "/etc/mpi"
FILE_MODES = {"kubexec.sh": 0o555, "hostfile": 0o444, "discover_hosts.sh": 0o555}


def wire(gang: Gang, member: Member) -> Wiring:
    if member.role != "Launcher":
        return Wiring(
            volumes=(_config_volume(gang, "kubexec.sh"),),
            mounts=(_mount(CONFIG, CONFIG_PATH),),
            command=("sleep", "365d"),
        )
    return Wiring(
        env=_launcher_env(gang),
        init_containers=(_kubectl_delivery(gang),),
        volumes=({"name": KUBECTL, "emptyDir": {}}, _config_volume(gang, *FILE_MODES)),
        mounts=_launcher_mounts(),
        service_account=_launcher_name(gang),
    )


def _launcher_env(gang: Gang) -> tuple[Json, ...]:
    shell = f"{CONFIG_PATH}/kubexec.sh"
    # mpirun itself needs no GPU: unless ranks run beside it, the launcher is not to see one.
    hidden = (
        {} if _launcher_works(gang.job) else {"NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}
    )
    intel = {"I_MPI_HYDRA_BOOTSTRAP": "rsh", "I_MPI_HYDRA_BOOTSTRAP_EXEC": shell}
    given = {one.get("name") for one in _launcher_spec(gang.job)["containers"][0].get("env") or ()}
    return env(
        OMPI_MCA_plm_rsh_agent=shell,
        OMPI_MCA_orte_default_hostfile=f"{CONFIG_PATH}/hostfile",
        **hidden,
        **{name: value for name, value in intel.items() if name not in given},
    )


def _kubectl_delivery(gang: Gang) -> Json:
    """Puts the kubectl that kubexec.sh calls into a volume."""
    amounts = {"cpu": "100m", "ephemeral-storage": "5Gi", "memory": "512Mi"}
    return {
        "name": "kubectl-delivery",
        "image": "kubeflow/kubectl-delivery:latest",
        "imagePullPolicy": "IfNotPresent",
        "env": [*env(TARGET_DIR=KUBECTL_PATH, NAMESPACE=gang.job.namespace)],
        "resources": {"limits": amounts, "requests": dict(amounts)},
        "volumeMounts": [*_launcher_mounts()],
    }


def _launcher_mounts() -> tuple[Json, ...]:
    return (_mount(KUBECTL, KUBECTL_PATH), _mount(CONFIG, CONFIG_PATH))


def _mount(volume: str, path: str) -> Json:
    return {"name": volume, "mountPath": path}


def _config_volume(gang: Gang, *files: str) -> Json:
    items = [{"key": name, "path": name, "mode": FILE_MODES[name]} for name in files]
    return {"name": CONFIG, "configMap": {"name": _config_name(gang), "items": items}}


def _launcher_spec(job: TrainingJob) -> Json:
    launcher = job.role("Launcher")
    spec: Json = (launcher.template.get("spec") if launcher else None) or {"containers": []}
    return spec


def _launcher_works(job: TrainingJob) -> bool:
    """Whether the launcher has a GPU, and so takes part in the work."""
    limits = ((one.get("resources") or {}).get("limits") or {} for one in _launcher_spec(job)["containers"])
    return any("gpu" in resource for one in limits for resource in one)


def _launcher_name(gang: Gang) -> str:
    return f"{gang.job.name}-launcher"


def _config_name(gang: Gang) -> str:
    return f"{gang.job.name}-config"


def companions(gang: Gang, running: Collection[Member]) -> tuple[Companion, ...]:
    account: str = _launcher_spec(gang.job).get("serviceAccountName") or _launcher_name(gang)
    mark = {"app": gang.job.name}
    files = {
        "hostfile": _hostfile(gang),
        "kubexec.sh": _kubexec(gang),
        "discover_hosts.sh": _discover_hosts(gang, running),
    }
    return (
        Companion(SERVICE_ACCOUNT, account, labels=mark),
        Companion(CONFIG_MAP, _config_name(gang), {"data": files}, mark),
        Companion(ROLE, _launcher_name(gang), {"rules": _rules(gang)}, mark),
        Companion(ROLE_BINDING, _launcher_name(gang), _binding(gang, account), mark),
    )


def _slots(gang: Gang) -> int:
    return int(gang.job.options.get("slotsPerWorker") or 1)


def _hostfile(gang: Gang) -> str:
    launcher = (LAUNCHER,) if _launcher_works(gang.job) else ()
    hosts = (gang.name(member) for member in (*launcher, *gang.of("Worker")))
    return "".join(f"{host} slots={_slots(gang)}\n" for host in hosts)


def _kubexec(gang: Gang) -> str:
    main = gang.job.options.get("mainContainer")
    container = f" --container {main}" if main else ""
    lines = (
        "#!/bin/sh",
        "set -x",
        "POD_NAME=$1",
        "shift",
        f'{KUBECTL_PATH}/kubectl exec ${{POD_NAME}}{container} -- /bin/sh -c "$*"',
    )
    return "\n".join(lines)


def _discover_hosts(gang: Gang, running: Collection[Member]) -> str:
    launcher = [f"echo {gang.name(LAUNCHER)}:{_slots(gang)}", ""] if _launcher_works(gang.job) else []
    workers = sorted(gang.name(member) for member in running if member.role == "Worker")
    return "\n".join(["#!/bin/sh", *launcher, *(f"echo {name}:{_slots(gang)}" for name in workers)])


def _rules(gang: Gang) -> list[Json]:
    look: Json = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
    workers = [gang.name(member) for member in gang.of("Worker")]
    if not workers:
        return [look]  # a rule that names nobody would let it into every pod of the namespace
    return [
        look,
        {"apiGroups": [""], "resources": ["pods/exec"], "resourceNames": workers, "verbs": ["create"]},
    ]


def _binding(gang: Gang, account: str) -> Json:
    role = {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": _launcher_name(gang)}
    subject = {"kind": SERVICE_ACCOUNT.kind, "name": account, "namespace": gang.job.namespace}
    return {"roleRef": role, "subjects": [subject]}


def made(member: Member, pod: str) -> tuple[str, str]:
    if member == LAUNCHER:
        return "MPIJobRunning", f"launcher pod created success: {pod}"
    return "SuccessfulCreatePod", f"Created worker pod: {pod}"


def complaints(job: TrainingJob) -> list[Cause]:
    launcher, path = job.role("Launcher"), f"spec.{REPLICAS}[Launcher]"
    if launcher is None:
        problem = "MPIReplicaSpec is not valid: Master ReplicaSpec must be present"
        return [Cause(path, problem, "FieldValueRequired", "add the Launcher, which runs mpirun")]
    if launcher.replicas != 1:
        problem = "MPIReplicaSpec is not valid: There must be only 1 launcher replica"
        return [Cause(f"{path}.replicas", problem, "FieldValueForbidden", f"it has {launcher.replicas}")]
    return []


def policy_warning(member: Member) -> str:
    """Told of the launcher alone, in the word that has always been used."""
    return "SettedPodTemplateRestartPolicy" if member.role == "Launcher" else ""


MPI = Framework(
    kind="MPIJob",
    plural="mpijobs",
    replicas_field=REPLICAS,
    container="mpi",
    port_name="mpi-port",
    port=9999,
    roles=("Launcher", "Worker"),
    wire=wire,
    leading=(("Launcher",),),
    replicas={"Worker": 0},
    unnumbered=("Launcher",),
    services=none_has_one,
    env_goes_to="first container",
    listeners=lambda _gang: (),
    columns=("Age", "State"),
    keeps_finalizers=False,
    deletion_told_as="SuccessfulDeleteJob",
    policy_warning=policy_warning,
    others_count_with_leader=True,
    made=made,
    companions=companions,
    companion_kinds=(SERVICE_ACCOUNT, CONFIG_MAP, ROLE, ROLE_BINDING),
    options={
        "slotsPerWorker": integer(description="How many ranks a worker takes; 1 if left out."),
        "mainContainer": string(
            description="The workers' container that ranks run in; the first if left out."
        ),
        "cleanPodPolicy": string(description="Old place of spec.runPolicy.cleanPodPolicy."),
    },
    refusals=Refusals(
        roles="MPIReplicaSpecs is not valid",
        role="MPIReplicaType is {role} but must be one of [Launcher Worker]",
        containers="MPIReplicaSpecs is not valid: containers definition expected in {role}",
        image="MPIReplicaSpec is not valid: Image is undefined in the container of {role}",
        main="",
    ),
    complaints=complaints,
)
