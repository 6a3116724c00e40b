"""Where we mean to differ from training-operator v1.8.1, each with its reason; any other difference is our mistake."""

import re
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


def _story(cases: str, ours: str, *places: str, step: str = "") -> Callable[[Difference], bool]:
    """What differs in these cases (a pattern) where ours comes to another condition than v1, whose last one begins so.

    A place is a pattern for a path; before it stands who alone has something there: `+` ours, `-` theirs, `~` either.
    In it, JOB is the job's name and KIND its kind.
    """
    signs: dict[str, Callable[[Difference], bool]] = {
        "+": lambda it: bool(it.theirs == ABSENT),
        "-": lambda it: bool(it.ours == ABSENT),
        "~": lambda _: True,
    }
    wanted = [(signs[one[0]], one[1:]) for one in places]

    def is_meant(it: Difference) -> bool:
        if not re.search(cases, it.case) or step not in ("", it.step):
            return False
        if ours and it.path == "status.conditions":
            return str(it.ours[-1]).startswith(ours.replace("KIND", it.kind))
        return any(has(it) and re.fullmatch(_filled(place, it), it.path) for has, place in wanted)

    return is_meant


def _filled(place: str, it: Difference) -> str:
    return place.replace("JOB", r"(?:case-\d+|taken(?:-mpi)?)").replace("KIND", it.kind)


