"""No job, however odd, stops the controller for the others: whatever the schema lets through is read and decided on."""

import logging
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fullrank.api.meta import Json, owner_reference, stamp
from fullrank.api.schema import Schema, complaints
from fullrank.dialects.contract import JobKind
from fullrank.dialects.registry import JOB_KINDS
from fullrank.errors import FullrankError
from fullrank.frameworks.contract import main_container
from fullrank.planning.desired import companions_for, pod_for, service_for
from fullrank.planning.plan import CreatePod, CreateService
from fullrank.planning.rules import plan
from fullrank.planning.scene import scene_of
from tests.build import NOW, a_job
from tests.unit.world import World, a_world

NUMBERS = (-(2**31), -1, 0, 1, 2, 3, 10_001, 2**31 - 1)
WORDS = (
    "", "a", "0", "-1", "1,x", "0-3", "auto", "None", "All", "Never", "ExitCode", "Sometimes", "AllWorkers", "../x",
    "名", "a" * 70, "$(type)", "$(service.a[0].host)", "{count}", "{", "MXTune", "etcd",
)  # fmt: skip
LOOKED_AT = {  # of pod templates, which have hundreds of fields that nobody here looks at
    "PodSpec": ("containers", "initContainers", "volumes", "restartPolicy", "serviceAccountName"),
    "Container": ("name", "image", "command", "args", "env", "ports", "resources", "volumeMounts"),
}
KINDS = {one.kind.kind: one for one in JOB_KINDS}


def values(schema: Schema, names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    """Anything that the schema allows; `names` are keys and texts that mean something to the kind."""
    if schema.enum:
        return st.sampled_from(schema.enum)
    if schema.format == "date-time":
        return st.just(stamp(NOW))
    match schema.type:
        case "string" | "int-or-string":
            return st.sampled_from((*WORDS, *names))
        case "integer":
            lowest = -(2**31) if schema.minimum is None else schema.minimum
            return st.sampled_from([one for one in NUMBERS if one >= lowest])
        case "boolean":
            return st.booleans()
        case "quantity":
            return st.sampled_from(("1", "500m", "-1", "1e3"))
        case "array" if schema.items:
            return st.lists(values(schema.items, names), max_size=2)
        case "object":
            return _objects(schema, names)
    return st.just({})


def _objects(schema: Schema, names: tuple[str, ...]) -> st.SearchStrategy[Any]:
    if schema.additional:
        keys = st.sampled_from((*names, *WORDS))
        return st.dictionaries(keys, values(schema.additional, names), max_size=3)
    kept = LOOKED_AT.get(schema.name.rpartition(".")[2], tuple(schema.properties))
    fields = {name: values(schema.properties[name], names) for name in kept if name in schema.properties}
    needed = {name: fields.pop(name) for name in schema.required if name in fields}
    return st.fixed_dictionaries(needed, optional=fields)


def names_of(job_kind: JobKind) -> tuple[str, ...]:
    framework = job_kind.framework
    roles = (*framework.roles, *(role.lower() for role in framework.roles))
    return (*roles, *(one for one in (framework.container, framework.port_name) if one), "main")


@st.composite
def odd_jobs(draw: st.DrawFn, kind: str) -> Json:
    """A proper job with a few parts exchanged for whatever its schema allows, or nothing but that."""
    job_kind = KINDS[kind]
    parts, names = job_kind.schema.properties, names_of(job_kind)
    roles = draw(st.sets(st.sampled_from(job_kind.framework.roles or ("a", "b")), min_size=1))
    job = a_job(kind, dict.fromkeys(sorted(roles), 1))
    spec = draw(values(parts["spec"], names))
    kept = draw(st.sets(st.sampled_from(sorted(job["spec"]))))
    job["spec"] = spec | {name: job["spec"][name] for name in kept}
    if draw(st.booleans()):
        job["status"] = draw(values(parts["status"], names))
    return job


def an_odd_pod(job: Json, role: str, index: str) -> Json:
    prefix = "training.kubeflow.org/" if job["apiVersion"] == "kubeflow.org/v1" else ""
    labels = {f"{prefix}replica-type": role, f"{prefix}replica-index": index}
    return {
        "metadata": {"name": "odd", "uid": "odd", "labels": labels},
        "spec": {"containers": [{"name": "odd"}]},
        "status": {"phase": "Failed"},
    }


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_whatever_the_schema_allows_is_read_and_decided_on(kind: str, data: st.DataObject) -> None:
    job_kind, job = KINDS[kind], data.draw(odd_jobs(kind))
    assert complaints(job, job_kind.schema) == []
    role, index = (
        data.draw(st.sampled_from((*names_of(job_kind), "a"))),
        data.draw(st.sampled_from(("0", "-1", "x", "٣"))),
    )
    scene = scene_of(job_kind, job, [an_odd_pod(job, role.lower(), index)], [], NOW)
    job_kind.warnings(job)
    job_kind.state(job)
    if job_kind.complaints(job) and not scene.job.status.finished:
        return
    decision = plan(scene)
    status = decision.status(scene, job.get("status") or {})
    assert complaints(status, job_kind.schema.properties["status"]) == []
    for action in decision.actions[:4]:
        if isinstance(action, CreatePod):
            assert main_container(
                pod_for(job_kind, scene.gang, action.member, owner_reference(job)), scene.gang.framework
            )
        elif isinstance(action, CreateService):
            service_for(job_kind, scene.gang, action.member, owner_reference(job))
    companions_for(scene.gang, (), owner_reference(job))


@settings(max_examples=6, deadline=None)
@given(odd=st.lists(st.sampled_from(sorted(KINDS)).flatmap(odd_jobs), min_size=1, max_size=4))
def test_odd_jobs_stop_nobody(odd: list[Json]) -> None:
    """On a cluster nobody checks jobs at the door but for their schema. None is our own mistake in the log."""
    mistakes = list[str]()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            mistakes.append(record.getMessage())

    async def together() -> None:
        async with a_world(checked=False) as world:
            for number, job in enumerate(odd):
                await create(world, job, f"odd-{number}")
            key = await world.submit(a_job("PyTorchJob", {"Master": 1}))
            await world.seen(lambda: world.client.get(key))

            async def made() -> bool:
                return "demo-master-0" in await world.names(world.lookout.pods.kind)

            await world.seen(made)
            await world.set_phase("demo-master-0", "Running")
            await world.until(key, "Created Running")

    listener = Listener(logging.ERROR)
    logging.getLogger("fullrank").addHandler(listener)
    try:
        anyio.run(together)
    finally:
        logging.getLogger("fullrank").removeHandler(listener)
    assert mistakes == []


async def create(world: World, job: Json, name: str) -> None:
    """As an API server takes it in; names and labels that cannot be are refused there."""
    fresh = job | {"metadata": {"name": name, "namespace": "kubeflow"}}
    status = fresh.pop("status", None)
    kind = KINDS[job["kind"]].kind
    try:
        made = await world.client.create(kind, fresh)
        if status:
            await world.client.replace(kind, made | {"status": status}, subresource="status")
    except FullrankError:
        return
