"""Real processes: each test starts a few, and leaves none behind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from fullrank.agent.control_groups import ControlGroups, out_of_memory_records, remove
from fullrank.agent.nursery.container_log import ContainerLog
from fullrank.agent.processes import ProcessRuntime
from fullrank.agent.runtime import Attempt, Launch, Limits, Mount
from fullrank.agent.visits import visiting
from fullrank.clock import SystemClock

pytestmark = pytest.mark.anyio

needs_root = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux: mount, PID and UTS namespaces"
)


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[ProcessRuntime]:
    async with ProcessRuntime(tmp_path, SystemClock()) as runtime:
        yield runtime
    assert processes_below(tmp_path) == []
    assert [point for point in mount_points() if str(tmp_path) in point] == []


def mount_points() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines() if sys.platform == "linux" else []


def processes_below(home: Path) -> list[str]:
    """The command lines of what still runs and knows of the home."""
    listed = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in listed.splitlines() if str(home) in line and "pytest" not in line]


def a_launch(
    home: Path,
    script: str,
    *,
    number: int = 0,
    argv: tuple[str, ...] = (),
    env: Mapping[str, str] | None = None,
    **fields: object,
) -> Launch:
    return Launch(
        Attempt("uid-1", "main", number),
        argv=argv or ("/bin/sh", "-c", script),
        env={"PATH": "/usr/bin:/bin", "MARK": str(home), **(env or {})},
        log=home / "logs" / f"{number}.log",
        hostname="pod-0",
        **fields,  # type: ignore[arg-type]
    )


def log_of(launch: Launch) -> list[str]:
    """What was written, without times: `stdout F text`."""
    return [line.split(" ", 1)[1] for line in launch.log.read_text().splitlines()]


async def test_an_attempt_runs_once_and_its_end_is_known_for_ever(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    launch = a_launch(tmp_path, "echo out; echo err >&2; exit 3")
    began = await runtime.start(launch)
    ended = await runtime.wait(launch.attempt)
    assert (ended.code, ended.reason, ended.started_at) == (3, "", began)
    assert sorted(log_of(launch)) == ["stderr F err", "stdout F out"]
    assert await runtime.start(launch) == began
    assert await runtime.wait(launch.attempt) == ended
    assert len(log_of(launch)) == 2
    assert [(run.attempt, run.exit) for run in await runtime.runs("uid-1")] == [(launch.attempt, ended)]


async def test_a_forgotten_pod_leaves_only_its_log(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "echo kept")
    await runtime.start(launch)
    await runtime.wait(launch.attempt)
    await runtime.forget("uid-1")
    assert runtime.pods() == ()
    assert await runtime.runs("uid-1") == ()
    assert log_of(launch) == ["stdout F kept"]


COMPLAINTS = {
    "a command that is nowhere": (("foo",), 'exec: "foo": executable file not found in $PATH'),
    "a path that is not there": (("/no/foo",), 'exec: "/no/foo": stat /no/foo: no such file or directory'),
    "a file that cannot be run": (("/etc/passwd",), 'exec: "/etc/passwd": permission denied'),
}


@pytest.mark.parametrize("case", COMPLAINTS)
async def test_what_cannot_start_says_why(case: str, runtime: ProcessRuntime, tmp_path: Path) -> None:
    argv, message = COMPLAINTS[case]
    launch = a_launch(tmp_path, "", argv=argv)
    await runtime.start(launch)
    ended = await runtime.wait(launch.attempt)
    assert (ended.code, ended.reason, ended.message) == (128, "StartError", message)


async def test_sigterm_ends_a_program_without_a_handler(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "", argv=("sleep", "1000"))
    await runtime.start(launch)
    await runtime.stop(launch.attempt, grace=30)
    assert (await runtime.wait(launch.attempt)).code == 128 + signal.SIGTERM


async def test_a_handler_has_its_grace(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.01; done")
    await runtime.start(launch)
    await until_written(launch, "stdout F ready")
    await runtime.stop(launch.attempt, grace=30)
    assert (await runtime.wait(launch.attempt)).code == 7
    assert log_of(launch) == ["stdout F ready", "stdout F saved"]


async def test_who_will_not_go_is_killed_with_all_descendants(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    script = (
        "trap '' TERM; (setsid sleep 1000 &) ; setsid sleep 1001 & echo ready; while :; do sleep 0.01; done"
    )
    launch = a_launch(tmp_path, script)
    await runtime.start(launch)
    await until_written(launch, "stdout F ready")
    await runtime.stop(launch.attempt, grace=0.05)
    assert (await runtime.wait(launch.attempt)).code == 128 + signal.SIGKILL
    assert not any("sleep 100" in line for line in all_commands())


async def test_nothing_written_before_the_end_is_lost(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "seq 1 20000; printf last; (sleep 1000; echo never) &")
    await runtime.start(launch)
    assert (await runtime.wait(launch.attempt)).code == 0
    lines = log_of(launch)
    assert lines[:-1] == [f"stdout F {number}" for number in range(1, 20001)]
    assert lines[-1] == "stdout P last"


async def test_a_long_line_is_written_in_pieces(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "head -c 40000 /dev/zero | tr '\\0' x; echo; echo next")
    await runtime.start(launch)
    await runtime.wait(launch.attempt)
    pieces = [line.split(" ", 2) for line in log_of(launch)]
    assert [tag for _, tag, _ in pieces] == ["P", "P", "F", "F"]
    assert "".join(text for _, _, text in pieces[:3]) == "x" * 40000
    assert max(len(text) for _, _, text in pieces) <= 16 * 1024


@needs_root
async def test_a_container_has_its_own_hostname_root_and_process_numbers(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    source = tmp_path / "volume"
    source.mkdir()
    (source / "file").write_text("from the host\n")
    script = (
        "hostname; pwd; cat /data/in/file; cat /opt/one/file; echo written > /data/in/back; "
        "(echo x > /locked/new) 2>/dev/null || echo read-only; touch /etc/never; ls /proc | grep -c '^[0-9]'"
    )
    mounts = (
        Mount(source, "/data/in"),
        Mount(source / "file", "/opt/one/file"),
        Mount(source, "/locked", read_only=True),
    )
    launch = a_launch(tmp_path, script, mounts=mounts, working_dir="/made/for/this")
    await runtime.start(launch)
    assert (await runtime.wait(launch.attempt)).code == 0
    *lines, running = [line.removeprefix("stdout F ") for line in log_of(launch)]
    assert lines == ["pod-0", "/made/for/this", "from the host", "from the host", "read-only"]
    assert int(running) <= 5
    assert (source / "back").read_text() == "written\n"
    assert not exist("/data/in", "/opt/one", "/made", "/etc/never", "/locked")


@needs_root
async def test_two_containers_talk_over_their_names_and_see_new_ones(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    names = tmp_path / "network"
    names.mkdir()
    (names / "hosts").write_text("127.64.0.1 pod-0\n")
    server = (
        "import socket\n"
        "s = socket.create_server((socket.gethostbyname(socket.gethostname()), 0))\n"
        "print(s.getsockname()[1], flush=True)\n"
        "c, _ = s.accept()\n"
        "print(c.recv(100).decode(), socket.gethostbyname('pod-1'))"
    )
    first = a_launch(tmp_path, "", argv=(sys.executable, "-c", server), names=names)
    await runtime.start(first)
    port = (await until_written(first, "stdout F ")).rsplit(" ", 1)[-1]
    (names / "hosts.part").write_text("127.64.0.1 pod-0\n127.64.0.2 pod-1\n")
    (names / "hosts.part").rename(names / "hosts")
    client = f"import socket; socket.create_connection(('pod-0', {port}), source_address=('pod-1', 0)).send(b'hello')"
    second = a_launch(tmp_path, "", argv=(sys.executable, "-c", client), number=1, names=names)
    await runtime.start(second)
    assert (await runtime.wait(second.attempt)).code == 0
    await runtime.wait(first.attempt)
    assert log_of(first)[-1] == "stdout F hello 127.64.0.2"


LEVELS = {
    "in a user namespace": ("user",),
    "without namespaces": (),
}


@pytest.mark.parametrize("case", LEVELS)
async def test_the_same_job_runs_where_less_is_allowed(case: str, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    (tmp_path / "volume" / "file").write_text("from the volume\n")
    script = "cat /data/in/file; echo $WHERE; echo x > /data/in/back; (setsid sleep 1003 &); echo ready; sleep 1004"
    async with ProcessRuntime(tmp_path, SystemClock(), isolation=LEVELS[case]) as runtime:
        if LEVELS[case] and await runtime.shortcomings():
            pytest.skip("this machine allows no user namespaces")
        mounts = (Mount(tmp_path / "volume", "/data/in"),)
        addresses = {"pod-1": "127.64.0.2"}
        launch = a_launch(tmp_path, script, mounts=mounts, env={"WHERE": "pod-1:23"}, addresses=addresses)
        await runtime.start(launch)
        await until_written(launch, "stdout F ready")
        await runtime.stop(launch.attempt, grace=0.3)
        assert (await runtime.wait(launch.attempt)).code == 128 + signal.SIGTERM
    where = "pod-1:23" if LEVELS[case] else "127.64.0.2:23"
    assert log_of(launch)[:2] == ["stdout F from the volume", f"stdout F {where}"]
    assert (tmp_path / "volume" / "back").exists()
    assert not any("sleep 100" in line for line in all_commands())
    assert not exist("/data/in")


@pytest.mark.parametrize("case", [*LEVELS, "as root"])
async def test_a_further_program_sees_what_the_container_sees(case: str, tmp_path: Path) -> None:
    levels = LEVELS.get(case, ("root",))
    async with ProcessRuntime(tmp_path, SystemClock(), isolation=levels) as runtime:
        if levels and await runtime.shortcomings():
            pytest.skip(f"this machine does not allow containers {case}")
        launch = a_launch(tmp_path, "", argv=("sleep", "1005"), env={"OWN": "yes"})
        await runtime.start(launch)
        took = await run_within(
            runtime, launch.attempt, "read line; echo $line $OWN; hostname; exit 3", b"hello\n"
        )
        assert took == (3, f"hello yes\n{'pod-0' if levels else os.uname().nodename}\n")
        missing = await runtime.execute(launch.attempt, ["foo"], (nothing(), nothing(), nothing()))
        assert missing.message == 'exec: "foo": executable file not found in $PATH'
        await runtime.stop(launch.attempt, grace=0)


def nothing() -> int:
    return os.open(os.devnull, os.O_RDWR)


async def run_within(runtime: ProcessRuntime, attempt: Attempt, script: str, given: bytes) -> tuple[int, str]:
    (their_in, our_in), (our_out, their_out) = os.pipe(), os.pipe()
    os.write(our_in, given)
    os.close(our_in)
    ended = await runtime.execute(attempt, ["/bin/sh", "-c", script], (their_in, their_out, nothing()))
    output = os.read(our_out, 1 << 16)
    os.close(our_out)
    return ended.code, output.decode()


async def test_a_parent_that_is_killed_takes_its_container_along(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    launch = a_launch(tmp_path, "", argv=("sleep", "1234"))
    began = await runtime.start(launch)
    started = json.loads((tmp_path / "pods/uid-1/main/0/started.json").read_text())
    os.kill(started["parent"], signal.SIGKILL)
    ended = await runtime.wait(launch.attempt)
    assert (ended.code, ended.reason) == (137, "ContainerStatusUnknown")
    assert await runtime.start(launch) == began
    await eventually(lambda: not any("sleep 1234" in line for line in all_commands()))


async def test_a_nursery_that_is_gone_is_started_again(runtime: ProcessRuntime, tmp_path: Path) -> None:
    nursery = runtime._nursery._process
    assert nursery is not None
    nursery.kill()
    await nursery.wait()
    launch = a_launch(tmp_path, "exit 5")
    await runtime.start(launch)
    assert (await runtime.wait(launch.attempt)).code == 5


SERVER = """
import sys
from pathlib import Path
import anyio
from fullrank.agent.control_groups import ControlGroups, out_of_memory_records, remove
from fullrank.agent.nursery.container_log import ContainerLog
from fullrank.agent.processes import ProcessRuntime
from fullrank.clock import SystemClock
from fullrank.agent.runtime import Mount
from tests.unit.test_processes import a_launch

