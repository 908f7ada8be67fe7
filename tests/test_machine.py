import subprocess
import sys

import numpy as np
import pytest

from nclone_env import NPlusPlusVectorEnv, machine
from nclone_env.errors import MemoryLimitError
from nclone_env.machine import available_bytes, available_cores, check_address_space, check_fits, default_workers


def test_the_least_of_machine_and_cgroup_is_available(tmp_path, monkeypatch):
    (tmp_path / "meminfo").write_text("MemTotal: 8000 kB\nMemAvailable: 6000 kB\n")
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    monkeypatch.setattr(machine, "_OWN_CGROUPS", tmp_path / "none")
    assert available_bytes() == 6000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000\n")
    assert available_bytes() == 6000 * 1024
    (tmp_path / "memory.max").write_text("500000\n")
    assert available_bytes() == 499_000
    (tmp_path / "meminfo").unlink()
    (tmp_path / "memory.max").unlink()
    assert available_bytes() is None
    check_fits("num_envs", 10**9, 10**9)  # what is unknown refuses nothing


@pytest.mark.parametrize(
    "text", [None, b"", b"0\n", b"MemAvailable:\n", b"MemAvailable: much\n", b"0::/\xff\n", "folder"]
)
def test_files_of_the_system_that_are_missing_or_unlike_limit_nothing(text, tmp_path, monkeypatch):
    for name in ("_MEMINFO", "_STATUS", "_OWN_CGROUPS"):
        path = tmp_path / name
        if text == "folder":
            path.mkdir()  # cannot be read as a file
        elif text is not None:
            path.write_bytes(text)
        monkeypatch.setattr(machine, name, path)
    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "none")
    monkeypatch.setattr(machine, "_addresses", lambda: 2**40)
    assert available_bytes() == 2**40
    assert available_cores() >= 1


@pytest.fixture
def cgroups(tmp_path, monkeypatch):
    """The folder of the control groups of a process in ``job/step``."""
    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "cgroup")
    monkeypatch.setattr(machine, "_OWN_CGROUPS", tmp_path / "own")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    (tmp_path / "own").write_text("0::/job/step\n")
    (tmp_path / "cgroup" / "job" / "step").mkdir(parents=True)
    return tmp_path / "cgroup"


def test_quotas_of_all_groups_above_bound_the_cores(cgroups):
    assert available_cores() == 8
    (cgroups / "job" / "cpu.max").write_text("350000 100000\n")
    assert available_cores() == 4
    for none in ("max 100000\n", "50000 0\n", "50000\n", "x"):
        (cgroups / "job" / "step" / "cpu.max").write_text(none)
        assert available_cores() == 4
    (cgroups / "job" / "step" / "cpu.max").write_text("50000 100000\n")
    assert available_cores() == 1


def test_quotas_of_version_1(cgroups):
    (cgroups.parent / "own").write_text("5:cpu,cpuacct:/job\n4:memory:/other\n")
    group = cgroups / "cpu" / "job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_period_us").write_text("100000\n")
    (group / "cpu.cfs_quota_us").write_text("-1\n")
    assert available_cores() == 8
    (group / "cpu.cfs_quota_us").write_text("300000\n")
    assert available_cores() == 3


def test_the_memory_of_all_groups_above_counts(cgroups, monkeypatch):
    monkeypatch.setattr(machine, "_MEMINFO", cgroups / "none")
    for folder, limit in ((cgroups / "job", 900_000), (cgroups / "job" / "step", 2_000_000)):
        (folder / "memory.max").write_text(f"{limit}\n")
        (folder / "memory.current").write_text("100000\n")
    assert available_bytes() == 800_000


def test_memory_that_only_holds_the_contents_of_files_is_left(cgroups, monkeypatch):
    """A job that has read its data once is not refused the memory that the kernel frees for it."""
    monkeypatch.setattr(machine, "_MEMINFO", cgroups / "none")
    group = cgroups / "job" / "step"
    (group / "memory.max").write_text("1000\n")
    (group / "memory.current").write_text("990\n")
    assert available_bytes() == 10
    (group / "memory.stat").write_text("anon 300\ninactive_file 600\nactive_file 90\n")
    assert available_bytes() == 610
    (group / "memory.high").write_text("400\n")
    assert available_bytes() == 10
    (group / "memory.high").write_text("300\n")
    assert available_bytes() == 0


