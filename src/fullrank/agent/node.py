"""This machine as a Node: what it has, and that it is well."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

import psutil

from fullrank.api.meta import Json, annotations_of, stamp
from fullrank.api.scheme import NODE
from fullrank.client.port import Client, Key
from fullrank.clock import Clock
from fullrank.errors import AlreadyExists, Conflict, NotFound

MOST_PODS = 1000
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
CONDITIONS = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    "Ready": ("True", "KubeletReady", "kubelet is posting ready status"),
}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the agent is told of the machine it is on; cores and memory it finds out."""

    name: str
    version: str
    address: str = "127.0.0.1"
    runtime: str = "process"
    resources: Mapping[str, str] = field(default_factory=dict)  # e.g. nvidia.com/gpu
    annotations: Mapping[str, str] = field(default_factory=dict)


class NodePost:
    """Keeps the Node object of this machine true."""

    def __init__(self, client: Client, clock: Clock, machine: Machine) -> None:
        self._client = client
        self._clock = clock
        self._key = Key(NODE, "", machine.name)
        self._machine = machine
        self.capacity: Mapping[str, str] = {**machine_capacity(), **machine.resources}

    async def announce(self) -> None:
        """Registers the node if it is not, and says that it is well now; a heartbeat changes nothing but times."""
        try:
            node = await self._client.get(self._key)
        except NotFound:
            node = await self._register()
        status: Json = node.get("status") or {}
        wanted = {**status, **self._facts(), "conditions": conditions(status, self._clock.now())}
        try:
            noted = {**annotations_of(node), **self._machine.annotations}
            metadata = node["metadata"] | ({"annotations": noted} if noted else {})
            whole = {**node, "metadata": metadata, "status": wanted}
            await self._client.replace(NODE, whole, subresource="status")
        except (Conflict, NotFound):
            return  # somebody wrote or deleted it this moment: the next heartbeat sees to it

    async def _register(self) -> Json:
        system, machine = platform.system().lower(), ARCHITECTURES.get(platform.machine(), platform.machine())
        labels = {
            "kubernetes.io/hostname": self._key.name,
            "kubernetes.io/os": system,
            "kubernetes.io/arch": machine,
        }
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self._key.name, "labels": labels},
            "spec": {},
        }
        try:
            return await self._client.create(NODE, node)
        except AlreadyExists:
            return await self._client.get(self._key)

    def _facts(self) -> Json:
        return {
            "capacity": dict(self.capacity),
            "allocatable": dict(self.capacity),
            "addresses": [
                {"type": "InternalIP", "address": self._machine.address},
                {"type": "Hostname", "address": self._key.name},
            ],
            "nodeInfo": {
                "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
                "operatingSystem": platform.system().lower(),
                "osImage": _os_image(),
                "kernelVersion": platform.release(),
                "containerRuntimeVersion": f"{self._machine.runtime}://{self._machine.version}",
                "kubeletVersion": f"v{self._machine.version}+fullrank",
                "kubeProxyVersion": "",
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
            },
        }


def conditions(status: Json, now: datetime) -> list[Json]:
    old: dict[str, Json] = {one["type"]: one for one in status.get("conditions") or []}
    return [
        {
            "type": kind,
            "status": holds,
            "lastHeartbeatTime": stamp(now),
            "lastTransitionTime": old[kind]["lastTransitionTime"]
            if kind in old and old[kind]["status"] == holds
            else stamp(now),
            "reason": reason,
            "message": message,
        }
        for kind, (holds, reason, message) in CONDITIONS.items()
    ]


def machine_capacity() -> dict[str, str]:
    """What this process may use: its cores, the machine's memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1
    return {"cpu": str(cores), "memory": f"{psutil.virtual_memory().total // 1024}Ki", "pods": str(MOST_PODS)}


def _os_image() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", platform.platform())
    except OSError:
        return platform.platform()
