"""What tests do with a home: run the program and kubectl in it, and wait for what they want to see."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

PATIENCE = 120.0


@dataclass(frozen=True)
class House:
    home: Path

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "FULLRANK_HOME": str(self.home),
            "FULLRANK_PORT": "0",
            "FULLRANK_UI_PORT": "0",
            "KUBECONFIG": str(self.home / "kubeconfig"),
        }

    def run(
        self, *words: str, check: bool = True, stdin: str | None = None, patience: float = PATIENCE * 2
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            words,
            env=self.environ,
            text=True,
            capture_output=True,
            check=False,
            input=stdin,
            timeout=patience,
        )
        assert not check or done.returncode == 0, (
            f"{' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done

    def fullrank(
        self, *words: str, check: bool = True, stdin: str | None = None, patience: float = PATIENCE * 2
    ) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "fullrank", *words, check=check, stdin=stdin, patience=patience)

    def up(self) -> int:
        """Brings the control plane up in the background; its process id."""
        self.fullrank("up", "--detach")
        pid: int = json.loads(self.fullrank("status", "-o", "json").stdout)["pid"]
        return pid

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.wait_for(lambda: self.fullrank("status", check=False).returncode == 1)

    def wait_for(self, happened: Callable[[], Any]) -> Any:
        """What the question answers once that is something."""
        deadline = monotonic() + PATIENCE
        while not (answer := happened()):
            assert monotonic() < deadline, f"{happened} did not happen within {PATIENCE:g} s"
            sleep(0.05)
        return answer
