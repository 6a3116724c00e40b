"""GenericJob: members of any role, told only what their manifest asks for; rules of its own say when it is over."""

import json
from collections import ChainMap
from collections.abc import Iterable, Mapping
from datetime import datetime

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.schema import array, int_or_string, integer, mapping, obj, string
from fullrank.errors import Cause
from fullrank.frameworks.contract import (
    Done,
    Doom,
    Framework,
    Gang,
    Member,
    Refusals,
    Wiring,
    nobody,
    per_gang,
)


def wire(gang: Gang, member: Member) -> Wiring:
    own = {"type": member.role, "rank": str(member.index)}
    return Wiring(variables=ChainMap(own, _variables(gang)))


@per_gang
def _variables(gang: Gang) -> dict[str, str]:
    """What everybody may ask for: how many there are, and where."""
    sizes = {f"replicas[{role.name}]": str(role.replicas) for role in gang.job.roles}
    hosts = {f"service.{one.role}[{one.index}].host": gang.service(one) for one in gang.served}
    ports = {f"service.port[{port.get('name', '')}]": str(port["port"]) for port in service_ports(gang.job)}
    return {**sizes, **hosts, **ports}


def service_ports(job: TrainingJob) -> list[Json]:
    found: list[Json] = (job.options.get("service") or {}).get("ports") or []
    return found


def has_services(job: TrainingJob) -> bool:
    return bool(service_ports(job))


def services_begin_with(job: TrainingJob) -> str:
    """Users write these names into their manifests, so they are the plain ones."""
    return job.name


def labels(gang: Gang, member: Member) -> dict[str, str]:
    return {"genericjob": gang.job.name, "genericjob-replica": member.role}


# -- rules ---------------------------------------------------------------------------------------------------------


def _rules(gang: Gang, field: str) -> list[tuple[Mapping[str, list[str]], list[Member]]]:
    """Each rule, and the members it speaks of."""
    rules: Iterable[Mapping[str, list[str]]] = gang.job.options.get(field) or ()
    return [
        (rule, [Member(role, int(index)) for role, indexes in rule.items() for index in indexes or ()])
        for rule in rules
    ]


def finished_at(gang: Gang, done: Done) -> datetime | None:
    """When the first rule held; without one that can, when the last member succeeded."""
    held = [
        max(done[one] for one in members)
        for _, members in _rules(gang, "successRules")
        if members and all(one in done for one in members)
    ]
    if not held and all(one in done for one in gang.members):
        return max((done[one] for one in gang.members), default=gang.job.created_at)
    return min(held, default=None)


def doomed(gang: Gang, failed: Done) -> Doom | None:
    """A failure rule that holds, or members without which no success rule can."""
    for rule, members in _rules(gang, "failureRules"):
        if members and all(one in failed for one in members):
            last = max(members, key=lambda one: failed[one])
            said = json.dumps(
                {role: [str(index) for index in indexes] for role, indexes in rule.items()},
                separators=(",", ":"),
            )
            return Doom(failed[last], last, f"The job is failed with rule: {said}")
    needed = [members for _, members in _rules(gang, "successRules") if members] or [list(gang.members)]
    first = [
        min((one for one in members if one in failed), key=failed.__getitem__, default=None)
        for members in needed
    ]
    if any(one is None for one in first):
        return None
    last = max((one for one in first if one is not None), key=failed.__getitem__)
    return Doom(failed[last], last)


def complaints(job: TrainingJob) -> list[Cause]:
    unnumbered = [
        Cause(
            f"spec.service.ports[{number}].port", "Required value: say which port it is", "FieldValueRequired"
        )
        for number, port in enumerate(service_ports(job))
        if port.get("port") is None
    ]
    return unnumbered + [
        cause
        for field in ("successRules", "failureRules")
        for number, rule in enumerate(job.options.get(field) or ())
        for role, indexes in rule.items()
        for cause in _rule_complaints(job, f"spec.{field}[{number}].{role}", role, indexes or [])
    ]


def _rule_complaints(job: TrainingJob, path: str, role: str, indexes: list[object]) -> list[Cause]:
    found = job.role(role)
    if found is None:
        known = ", ".join(f'"{one.name}"' for one in job.roles)
        problem = f'Unsupported value: "{role}": supported values: {known}'
        return [Cause(path, problem, "FieldValueNotSupported", "rules speak of types in replicaSpecs")]
    bad = [index for index in indexes if not (str(index).isdecimal() and int(str(index)) < found.replicas)]
    return [
        Cause(path, f'Invalid value: "{index}": must be an index from 0 to {found.replicas - 1}')
        for index in bad
    ]


_RULES = array(
    mapping(array(int_or_string())), description="Each maps types to indexes; any rule that holds decides."
)

GENERIC = Framework(
    kind="GenericJob",
    plural="genericjobs",
    replicas_field="replicaSpecs",
    container="",
    counted_as="generic",
    port_name="",
    port=0,
    roles=(),
    wire=wire,
    leading=(),
    restart_policy="OnFailure",
    services=has_services,
    service_stem=services_begin_with,
    service_ports=service_ports,
    listeners=lambda _gang: (),
    finished_at=finished_at,
    doomed=doomed,
    options={
        "successRules": _RULES,
        "failureRules": _RULES,
        "service": obj(
            {
                "ports": array(
                    obj(
                        {
                            "name": string(),
                            "port": integer(),
                            "targetPort": int_or_string(),
                            "protocol": string(),
                        }
                    )
                )
            },
            description="With ports, every member has a service named <job>-<type>-<index>.",
        ),
    },
    refusals=Refusals(main=""),
    complaints=complaints,
    short_names=("gj",),
    limits_by_role=True,
    master_role=nobody,
    labels=labels,
)
