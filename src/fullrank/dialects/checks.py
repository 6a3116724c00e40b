"""What all dialects refuse in the same way: names that do not fit, containers that are missing, impossible numbers."""

import json
from collections.abc import Iterable, Iterator, Mapping

from fullrank.api.jobs import RestartPolicy
from fullrank.api.meta import Json
from fullrank.api.names import label_name_1035
from fullrank.api.schema import did_you_mean
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang, Member, Refusals

RESTART_POLICIES: Mapping[str, RestartPolicy] = {
    "Always": "Always", "OnFailure": "OnFailure", "Never": "Never", "ExitCode": "ExitCode",
}  # fmt: skip
LONGEST_NAME = 63
MOST_MEMBERS = 10_000  # of a role: more is a slip of the keyboard, and would keep everybody busy


def ports_of(text: str) -> Mapping[str, int]:
    """The ports members were given on this machine. Anybody may write an annotation: nonsense counts as none."""
    if not text:
        return {}
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict) or not all(type(port) is int for port in found.values()):
        return {}
    return found


def name_complaints(gang: Gang) -> Iterator[Cause]:
    """The job's name is the beginning of its pods' and services' names, so all of them must fit."""
    name, framework = gang.job.name, gang.framework
    if not name:
        return  # it will be generated
    for problem in label_name_1035(name) if framework.services(gang.job) else ():
        yield Cause("metadata.name", framework.refusals.name.format(name=name, problem=problem))
    longest = max((gang.name(Member(one.name, one.replicas - 1)) for one in gang.roles), key=len, default="")
    if (excess := len(longest) - LONGEST_NAME) > 0 and len(name) <= LONGEST_NAME:
        problem = (
            f'Invalid value: "{name}": too long by {excess}: "{longest}" may have {LONGEST_NAME} characters'
        )
        yield Cause("metadata.name", problem, "FieldValueTooLong", "members' names begin with the job's")


def replica_complaints(framework: Framework, path: str, role: str, replica: Json) -> Iterator[Cause]:
    refusals, where = framework.refusals, f"{path}.template.spec.containers"
    containers: list[Json] = ((replica.get("template") or {}).get("spec") or {}).get("containers") or []
    if not containers:
        yield Cause(where, refusals.containers.format(role=role), "FieldValueRequired")
    for index, one in enumerate(containers):
        if not one.get("image"):
            yield Cause(f"{where}[{index}].image", refusals.image.format(role=role), "FieldValueRequired")
    names = [one.get("name", "") for one in containers]
    if refusals.main and framework.container not in names:
        hint = f'call it "{framework.container}" instead of "{names[0]}"' if len(names) == 1 else ""
        yield Cause(where, refusals.main.format(name=framework.container), "FieldValueRequired", hint)
    if (replicas := replica.get("replicas") or 0) < 0:
        yield Cause(f"{path}.replicas", f"Invalid value: {replicas}: should be a non-negative integer")
    if replicas > MOST_MEMBERS:
        yield Cause(f"{path}.replicas", f"Invalid value: {replicas}: must be at most {MOST_MEMBERS}")
    policy = replica.get("restartPolicy")
    if isinstance(policy, str) and policy and policy not in RESTART_POLICIES:
        yield unsupported(f"{path}.restartPolicy", policy, RESTART_POLICIES)


def unsupported(path: str, word: str, known: Iterable[str], text: str = Refusals().role) -> Cause:
    supported = ", ".join(f'"{one}"' for one in known)
    problem = text.format(role=word, supported=supported)
    return Cause(path, problem, "FieldValueNotSupported", hint=did_you_mean(word, known))