COUNTS = r"~status\.replicaStatuses\.\w+\.(active|succeeded|failed)"
COMPLETED = r"~status\.completionTime"
ENDS_TOLD = r"~events\.(Normal|Warning) KIND(Failed|Succeeded): .*"
LATE_EXIT = r"~events\.Normal ExitedWithCode: .*"  # of the second: whether it was seen in time is chance
EVERYTHING = r"-objects\.(Pod|Service) JOB-[\w-]+"


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
        "v1 fails XGBoostJobs, MXJobs and MPIJobs that ask for restarts, or leaves them stuck",
        _story(
            r"(XGBoostJob|MXJob): (OnFailure|Always), |MPIJob: (OnFailure|Always), |MPIJob: ExitCode, .* (137|143)$",
            "Running=True",
            COUNTS,
            COMPLETED,
            r"+events\.Normal SuccessfulDeletePod: Deleted pod: JOB-(worker-1|launcher)",
            r"+events\.Warning KINDRestarting: .*",
            r"-events\.Normal KINDFailed: .*",
            r"+objects\.Pod JOB-worker-1",
            r"~objects\.Pod JOB-(worker-1|launcher)\.phase",
            r"~objects\.ConfigMap JOB-config\.data\.discover_hosts\.sh",
        ),
    ),
    "a fatal exit code fails MPIJobs too": Expected(
        "v1 leaves them in Restarting for ever",
        _story(
            r"MPIJob: ExitCode, a worker exits 1$",
            "Failed=True MPIJobFailed: job",
            COUNTS,
            COMPLETED,
            r"+events\.Warning MPIJobFailed: job .* is failing because .*",
            r"~objects\.ConfigMap JOB-config\.data\.discover_hosts\.sh",
        ),
    ),
    "deadlines have a timer": Expected(
        "v1 looks at the clock only when something else happens",
        _story(
            "activeDeadlineSeconds", "Failed=True", COUNTS, COMPLETED, EVERYTHING, step="the time is over"
        ),
    ),
    "every restart counts": Expected(
        "v1 does not count members that were replaced against backoffLimit",
        _story(
            "a worker is replaced twice",
            "Failed=True",
            COUNTS,
            COMPLETED,
            EVERYTHING,
            r"+events\.Normal SuccessfulDelete(Pod|Service): Deleted (pod|service): JOB-[\w-]+",
            r"+events\.Normal KINDFailed: Job JOB has failed because it has reached the specified backoff limit",
            step="again",
        ),
    ),
    "a TTL after a fatal exit code": Expected(
        "v1 never deletes such a job",
        _story(
            "ttl after a fatal exit code",
            "",
            "~job",
            r"-status\..*",
            "~status.conditions",
            EVERYTHING,
            r"+events\.Normal SuccessfulDeletePod: Deleted job: JOB",
        ),
    ),
    "an autoscaler goes with the job": Expected(
        "v1 leaves it behind", lambda it: _only_theirs(it, "objects.HorizontalPodAutoscaler")
    ),
    "a role that is taken away": Expected(
        "v1 leaves its pods, services and counts",
        _story(
            "a role is taken away",
            "",
            r"-objects\.(Pod|Service) JOB-worker-\d",
            r"-status\.replicaStatuses\.Worker\.(active|selector)",
            r"+events\.Normal SuccessfulDelete(Pod|Service): Deleted (pod|service): JOB-worker-\d",
            step="gone",
        ),
    ),
    "a member that has ended stays so": Expected(
        "v1 runs it again",
        _story(
            "a pod that ended is deleted",
            "",
            r"-objects\.Pod JOB-worker-0",
            r"~status\.replicaStatuses\.Worker\.(active|succeeded)",
            step="deleted",
        ),
    ),
    "jobs without a leader run": Expected(
        "v1 leaves them in Created for ever",
        _story("MXJob: two workers|MXJob: tuning|TFJob: servers only", "Running=True", step="created"),
    ),
    "jobs without a leader end": Expected(
        "likewise",
        _story(
            "MXJob: two workers|MXJob: tuning|TFJob: servers only",
            "Succeeded=True",
            r"+status\.completionTime",
            r"+events\.Normal KINDSucceeded: .*",
        ),
    ),
    "somebody else's objects": Expected(
        "v1 writes no status while it waits, and makes the others or not; ours says what is in the way and makes them",
        _story(
            "somebody else's",
            "",
            r"+status\.(startTime|replicaStatuses\..*)",
            r"+objects\.(Pod|Service) JOB-[\w-]+",
            r"+events\.Normal SuccessfulCreate(Pod|Service): .*",
        ),
    ),
    "a job that cannot get further says why": Expected(
        "v1 says it in events only",
        lambda it: (
            "somebody else's" in it.case
            and it.path == "status.conditions"
            and it.ours[0].startswith(
                ("Progressing=False FailedCreatePod: ", "Progressing=False ErrResourceExists: ")
            )
        ),
    ),
    "complaints name the field": Expected(
        "v1 gives the first complaint without its path",
        _story("without a launcher", "", r"~events\.Warning MPIJobFailedValidation: .*"),
    ),
    "nobody in a role is nobody": Expected(
        "v1 makes and deletes a first member for ever, or fails the job when it sees that one go",
        _story(
            "replicas 0",
            "",
            r"-objects\.(Pod|Service) JOB-worker-0",
            r"-events\.Normal Successful(Create|Delete)(Pod|Service): (Created|Deleted) (pod|service): JOB-worker-0",
            r"-events\.Normal KINDFailed: .* 1 Worker replica\(s\) failed\.",
            r"+events\.Normal KINDSucceeded: .*",
            r"+events\.Normal ExitedWithCode: .* exited with code 0",
            r"-status\.completionTime",
            r"+status\.completionTime",
            COUNTS,
        ),
    ),
    "nobody in a role fails nothing": Expected(
        "likewise",
        lambda it: (
            "replicas 0" in it.case
            and it.path == "status.conditions"
            and it.theirs[-1].startswith((f"Failed=True {it.kind}Failed: ", "Created=True"))  # v1: by chance
            and it.ours[-1].startswith(("Running=True", "Succeeded=True"))
        ),
    ),
    "of opposite ends the first decides: success": Expected(
        "v1 leaves it to chance, or writes down both",
        _story("opposite ends, success first", "Succeeded=True", COUNTS, ENDS_TOLD, LATE_EXIT),
    ),
    "of opposite ends the first decides: failure": Expected(
        "likewise",
        _story("opposite ends, failure first", "Failed=True", COUNTS, ENDS_TOLD, COMPLETED, LATE_EXIT),
    ),
    "a pod deleted under Never ends the job": Expected(
        "in v1 it depends on the kind and on how fast the pod goes, and nobody says that it was deleted",
        _story(
            "deleted under Never",
            "Failed=True KINDFailed: KIND case",
            COUNTS,
            r"+status\.completionTime",
            r"-objects\.Pod JOB-worker-0",
            r"-events\.Normal KINDFailed: .* 1 Worker replica\(s\) failed\.",
            r"+events\.Normal KINDFailed: .* was deleted and its restartPolicy is Never\.",
        ),
    ),
    "a pod deleted under other policies is replaced": Expected(
        "v1 fails TFJobs always, XGBoostJobs and MXJobs unless under ExitCode",
        _story(
            "^(TFJob|XGBoostJob|MXJob): slow to stop, deleted under (OnFailure|ExitCode)",
            "Running=True",
            COUNTS,
            r"-status\.completionTime",
            r"+objects\.Pod JOB-worker-0",
            r"-events\.Normal KINDFailed: .* 1 Worker replica\(s\) failed\.",
        ),
    ),
    "scaling down fails nothing": Expected(
        "v1 fails TFJobs, XGBoostJobs and MXJobs while pods stop",
        _story(
            "^(TFJob|XGBoostJob|MXJob): slow to stop, scaled down",
            "Running=True",
            COUNTS,
            r"-status\.completionTime",
            r"-events\.Normal KINDFailed: .* 1 Worker replica\(s\) failed\.",
        ),
    ),
    "members that stop are not failures": Expected(
        "v1 counts pods on their way out as failed",
        _story("slow to stop, ", "", r"-status\.replicaStatuses\.Worker\.failed"),
        by_chance=True,
    ),
    "a job is deleted once": Expected(
        "v1 may work on an old copy and tell that it could not delete the job again",
        lambda it: _only_theirs(it, "events.Warning FailedDelete") and it.path.endswith("not found"),
        by_chance=True,
    ),
}


def named(difference: Difference) -> str:
    """The entry that expects it, or nothing."""
    return next((name for name, one in TABLE.items() if one.is_meant(difference)), "")


def unexpected(found: Iterable[Difference]) -> list[Difference]:
    return [one for one in found if not named(one)]


def tally(found: Iterable[Difference]) -> Counter[str]:
    return Counter(filter(None, map(named, found)))
