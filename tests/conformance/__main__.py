"""`python -m tests.conformance [api|nodes] [REGEX]`: Kubernetes' own conformance tests against a fresh home.

Which ones is said by api.txt and nodes.txt. The programs come with Kubernetes (`e2e.test`, `agnhost` and `kubectl` in
$KUBEBUILDER_ASSETS) and are run as they are; the images that the tests' pods name come from `images.py`.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from tests.conformance.images import furnish

HERE = Path(__file__).parent
LISTS = ("api", "nodes")
LONGEST = "60m"


def main(argv: list[str]) -> int:
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not assets or not (Path(assets) / "e2e.test").exists():
        _say("conformance: KUBEBUILDER_ASSETS must name a folder with e2e.test, agnhost and kubectl")
        return 2
    lists = [word for word in argv if word in LISTS] or list(LISTS)
    pattern = next((word for word in argv if word not in LISTS), "")
    lines = [line for each in lists for line in (HERE / f"{each}.txt").read_text().splitlines()]
    chosen = [line for line in lines if line.startswith("[") and re.search(pattern, line)]
    unable = [line for line in lines if line.startswith("- ")]
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as scratch,
        home(Path(scratch) / "home", Path(assets)) as kubeconfig,
    ):
        report = Path(scratch) / "report"
        log = ask(Path(assets), kubeconfig, report, chosen)
        passed, failed = verdict(report)
    for name in failed:
        _say(f"failed: {name}")
    if failed or not passed:
        _say(log[-20_000:])
    _say(f"{passed} passed, {len(failed)} failed, {len(unable)} cannot pass by design")
    return int(bool(failed) or not passed)


@contextmanager
def home(folder: Path, assets: Path) -> Iterator[Path]:
    folder.mkdir(mode=0o700)
    furnish(folder, assets)
    environment = {**os.environ, "FULLRANK_HOME": str(folder)}
    fullrank = [sys.executable, "-m", "fullrank"]
    subprocess.run(
        [*fullrank, "up", "--detach", "--port", "0", "--ui-port", "0"], env=environment, check=True
    )
    try:
        yield folder / "kubeconfig"
    finally:
        subprocess.run([*fullrank, "down"], env=environment, check=True)


def ask(assets: Path, kubeconfig: Path, report: Path, names: list[str]) -> str:
    words = [
        str(assets / "e2e.test"),
        "--provider=skeleton",
        f"--kubeconfig={kubeconfig}",
        f"--kubectl-path={assets / 'kubectl'}",
        f"--ginkgo.focus={'|'.join(re.escape(name) for name in names)}",
        f"--ginkgo.timeout={LONGEST}",
        "--ginkgo.no-color",
        f"--report-dir={report}",
        "--kube-api-content-type=application/json",
        "--allowed-not-ready-nodes=-1",
        "--disable-log-dump",
    ]
    path = f"{assets}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        words,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def verdict(report: Path) -> tuple[int, list[str]]:
    passed, failed = 0, []
    for path in report.glob("junit*.xml"):
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            name = case.get("name", "")
            if not name.startswith("[It]") or case.find("skipped") is not None:
                continue
            if case.find("failure") is None and case.find("error") is None:
                passed += 1
            else:
                failed.append(name.removeprefix("[It] "))
    return passed, sorted(failed)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
