"""Where the Job Center is, as a command may say it."""

import sys
from pathlib import Path

from fullrank.home import Running, login_link


def job_center(home: Path, running: Running) -> str:
    """With the way in only where the owner alone reads it: on a terminal, never in a log."""
    return login_link(home, running) if sys.stdout.isatty() else f"{running.ui} (log in with `fullrank open`)"
