"""A control plane alone, as a process that can be killed: store, registry and API of a home, without its pods.

`python -m tests.histories.server FOLDER [KEEP]`; history is KEEP changes long, and bookmarks come often.
"""

import asyncio
import sys
import uuid
from pathlib import Path

import anyio

from fullrank.api.scheme import Scheme
from fullrank.clock import SystemClock
from fullrank.controlplane import streams
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.pki import credentials
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.dialects.registry import SUBMITTED_KINDS
from tests.contract.conftest import NoLogs


async def main(folder: Path, keep: int) -> None:
    clock, admission, store = SystemClock(), Admission(SUBMITTED_KINDS), Store(folder / "state.db", keep=keep)
    registry = Registry(store, Scheme(admission.kinds), clock, lambda: str(uuid.uuid4()), admission)
    keys = credentials(folder / "pki", clock.now())
    api = Api(registry, admission, Access(keys.token), NoLogs(), clock)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.run)
        await ensure_namespaces(registry)
        async with serving(api, keys.server_context()) as bound:
            sys.stdout.write(f"fullrank is up at {bound.url}\n")
            sys.stdout.flush()
            await anyio.sleep_forever()


if __name__ == "__main__":
    streams.BOOKMARK_EVERY = 0.1
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000))
