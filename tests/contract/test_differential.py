"""The same commands to a home and to a real kube-apiserver: what is printed, and how it ends, is the same.

Times, ids, revisions, addresses and ports are masked. What stays different is listed in `scenes.DIFFERENCES`, each with
its reason, and must indeed be different: a difference that has gone is taken off the list.
"""

import json
import re
import shlex
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal

from fullrank.api.meta import Json
from fullrank.api.scheme import Scheme
from fullrank.client.kubeconfig import Connection, Credentials
from fullrank.client.kubeconfig import write as write_kubeconfig
from fullrank.clock import SystemClock
from fullrank.controlplane import pki
from fullrank.controlplane.access import Access
from fullrank.controlplane.admission import Admission
from fullrank.controlplane.registry import Registry, ensure_namespaces
from fullrank.controlplane.routes import Api
from fullrank.controlplane.server import serving
from fullrank.controlplane.store import Store
from fullrank.dialects.registry import JOB_KINDS
from fullrank.install import job_definition
from tests.contract.kubernetes import NEEDED, assets, kubernetes
from tests.contract.scenes import DIFFERENCES, FILES, SCENES
from tests.contract.serving import PretendedLogs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(180)]

MASKS = {
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}": "UID",
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4})": "TIME",
    r"\b(Sun|Mon|Tue|Wed|Thu|Fri|Sat), \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}": "TIME",
    r'(resourceVersion"?: ?"?)\d+': r"\1REVISION",
    r"127\.0\.0\.1:\d+": "ADDRESS",
    r"\b\d+d(\d+h)?\b|\b\d+[hms](\d+[ms])?\b": "AGE",
    r"(g-)[a-z0-9]{5}\b": r"\1SUFFIX",
    r"/tmp/\S+": "PATH",
    r" +": " ",
}
# No plugin of a cluster adds to pods here: neither tokens, nor tolerations, nor numbers of priorities.
UNADORNED = "--disable-admission-plugins=Priority,DefaultTolerationSeconds"


@dataclass(frozen=True)
class Side:
    kubectl: str
    kubeconfig: Path
    folder: Path

    def ask(self, words: list[str]) -> str:
        command = [
            self.kubectl,
            "--kubeconfig",
            str(self.kubeconfig),
            "--cache-dir",
            str(self.kubeconfig) + ".cache",
        ]
        done = subprocess.run(
            [*command, *words], cwd=self.folder, capture_output=True, text=True, timeout=60, check=False
        )
        return f"{done.stdout}{done.stderr}exit code {done.returncode}"


@asynccontextmanager
async def home(folder: Path) -> AsyncIterator[Connection]:
    admission, clock, store = Admission(JOB_KINDS), SystemClock(), Store(":memory:", inline=True)
    registry = Registry(store, Scheme(admission.kinds), clock, lambda: str(uuid.uuid4()), admission)
    await ensure_namespaces(registry)
    keys = pki.credentials(folder / "pki", clock.now())
    api = Api(registry, admission, Access(keys.token), PretendedLogs(), clock)
    async with serving(api, keys.server_context()) as bound:
        yield Connection(bound.url, ca=keys.ca.read_text(), credentials=Credentials(token=keys.token))
    store.close()


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    binaries = assets()
    if binaries is None or not (binaries / "kubectl").exists():
        pytest.skip(NEEDED)
    folder = tmp_path_factory.mktemp("differential")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with (
        kubernetes(binaries, tmp_path_factory.mktemp("kubernetes"), UNADORNED) as theirs,
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(home(folder)) as ours,
    ):
        both = (
            Side(str(binaries / "kubectl"), folder / "ours.kubeconfig", folder),
            Side(str(binaries / "kubectl"), folder / "theirs.kubeconfig", folder),
        )
        for side, connection in zip(both, (ours, theirs), strict=True):
            write_kubeconfig(side.kubeconfig, connection, "x")
        _serve_our_kinds(both[1])
        yield both


def _serve_our_kinds(cluster: Side) -> None:
    made = [job_definition(each) for each in JOB_KINDS if each.kind.group == "kubeflow.org"]
    listed: Json = {"apiVersion": "v1", "kind": "List", "items": made}
    (cluster.folder / "definitions.json").write_text(json.dumps(listed))
    cluster.ask(["create", "-f", "definitions.json"])
    cluster.ask(["wait", "--for=condition=Established", "crd", "--all", "--timeout=30s"])


def masked(text: str) -> str:
    for pattern, word in MASKS.items():
        text = re.sub(pattern, word, text)
    return text


@pytest.mark.parametrize("scene", SCENES)
def test_both_sides_say_the_same(sides: tuple[Side, Side], scene: str) -> None:
    space = re.sub("[^a-z]+", "-", scene)
    _prepare(*sides, space)
    different = []
    with ThreadPoolExecutor(2) as together:
        for line in filter(None, SCENES[scene].splitlines()):
            words = ["-n", space, *words_of(line)]
            ours, theirs = (masked(said) for said in together.map(lambda side: side.ask(words), sides))  # noqa: B023
            if agree(ours, theirs) == (line in DIFFERENCES):
                told = "\n".join(_lines_that_differ(ours, theirs)) or "no longer different"
                different.append(f"$ kubectl {line}\n{told}")
    assert not different, "\n\n".join(different)


def _prepare(ours: Side, theirs: Side, space: str) -> None:
    """A namespace on both sides; what controllers would put into it there is put into it by hand."""
    for side in (ours, theirs):
        side.ask(["create", "namespace", space])
    theirs.ask(["-n", space, "create", "configmap", "kube-root-ca.crt", "--from-literal=ca.crt="])
    theirs.ask(["-n", space, "create", "serviceaccount", "default"])


def words_of(line: str) -> list[str]:
    """As a shell would take it apart, except that JSON and JSONPath need no quotes."""
    return [word if word.startswith(("{", "[")) else shlex.split(word)[0] for word in _split(line)]


def _split(line: str) -> list[str]:
    return re.findall(r"(?:'[^']*'|[^\s'])+", line)


def agree(ours: str, theirs: str) -> bool:
    """Complaints are the same in any order; everything else is what it is."""
    if " is invalid: " in ours:
        return sorted(ours.splitlines()) == sorted(theirs.splitlines())
    return ours == theirs


def _lines_that_differ(ours: str, theirs: str) -> Iterator[str]:
    mine, others = ours.splitlines(), theirs.splitlines()
    yield from (f"  ours   {each}" for each in mine if each not in others)
    yield from (f"  theirs {each}" for each in others if each not in mine)
    if sorted(mine) == sorted(others):
        yield "  the same lines in another order"


def test_the_list_of_differences_is_about_commands_that_are_given() -> None:
    given = {line for text in SCENES.values() for line in text.splitlines() if line}
    assert len(given) >= 150
    assert set(DIFFERENCES) <= given