@pytest.mark.parametrize(
    ("own", "group"),
    [
        ("0::/job/step", "job"),
        ("0::/../other/step", "."),
        ("0::/", "."),
        ("1:name=systemd:/job\n0::/job", "unified/job"),
        ("5:cpu,cpuacct:/job", "cpu,cpuacct/job"),
        ("5:cpu,cpuacct:/job", "cpu"),
        ("5:cpuacct,cpu:/docker/abc", "cpu"),
    ],
)
def test_groups_are_found_wherever_they_are_mounted(cgroups, own, group):
    (cgroups.parent / "own").write_text(f"{own}\n")
    folder = cgroups / group
    folder.mkdir(parents=True, exist_ok=True)
    version_1 = group.startswith("cpu")
    for name, text in (("cpu.cfs_quota_us", "150000"), ("cpu.cfs_period_us", "100000")) if version_1 else ():
        (folder / name).write_text(f"{text}\n")
    if not version_1:
        (folder / "cpu.max").write_text("150000 100000\n")
    assert available_cores() == 2
    (cgroups.parent / "cpu.max").write_text("1 100000\n")  # behind the root
    assert available_cores() == 2


def test_no_more_workers_than_cores_tasks_and_memory(cgroups, monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 1000)
    assert default_workers(100) == 8
    assert default_workers(3) == 3
    assert default_workers(100, bytes_each=300) == 3
    assert default_workers(100, bytes_each=3000) == 1
    assert default_workers(0) == 1
    monkeypatch.setattr(machine, "available_bytes", lambda: None)
    assert default_workers(100, bytes_each=3000) == 8


def test_a_limit_of_addresses_counts_as_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("nclone_env.machine.resource.getrlimit", lambda kind: (10**9, 10**9))
    monkeypatch.setattr(machine, "_STATUS", tmp_path / "status")
    (tmp_path / "status").write_text("VmPeak: 900000 kB\nVmSize: 500000 kB\n")
    assert available_bytes() == 10**9 - 500_000 * 1024
    with pytest.raises(
        MemoryLimitError, match=r"^train: .* of at least 1\.02 GB, got 953\.67 MB; raise it by ulimit -v$"
    ):
        check_address_space("train", 1_100_000_000)
    check_address_space("solve", 10**9)


LIMITS = [
    pytest.param(limit, command, marks=() if number == other else pytest.mark.slow)
    for number, limit in enumerate((500_000, 800_000, 950_000))
    for other, command in enumerate(("train --levels first-steps", "levels show jumps/01-stairs", "gallery jumps"))
]


@pytest.mark.parametrize(("kilobytes", "command"), LIMITS)
def test_commands_do_not_abort_under_a_limit_of_addresses(kilobytes, command, tmp_path):
    shell = f"ulimit -v {kilobytes} && exec {sys.executable} -m nclone_env {command}"
    done = subprocess.run(["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"nclone-env: {command.split()[0]}: expected a limit of address space of at least ")
    assert done.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_message_names_the_largest_number_that_fits():
    check_fits("num_envs", 99, each=1e7, once=1e7, limit=10**9)
    with pytest.raises(MemoryLimitError) as caught:
        check_fits("num_envs", 100, each=1e7, once=1e7, limit=10**9)
    assert str(caught.value) == (
        "num_envs: 100 need 963.21 MB (9.54 MB each), but 953.67 MB are allowed; at most 99 fit"
    )
    with pytest.raises(MemoryLimitError, match="not even one fits"):
        check_fits("num_envs", 1, each=2e9, limit=10**9)


def test_what_is_small_is_taken_without_a_look(monkeypatch):
    monkeypatch.setattr(machine, "available_bytes", lambda: 0)
    check_fits("num_envs", 16, each=1 << 16)
    with pytest.raises(MemoryLimitError, match=r"num_envs: 17 need 1\.06 MB .* not even one fits"):
        check_fits("num_envs", 17, each=1 << 16)


def test_too_many_environments_are_refused_before_they_are_allocated():
    with pytest.raises(MemoryLimitError, match=r"num_envs: 16,777,216 need .* GB .* at most [0-9,]+ fit"):
        NPlusPlusVectorEnv(num_envs=1 << 24)


def test_environments_that_fit_are_made(monkeypatch):
    monkeypatch.setattr("nclone_env.machine._SMALL", 0)
    monkeypatch.setattr("nclone_env.machine.available_bytes", lambda: 3 * 49_600)
    envs = NPlusPlusVectorEnv(num_envs=3)
    envs.reset(seed=0)
    envs.step(np.zeros(3, np.int64))
    envs.close()
    with pytest.raises(MemoryLimitError, match="at most 3 fit"):
        NPlusPlusVectorEnv(num_envs=4)
