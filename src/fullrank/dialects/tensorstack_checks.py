"""What batch.tensorstack.dev/v1beta1 refuses beyond its schema, every complaint at once."""

from collections.abc import Iterator

from fullrank.api.jobs import TrainingJob
from fullrank.api.meta import Json
from fullrank.api.names import label_name
from fullrank.api.tensorboards import board_complaints
from fullrank.dialects.checks import name_complaints, replica_complaints, unsupported
from fullrank.errors import Cause
from fullrank.frameworks.contract import Framework, Gang

PATH = "spec.replicaSpecs"
HIGHEST_PRIORITY = 100
FIXED = (
    ("runMode", "pause", "resumeSpecs"),
    ("elastic", "minReplicas"),
    ("elastic", "maxReplicas"),
)  # what is said once and for all


def complaints_of(framework: Framework, obj: Json, old: Json | None, job: TrainingJob) -> list[Cause]:
    spec: Json = obj.get("spec") or {}
    written: list[Json] = spec.get("replicaSpecs") or []
    found = [*name_complaints(Gang(job, framework)), *_scheduler_complaints(spec), *_edits(spec, old)]
    if (board := spec.get("tensorboardSpec")) is not None:
        found += board_complaints(board, "spec.tensorboardSpec")
    if not written:
        known = f"one of type {' or '.join(framework.roles)}" if framework.roles else "at least one"
        return [
            *found,
            Cause(PATH, "Required value: must have members", "FieldValueRequired", f"add {known}"),
        ]
    roles = [*_type_complaints(framework, job)]
    for index, one in enumerate(written):
        roles += replica_complaints(framework, f"{PATH}[{index}]", job.roles[index].name, one)
    roles += _mode_complaints(spec, job)
    return [*found, *(roles or framework.complaints(job))]


def _type_complaints(framework: Framework, job: TrainingJob) -> Iterator[Cause]:
    first: dict[str, int] = {}
    for index, role in enumerate(job.roles):
        path, name = f"{PATH}[{index}].type", role.name
        if framework.roles and name not in framework.roles:
            yield unsupported(path, name, framework.roles)
        elif problems := label_name(name.lower()):
            yield from (Cause(path, f'Invalid value: "{name}": {problem}') for problem in problems)
        elif first.setdefault(name.lower(), index) != index:
            problem = f'Duplicate value: "{name}": the same type as in {PATH}[{first[name.lower()]}]'
            yield Cause(path, problem, "FieldValueDuplicate", "say how many with replicas")


def _mode_complaints(spec: Json, job: TrainingJob) -> Iterator[Cause]:
    known = [role.name for role in job.roles]
    modes: Json = spec.get("runMode") or {}
    for mode, field in (("debug", "replicaSpecs"), ("pause", "resumeSpecs")):
        for index, one in enumerate((modes.get(mode) or {}).get(field) or ()):
            if one["type"].lower() not in (name.lower() for name in known):
                yield unsupported(f"spec.runMode.{mode}.{field}[{index}].type", one["type"], known)


def _scheduler_complaints(spec: Json) -> Iterator[Cause]:
    priority = ((spec.get("scheduler") or {}).get("t9kScheduler") or {}).get("priority") or 0
    if priority > HIGHEST_PRIORITY:
        path = "spec.scheduler.t9kScheduler.priority"
        yield Cause(path, f"Invalid value: {priority}: must be at most {HIGHEST_PRIORITY}")


def _edits(spec: Json, old: Json | None) -> Iterator[Cause]:
    for path in FIXED if old else ():
        if _at(spec, path) != _at((old or {}).get("spec") or {}, path):
            hint = "it is fixed when the job is made: make the job anew"
            yield Cause(
                f"spec.{'.'.join(path)}", "Forbidden: field is immutable", "FieldValueForbidden", hint
            )


def _at(spec: Json, path: tuple[str, ...]) -> object:
    found: object = spec
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def warnings_of(obj: Json) -> list[str]:
    modes: Json = (obj.get("spec") or {}).get("runMode") or {}
    return [
        f"spec.runMode.{mode}.enable is read as spec.runMode.{mode}.enabled"
        for mode in ("debug", "pause")
        if "enable" in (modes.get(mode) or {})
    ]
