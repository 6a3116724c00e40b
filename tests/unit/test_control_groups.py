"""Control groups of both versions, as files in a folder; what the kernel makes of them is in test_processes."""

from pathlib import Path

from fullrank.agent.control_groups import (
    ControlGroups,
    mounted_hierarchies,
    out_of_memory_records,
    remove,
    usage,
)
from fullrank.agent.runtime import Attempt, Limits, Usage

ATTEMPT = Attempt("uid-1", "main", 2)


def a_machine(folder: Path, cgroup: str, mounts: list[tuple[str, str, str]]) -> Path:
    """A /proc/self; mounts are (folder, kind, options)."""
    proc = folder / "proc"
    proc.mkdir()
    (proc / "cgroup").write_text(cgroup)
    lines = [f"31 23 0:28 / {folder / at} rw - {kind} {kind} {options}\n" for at, kind, options in mounts]
    (proc / "mountinfo").write_text("22 1 0:1 / / rw - ext4 /dev/sda rw\n" + "".join(lines))
    return proc


def test_a_process_is_found_in_every_hierarchy(tmp_path: Path) -> None:
    mounts = [("memory", "cgroup", "rw,memory"), ("both", "cgroup", "rw,cpu,cpuacct"), ("u", "cgroup2", "rw")]
    proc = a_machine(tmp_path, "3:cpu,cpuacct:/\n2:memory:/slice\n0::/unit\n", mounts)
    found = {found.controllers: found.own for found in mounted_hierarchies(proc)}
    assert found == {
        frozenset({"memory"}): tmp_path / "memory/slice",
        frozenset({"cpu", "cpuacct"}): tmp_path / "both",
        frozenset(): tmp_path / "u/unit",
    }


def test_version_2_limits_beside_the_group_that_the_server_is_in(tmp_path: Path) -> None:
    proc = a_machine(tmp_path, "0::/session/server\n", [("sys", "cgroup2", "rw")])
    parent = tmp_path / "sys/session"
    (parent / "server").mkdir(parents=True)
    (parent / "cgroup.subtree_control").write_text("memory cpu")
    groups = ControlGroups.of_this_machine(tmp_path / "home", proc)
    (ours,) = parent.glob("fullrank-*")
    folder = ours / "uid-1" / "main-2"
    folder.mkdir(parents=True)
    for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "memory.events"):
        (folder / name).touch()
    assert groups.make(ATTEMPT, Limits(memory=1 << 20, cpu=0.5)) == (folder,)
    assert (folder / "memory.max").read_text() == "1048576"
    assert (folder / "cpu.max").read_text() == "50000 100000"
    assert out_of_memory_records([folder]) == [folder / "memory.events"]
    assert groups.limit("memory")
    (parent / "cgroup.subtree_control").write_text("memory")
    assert not groups.limit("cpu")


def test_a_machine_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    groups = ControlGroups.of_this_machine(tmp_path, tmp_path / "no-proc")
    assert groups.make(ATTEMPT, Limits(memory=1)) == ()
    assert not groups.limit("memory")
    assert usage(()) is None


def test_usage_leaves_out_what_the_kernel_could_drop(tmp_path: Path) -> None:
    (tmp_path / "memory.current").write_text("1000\n")
    (tmp_path / "memory.stat").write_text("anon 600\ninactive_file 300\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert usage([tmp_path]) == Usage(2.5, 700)
    assert usage([tmp_path / "gone"]) is None


def test_a_pods_groups_go_with_the_folder_above_them(tmp_path: Path) -> None:
    folder = tmp_path / "fullrank-1" / "uid-1" / "main-0"
    folder.mkdir(parents=True)
    remove([folder])
    assert not (tmp_path / "fullrank-1" / "uid-1").exists()
