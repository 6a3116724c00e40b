"""The long run: `python -m tests.soak [histories] [jobs] [doors] [--kills N] [--seed N]` (what `make soak` does).

Servers are killed at moments that chance chooses. A seed makes the same choices again.
"""

import argparse
import sys

from tests.soak.doors import assaulted
from tests.soak.histories import killed_while_writing
from tests.soak.jobs import killed_while_training

PARTS = ("histories", "jobs", "doors")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all unless named")
    parser.add_argument("--kills", type=int, help="200 for histories and 100 for jobs unless given")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    found: list[str] = []
    if "histories" in (asked.parts or PARTS):
        found += killed_while_writing(asked.kills or 200, asked.seed)
    if "jobs" in (asked.parts or PARTS):
        found += killed_while_training(asked.kills or 100, asked.seed)
    if "doors" in (asked.parts or PARTS):
        found += assaulted(asked.seed)
    sys.exit("\n".join(found) or 0)


if __name__ == "__main__":
    main()
