"""The operator: our controllers as a client of somebody else's Kubernetes, which schedules and runs the pods."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from secrets import token_hex

import anyio

from fullrank.api.scheme import LEASE
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection
from fullrank.client.port import Key
from fullrank.clock import SystemClock
from fullrank.controllers.apps import AppController
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.counters import Counters
from fullrank.controllers.jobs import JobController
from fullrank.controllers.jupyter import ask_jupyter
from fullrank.controllers.leader import Leader
from fullrank.controllers.lookout import Lookout
from fullrank.controllers.probes import probes
from fullrank.dialects.registry import APP_KINDS, JOB_KINDS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator is started with; an empty namespace means all of them."""

    connection: Connection
    identity: str  # which of several operators this is
    namespace: str = ""
    domain: str = ""  # the cluster's, where members' names are to be written out
    metrics: str = "0"  # where it tells what it counts; 0: nowhere
    health: str = "0"  # where it tells that it lives; likewise

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks after the cluster's jobs until the block is left; entered once it leads and has seen what there is."""
        clock = SystemClock()
        job_kinds = tuple(replace(one, domain=self.domain) for one in JOB_KINDS)
        async with HttpClient(self.connection) as client:
            companions = companion_kinds(job_kinds)
            lookout = Lookout(client, job_kinds, companions, namespace=self.namespace, nodes=False)
            counters = Counters()
            controller = JobController(client, lookout, clock, counters=counters)
            apps = AppController(
                client,
                clock,
                APP_KINDS,
                new_token=token_hex,
                ask=ask_jupyter,
                namespace=self.namespace,
            )
            leader = Leader(client, clock, self._lease(), self.identity)
            async with (
                probes(self.metrics, self.health, counted=counters.text, ready=lambda: lookout.complete),
                anyio.create_task_group() as tasks,
            ):
                tasks.start_soon(lookout.run)
                await lookout.synced()  # who waits to lead has looked around already
                async with leader.leading():
                    tasks.start_soon(controller.run)
                    tasks.start_soon(apps.run)
                    log.info("looking after jobs in %s", self.namespace or "all namespaces")
                    try:
                        yield
                    finally:
                        tasks.cancel_scope.cancel()

    def _lease(self) -> Key:
        """Beside the operator; those of different namespaces do not wait for each other."""
        name = f"fullrank-operator-{self.namespace}" if self.namespace else "fullrank-operator"
        return Key(LEASE, self.connection.namespace, name)
