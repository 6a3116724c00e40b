"""The operator: our controllers as a client of somebody else's Kubernetes, which schedules and runs the pods."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from fullrank.client.http import HttpClient
from fullrank.client.kubeconfig import Connection
from fullrank.clock import SystemClock
from fullrank.controllers.companions import companion_kinds
from fullrank.controllers.jobs import JobController
from fullrank.controllers.lookout import Lookout
from fullrank.dialects.registry import JOB_KINDS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator is started with; an empty namespace means all of them."""

    connection: Connection
    namespace: str = ""
    domain: str = ""  # the cluster's, where members' names are to be written out

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Looks after the cluster's jobs until the block is left; entered once everything there is has been seen."""
        clock = SystemClock()
        job_kinds = tuple(replace(one, domain=self.domain) for one in JOB_KINDS)
        async with HttpClient(self.connection) as client, anyio.create_task_group() as tasks:
            companions = companion_kinds(job_kinds)
            lookout = Lookout(client, job_kinds, companions, namespace=self.namespace, nodes=False)
            controller = JobController(client, lookout, clock)
            tasks.start_soon(lookout.run)
            await lookout.synced()
            tasks.start_soon(controller.run)
            log.info("looking after jobs in %s", self.namespace or "all namespaces")
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
