"""`python -m tests.oracle [WORD…]`: our operator beside training-operator v1.8.1; cases whose names have a WORD, or all."""

import sys
import tempfile
import time
from pathlib import Path

import anyio

from tests.cluster.control_plane import Cluster, cluster, install, our_operator, training_operator
from tests.contract.kubernetes import NEEDED, assets
from tests.oracle.cases import CASES, Case
from tests.oracle.compare import Difference
from tests.oracle.expected import TABLE, tally, unexpected
from tests.oracle.stage import OURS, THEIRS, stage


def main(words: list[str]) -> int:
    binaries = assets()
    if binaries is None:
        sys.exit(NEEDED)
    chosen = {name: case for name, case in CASES.items() if not words or any(word in name for word in words)}
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="fullrank-oracle-") as folder,
        cluster(binaries, Path(folder)) as one,
    ):
        install(one)
        for namespace in (THEIRS, OURS):
            one.namespace(namespace)
        with training_operator(one, THEIRS), our_operator(one, OURS):
            found = anyio.run(_played, one, chosen)
    wrong = unexpected(found)
    sys.stdout.write("".join(f"{each}\n" for each in wrong))
    counts = tally(found)
    sys.stdout.write(
        "\nmeant to differ:\n"
        + "".join(f"  {counts[name]:4}  {name}: {TABLE[name].reason}\n" for name in TABLE)
    )
    took = time.monotonic() - began
    sys.stdout.write(f"\n{len(chosen)} cases, {len(wrong)} differences that are not meant, {took:.0f} s\n")
    return 1 if wrong else 0


async def _played(one: Cluster, chosen: dict[str, Case]) -> list[Difference]:
    async with stage(one.connection) as both:
        return await both.play_all(chosen.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
