"""Where we mean to differ from training-operator v1.8.1, each with its reason; any other difference is our mistake."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tests.oracle.compare import ABSENT, Difference


@dataclass(frozen=True, slots=True)
class Expected:
    reason: str
    is_meant: Callable[[Difference], bool]
    by_chance: bool = False  # it need not show in every run


def _only_theirs(it: Difference, *beginnings: str) -> bool:
    return it.ours == ABSENT and it.path.startswith(beginnings)


def _only_ours(it: Difference, *beginnings: str) -> bool:
    return it.theirs == ABSENT and it.path.startswith(beginnings)


def _restarts_anew(it: Difference) -> bool:
    """Kinds that v1 fails, or leaves in Restarting for ever, when their policy says that they restart."""
    policies = {"XGBoostJob": ("OnFailure", "Always"), "MXJob": ("OnFailure", "Always"),
                "MPIJob": ("OnFailure", "Always", "ExitCode")}  # fmt: skip
    meant = any(f": {policy}, " in it.case for policy in policies.get(it.kind, ()))
    return meant and _ends_in(it, "Running=True", 'Failed=True MPIJobFailed: job "case')


def _mpi_noise(it: Difference) -> bool:
    things = ("ServiceAccount", "LauncherRole", "RoleBinding")
    twice = (
        "events.Warning MPIJobFailed: launcher pod created failed",
        "events.Warning MPIJobFailed: worker pod created failed",
        "events.Warning FailedCreatePod: Created worker pod",
    )
    return _only_theirs(it, *(f"events.Normal {one} is exist" for one in things), *twice)


def _mpi_second_voice(it: Difference) -> bool:
    return it.kind == "MPIJob" and _only_theirs(
        it,
        "events.Normal MPIJobRunning: MPIJob NAMESPACE/",
        "events.Normal mpijobsSucceeded",
        "events.Warning MPIJobFailed: MPIJob NAMESPACE/",
    )


def _counts_on(it: Difference) -> bool:
    if not it.path.startswith("status.replicaStatuses"):
        return it.case.endswith("backoffLimit 0, a pod fails") and _only_ours(
            it, "events.Normal ExitedWithCode"
        )
    return (it.path.endswith(".active") and it.ours == ABSENT) or (
        it.path.endswith(".failed") and it.theirs == ABSENT
    )


def _mpi_reason(it: Difference) -> bool:
    if it.kind != "MPIJob" or it.path != "status.conditions" or ABSENT in (it.theirs, it.ours):
        return False
    return [one.replace("MPIJobMPIJobFailed", "MPIJobFailed") for one in it.theirs] == list(it.ours)


def _fatal_code(it: Difference) -> bool:
    if "ExitCode, " not in it.case and "fatal" not in it.case:
        return False
    return _only_ours(it, "status.completionTime") or _only_theirs(it, "events.Normal TFJobFailed")


def _at(case: str, *ours: str, step: str = "") -> Callable[[Difference], bool]:
    """All differences of a case that ours leaves with one of these conditions as the last."""
    return lambda it: case in it.case and step in ("", it.step) and _ends_in(it, *ours)


def _ends_in(it: Difference, *ours: str) -> bool:
    return (
        it.path != "status.conditions"
        or not ours
        or it.ours[-1:] == [one for one in it.ours[-1:] if one.startswith(ours)]
    )


TABLE: dict[str, Expected] = {
    "members are remembered": Expected(
        "the status says which members were started, ended or replaced, so that none runs twice",
        lambda it: _only_ours(it, "status.members", "status.restarts", "status.replaced"),
    ),
    "every role has its selector": Expected(
        "v1 forgets some at random once a job has ended",
        lambda it: _only_ours(it, "status.replicaStatuses") and it.path.endswith(".selector"),
        by_chance=True,
    ),
    "counts after a failure": Expected(
        "v1 stops counting: its status shows members active whose pods are gone, and not the one that failed",
        _counts_on,
    ),
    "MPIJobs make no noise": Expected(
        "v1 tells at every pass that things exist, and that it failed to make the launcher twice",
        _mpi_noise,
    ),
    "MPIJobs speak once": Expected("v1 tells of each end and start in two wordings", _mpi_second_voice),
    "MPIJobs tell of exits": Expected(
        "as all other kinds do; v1 does not",
        lambda it: it.kind == "MPIJob" and _only_ours(it, "events.Normal ExitedWithCode"),
    ),
    "a launcher without workers may enter nobody": Expected(
        "a rule without names lets v1's into every pod of the namespace",
        lambda it: it.path.startswith("objects.Role ") and len(it.theirs) > len(it.ours),
    ),
    "files of a job that has ended stay": Expected(
        "v1 may write the list of hosts once more as the job fails",
        lambda it: it.path.endswith(".discover_hosts.sh") and "exits 1" in it.step,
        by_chance=True,
    ),
    "MPIJobFailed": Expected("v1 doubles the prefix of the reason: MPIJobMPIJobFailed", _mpi_reason),
    "no event is lost": Expected(
        "v1 keeps 25 events of a job and drops the rest, the last ones",
        lambda it: (it.crowded and _only_ours(it, "events.")) or "(combined from similar events)" in it.path,
    ),
    "nothing is made twice": Expected(
        "v1 may work on an old copy of the job and then tell that things exist already",
        lambda it: _only_theirs(it, "events.Warning FailedCreate") and it.path.endswith("already exists"),
        by_chance=True,
    ),
    "a restart is told once": Expected(
        "v1 tells it in two wordings, and of a fatal exit code too",
        lambda it: _only_theirs(it, f"events.Warning {it.kind}Restarting"),
    ),
    "a fatal exit code ends the job": Expected(
        "v1 sets no completionTime, and so never deletes the job after its TTL", _fatal_code
    ),
    "restart policies mean the same for all kinds": Expected(
        "v1 fails XGBoostJobs, MXJobs and MPIJobs that ask for restarts, or leaves them stuck", _restarts_anew
    ),
    "deadlines have a timer": Expected(
        "v1 looks at the clock only when something else happens",
        _at("activeDeadlineSeconds", "Failed=True", step="the time is over"),
    ),
    "every restart counts": Expected(
        "v1 does not count members that were replaced against backoffLimit",
        _at("a worker is replaced twice", "Failed=True"),
    ),
    "a TTL after a fatal exit code": Expected(
        "v1 never deletes such a job", _at("ttl after a fatal exit code")
    ),
    "an autoscaler goes with the job": Expected(
        "v1 leaves it behind", lambda it: _only_theirs(it, "objects.HorizontalPodAutoscaler")
    ),
    "a role that is taken away": Expected(
        "v1 leaves its pods, services and counts", _at("a role is taken away")
    ),
    "a member that has ended stays so": Expected("v1 runs it again", _at("a pod that ended is deleted")),
    "jobs without a leader end": Expected(
        "v1 leaves them in Created for ever",
        lambda it: (
            any(word in it.case for word in ("MXJob: two workers", "MXJob: tuning", "TFJob: servers only"))
            and _ends_in(it, "Running=True", "Succeeded=True")
        ),
    ),
    "somebody else's objects": Expected(
        "v1 writes no status while it waits; ours says that the job was created",
        _at("somebody else's", "Created=True", "Running=True"),
    ),
    "complaints name the field": Expected(
        "v1 gives the first complaint without its path", _at("without a launcher")
    ),
}


def named(difference: Difference) -> str:
    """The entry that expects it, or nothing."""
    return next((name for name, one in TABLE.items() if one.is_meant(difference)), "")


def unexpected(found: Iterable[Difference]) -> list[Difference]:
    return [one for one in found if not named(one)]


def tally(found: Iterable[Difference]) -> Counter[str]:
    return Counter(filter(None, map(named, found)))