async def serve(home):
    async with ProcessRuntime(home, SystemClock()) as runtime:
        for number in range(int(sys.argv[2])):
            await runtime.start(a_launch(home, sys.argv[3], number=number, mounts=(Mount(home, "/home-of-test"),)))
        print("started", flush=True)
        await anyio.sleep_forever()

anyio.run(serve, Path(sys.argv[1]))
"""


def a_server(home: Path, attempts: int, script: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SERVER, str(home), str(attempts), script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


async def test_attempts_outlive_a_killed_server_and_are_adopted(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    script = "echo run; read word < /home-of-test/go; seq 1 5000; exit 9"
    server = a_server(tmp_path, 1, script)
    assert server.stdout is not None
    with server:
        assert await anyio.to_thread.run_sync(server.stdout.readline) == "started\n"
        server.kill()
    launch = a_launch(tmp_path, script)
    async with ProcessRuntime(tmp_path, SystemClock()) as runtime:
        assert runtime.pods() == ("uid-1",)
        (run,) = await runtime.runs("uid-1")
        assert run.exit is None
        assert await runtime.start(launch) == run.started_at
        await anyio.to_thread.run_sync(go.write_text, "go\n")
        ended = await runtime.wait(launch.attempt)
    assert ended.code == 9
    assert log_of(launch) == ["stdout F run", *(f"stdout F {number}" for number in range(1, 5001))]


async def test_whenever_a_server_is_killed_no_attempt_runs_twice(tmp_path: Path) -> None:
    for round_number in range(6):
        home = tmp_path / str(round_number)
        home.mkdir()
        script = "echo run"
        with a_server(home, 20, script) as server:
            await eventually((home / "pods/uid-1/main" / str(3 * round_number)).exists)
            server.kill()
        async with ProcessRuntime(home, SystemClock()) as runtime:
            for number in range(20):
                launch = a_launch(home, script, number=number)
                await runtime.start(launch)
                assert (await runtime.wait(launch.attempt)).code == 0
                assert log_of(launch) == ["stdout F run"]


async def until_written(launch: Launch, beginning: str) -> str:
    def found() -> list[str]:
        return [line for line in log_of(launch) if line.startswith(beginning)] if launch.log.exists() else []

    await eventually(lambda: bool(found()))
    return found()[0]


async def eventually(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while True:
            if condition():
                return
            await anyio.sleep(0.002)


def exist(*paths: str) -> list[str]:
    return [path for path in paths if os.path.exists(path)]


def all_commands() -> list[str]:
    return subprocess.run(
        ["ps", "axo", "args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_times_in_logs_are_those_of_kubernetes(tmp_path: Path) -> None:
    log = ContainerLog(str(tmp_path / "some" / "log"))
    log.take("stdout", b"one\ntw")
    log.take("stdout", b"o\n")
    log.close()
    lines = (tmp_path / "some" / "log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["stdout F one", "stdout F two"]
    moment = lines[0].split(" ")[0]
    assert len(moment) == len("2026-11-15T05:11:00.123456789Z")
    assert datetime.fromisoformat(moment[:26] + "+00:00").tzinfo == UTC


def can_limit_memory(home: Path) -> bool:
    groups = ControlGroups.of_this_machine(home)
    made = groups.make(Attempt("rehearsal", "x", 0), Limits(memory=1 << 20))
    remove(made)
    groups.sweep()
    return bool(out_of_memory_records(made) or made)


async def test_a_container_over_its_limit_is_killed_and_its_neighbour_lives(tmp_path: Path) -> None:
    if not can_limit_memory(tmp_path):
        pytest.skip("this machine lets us limit no memory")
    async with ProcessRuntime(tmp_path, SystemClock()) as runtime:
        neighbour = a_launch(tmp_path, "", argv=("sleep", "2000"))
        hungry = "x = bytearray(200 << 20)"
        hog = replace(
            a_launch(tmp_path, "", argv=(sys.executable, "-S", "-c", hungry), number=1),
            limits=Limits(memory=32 << 20),
        )
        await runtime.start(neighbour)
        await runtime.start(hog)
        ended = await runtime.wait(hog.attempt)
        assert (ended.code, ended.reason) == (128 + signal.SIGKILL, "OOMKilled")
        used = runtime.usage(neighbour.attempt)
        assert used is not None
        assert 0 < used.memory < 32 << 20
        await runtime.stop(neighbour.attempt, grace=5)
        assert (await runtime.wait(neighbour.attempt)).reason == ""
        await runtime.forget("uid-1")
        assert runtime.usage(neighbour.attempt) is None


@needs_root
async def test_a_read_only_container_writes_to_its_volumes_alone(
    runtime: ProcessRuntime, tmp_path: Path
) -> None:
    (tmp_path / "volume").mkdir()
    script = "echo x > /data/file && echo wrote; echo x > /tmp/file || echo no; echo x > /file || echo no"
    mounts = (Mount(tmp_path / "volume", "/data"),)
    launch = a_launch(tmp_path, script, mounts=mounts, read_only=True)
    await runtime.start(launch)
    await runtime.wait(launch.attempt)
    assert [line for line in log_of(launch) if "stdout" in line] == [
        "stdout F wrote",
        "stdout F no",
        "stdout F no",
    ]


@needs_root
async def test_further_groups_are_the_processes_own(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "id -u; id -G", user=1000, group=1000, groups=(2000, 3000))
    await runtime.start(launch)
    await runtime.wait(launch.attempt)
    assert log_of(launch) == ["stdout F 1000", "stdout F 1000 2000 3000"]


async def test_whoever_hangs_up_on_a_program_ends_it(runtime: ProcessRuntime, tmp_path: Path) -> None:
    launch = a_launch(tmp_path, "", argv=("sleep", "2001"))
    await runtime.start(launch)
    async with visiting(
        runtime,
        launch.attempt,
        ["sh", "-c", "echo on; sleep 2002"],
        stdin=False,
        stdout=True,
        stderr=False,
        tty=False,
    ) as program:
        assert await anext(program.outputs()) == (1, b"on\n")
    with anyio.fail_after(10):
        while any("sleep 2002" in line for line in all_commands()):  # noqa: ASYNC110  # nobody tells us
            await anyio.sleep(0.01)
    await runtime.stop(launch.attempt, grace=5)
