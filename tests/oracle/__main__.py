"""`python -m tests.oracle [--all] [WORD…]`: ours beside training-operator v1.8.1.

All cases are played, or those whose names have a WORD. With --all the differences that are meant are shown too.
"""

import signal
import sys
import tempfile
import time
from pathlib import Path

import anyio

from fullrank.client.kubeconfig import Connection
from tests.cluster.control_plane import cluster, install, our_operator, training_operator
from tests.contract.kubernetes import NEEDED, assets
from tests.oracle.cases import Case
from tests.oracle.catalogue import CASES
from tests.oracle.compare import Difference
from tests.oracle.expected import TABLE, tally, unexpected
from tests.oracle.stage import OURS, THEIRS, stage

VERBOSE = "--all"


def main(words: list[str]) -> int:
    binaries = assets()
    if binaries is None:
        sys.exit(NEEDED)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the cluster is taken down
    words = [word for word in words if word != VERBOSE]
    chosen = {name: case for name, case in CASES.items() if not words or any(word in name for word in words)}
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fullrank-oracle-") as folder,
        cluster(binaries, Path(folder)) as one,
    ):
        install(one)
        for namespace in (THEIRS, OURS):
            one.namespace(namespace)
        with training_operator(one, THEIRS) as theirs, our_operator(one, OURS) as ours:
            found = anyio.run(_played, one.connection, chosen, (theirs, ours))
    return _summary(len(chosen), found, time.monotonic() - began)


async def _played(
    connection: Connection, chosen: dict[str, Case], operators: tuple[int, ...]
) -> list[Difference]:
    async with stage(connection, operators) as both:
        return await both.play_all(chosen.items(), tell=_tell)


def _tell(name: str, found: list[Difference]) -> None:
    wrong = found if VERBOSE in sys.argv else unexpected(found)
    print(f"{'differs' if wrong else 'same   '}  {name}", flush=True)  # noqa: T201
    for each in wrong:
        print(f"  {each}")  # noqa: T201


def _summary(cases: int, found: list[Difference], seconds: float) -> int:
    wrong, counts = unexpected(found), tally(found)
    print("\nmeant to differ:")  # noqa: T201
    for name, one in TABLE.items():
        print(f"  {counts[name]:4}  {name}: {one.reason}")  # noqa: T201
    idle = (
        [name for name, one in TABLE.items() if not (counts[name] or one.by_chance)]
        if cases == len(CASES)
        else []
    )
    for name in idle:
        print(f"nothing differs any more in: {name}")  # noqa: T201
    print(f"\n{cases} cases in {seconds:.0f} s, {len(wrong)} differences that are not meant")  # noqa: T201
    return 1 if wrong or idle else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
