"""The operator: our controllers as a client of somebody else's Kubernetes, which schedules and runs the pods."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from fullrank.api.scheme import LEASE
from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection
from fullrank.client.port import Key
from fullrank.clock import SystemClock
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.jobs import JobController
from fullrank.controllers.leader import Leader
from fullrank.controllers.lookout import Lookout
from fullrank.dialects.registry import JOB_KINDS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator is started with; an empty namespace means all of them."""

    connection: Connection
    identity: str  # which of several operators this is
    namespace: str = ""
    domain: str = ""  # the cluster's, where members' names are to be written out

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks after the cluster's jobs until the block is left; entered once it leads and has seen what there is."""
        clock = SystemClock()
        job_kinds = tuple(replace(one, domain=self.domain) for one in JOB_KINDS)
        async with HttpClient(self.connection) as client:
            companions = companion_kinds(job_kinds)
            lookout = Lookout(client, job_kinds, companions, namespace=self.namespace, nodes=False)
            controller = JobController(client, lookout, clock)
            leader = Leader(client, clock, self._lease(), self.identity)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lookout.run)
                await lookout.synced()  # who waits to lead has looked around already
                async with leader.leading():
                    tasks.start_soon(controller.run)
                    log.info("looking after jobs in %s", self.namespace or "all namespaces")
                    try:
                        yield
                    finally:
                        tasks.cancel_scope.cancel()

    def _lease(self) -> Key:
        """Beside the operator; those of different namespaces do not wait for each other."""
        name = f"fullrank-operator-{self.namespace}" if self.namespace else "fullrank-operator"
        return Key(LEASE, self.connection.namespace, name)
