"""The API on a real socket over a store in memory, and the real kubectl to ask it."""

import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import anyio
import pytest

from fullrank.api.meta import Json
from fullrank.api.schema import (
    Schema,
    array,
    boolean,
    core_schema,
    integer,
    mapping,
    obj,
    string,
    whole_object,
)
from fullrank.api.scheme import Column, Kind, Scheme
from fullrank.clock import SystemClock
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.pki import Credentials, credentials
from fullrank.controlplane.questions import LogOptions
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.errors import Cause
from fullrank.listener import Bound, Streams

REPLICA = obj(
    {"replicas": integer(), "restartPolicy": string(), "template": core_schema("PodTemplateSpec")},
    required=("template",),
)


class SampleJob:
    """A kind of our own with printer columns, such as every training job has."""

    kind = Kind(
        "kubeflow.org", "v1", "PyTorchJob", "pytorchjobs", subresources=("status",),
        columns=(
            Column("State", ".status.conditions[-1:].type"),
            Column("Age", ".metadata.creationTimestamp", type="date"),
        ),
    )  # fmt: skip

    @property
    def schema(self) -> Schema:
        policy = obj({"suspend": boolean(default=False), "cleanPodPolicy": string()})
        spec = obj(
            {
                "pytorchReplicaSpecs": mapping(REPLICA, description="The roles of the job."),
                "runPolicy": policy,
            },
            required=("pytorchReplicaSpecs",),
        )
        status = obj({"conditions": array(obj({"type": string(), "status": string()}))})
        return whole_object(spec, status, description="A training job.")

    def complaints(self, obj: Json, old: Json | None = None) -> list[Cause]:  # noqa: ARG002
        roles = obj["spec"]["pytorchReplicaSpecs"]
        path = "spec.pytorchReplicaSpecs"
        return [] if roles else [Cause(path, "Required value: at least one role", "FieldValueRequired")]

    def warnings(self, obj: Json) -> list[str]:
        return ["fewer than two workers"] if not obj["spec"]["pytorchReplicaSpecs"].get("Worker") else []


class PretendedLogs:
    """Ten lines, whoever asks; a follower gets one more when it is let."""

    def __init__(self) -> None:
        self.more = anyio.Event()

    async def read(self, pod: Json, container: str, options: LogOptions) -> AsyncIterator[bytes]:  # noqa: ARG002
        lines = [f"{container} {number}\n" for number in range(10)]
        for line in lines[-options.tail :] if options.tail else lines:
            yield line.encode()
        if options.follow:
            await self.more.wait()
            yield b"more\n"


@dataclass(frozen=True)
class Said:
    """What a command printed, and how it ended."""

    out: str
    error: str
    code: int


@dataclass(frozen=True)
class Home:
    registry: Registry
    streams: Streams
    bound: Bound
    credentials: Credentials
    logs: PretendedLogs
    kubeconfig: Path
    kubectl_path: str

    def command(self, *words: str) -> list[str]:
        cache = self.kubeconfig.parent / "cache"
        return [self.kubectl_path, "--kubeconfig", str(self.kubeconfig), "--cache-dir", str(cache), *words]

    async def kubectl(self, *words: str, given: object = None) -> Said:
        """Runs it; `given` goes to its standard input as JSON."""
        text = json.dumps(given).encode() if given is not None else None
        done = await anyio.run_process(self.command(*words), input=text, check=False)
        return Said(done.stdout.decode(), done.stderr.decode(), done.returncode)


def kubectl_path() -> str:
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    found = shutil.which("kubectl", path=assets) if assets else None
    found = found or shutil.which("kubectl")
    if found is None:
        pytest.skip("no kubectl: put one on PATH or name its folder in KUBEBUILDER_ASSETS")
    return found


@asynccontextmanager
async def home(folder: Path, *, kubectl: str = "kubectl") -> AsyncIterator[Home]:
    clock, numbers, pretended = SystemClock(), count(1), PretendedLogs()
    admission = Admission([SampleJob()])
    store = Store(":memory:", inline=True)
    registry = Registry(store, Scheme(admission.kinds), clock, lambda: f"uid-{next(numbers)}", admission)
    await ensure_namespaces(registry)
    keys = credentials(folder / "pki", clock.now())
    api = Api(registry, admission, Access(keys.token), pretended, clock)
    async with serving(api, keys.server_context()) as bound:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(json.dumps(kubeconfig_for(bound, keys, {"token": keys.token})))
        yield Home(registry, api.streams, bound, keys, pretended, kubeconfig, kubectl)
    store.close()


def kubeconfig_for(bound: Bound, keys: Credentials, user: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "x", "cluster": {"server": bound.url, "certificate-authority": str(keys.ca)}}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}],
        "current-context": "x",
    }
