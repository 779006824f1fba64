"""Cores granted by affinity and by control groups, on machines made of a few files."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from bert_tf.runtime import cgroup

V2 = "0::/app.slice/job\n"
V1 = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Arranges a machine of some cores: the lines of /proc/self/cgroup, and files under /sys/fs/cgroup."""

    def arrange(cores, membership=None, **files):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
        monkeypatch.setattr(cgroup, "_ROOT", tmp_path)
        monkeypatch.setattr(cgroup, "_MEMBERSHIP", tmp_path / "membership")
        if membership is not None:
            (tmp_path / "membership").write_text(membership)
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_bytes(text.encode("latin-1"))

    return arrange


def test_without_limits_affinity_decides(machine):
    machine(3)
    assert cgroup.granted_cpus() == 3


@pytest.mark.parametrize(
    ("limit", "granted"),
    [("150000 100000", 2), ("100000 100000", 1), ("5000 100000", 1), ("6400000 100000", 8), ("max 100000", 8)],
)
def test_a_quota_is_rounded_up(machine, limit, granted):
    machine(8, V2, **{"app.slice/job/cpu.max": f"{limit}\n"})
    assert cgroup.granted_cpus() == granted


@pytest.mark.parametrize("folder", ["", "app.slice/", "app.slice/job/"])
def test_the_limits_of_groups_around_hold_too(machine, folder):
    files = {"app.slice/job/cpu.max": "max 100000", "app.slice/cpu.max": "600000 100000", f"{folder}cpu.max": "300000 100000"}
    machine(8, V2, **files)
    assert cgroup.granted_cpus() == 3


@pytest.mark.parametrize("folder", ["cpu", "cpu/docker", "cpu/docker/abc"])
@pytest.mark.parametrize(("quota", "granted"), [("150000", 2), ("-1", 8)])
def test_version_1(machine, folder, quota, granted):
    machine(8, V1, **{f"{folder}/cpu.cfs_quota_us": f"{quota}\n", f"{folder}/cpu.cfs_period_us": "100000\n"})
    assert cgroup.granted_cpus() == granted


def test_both_versions_at_once(machine):
    machine(8, "1:name=systemd:/\n0::/job\n", **{"unified/job/cpu.max": "200000 100000"})
    assert cgroup.granted_cpus() == 2


@pytest.mark.parametrize("membership", [None, "", "nonsense", "0::/../../outside", "0::no path"])
def test_where_the_group_is_unknown_the_root_of_the_container_counts(machine, membership):
    machine(8, membership, **{"cpu.max": "200000 100000"})
    assert cgroup.granted_cpus() == 2


@pytest.mark.parametrize("text", ["", "max", "150000", "150000 0", "0 100000", "1 2 3", "many 100000", "-5 100000", "\xff\xfe"])
def test_a_damaged_file_is_no_limit(machine, text):
    machine(8, V2, **{"app.slice/job/cpu.max": text})
    assert cgroup.granted_cpus() == 8


def test_affinity_narrower_than_the_quota(machine):
    machine(2, V2, **{"app.slice/job/cpu.max": "600000 100000"})
    assert cgroup.granted_cpus() == 2


def test_a_system_without_affinity(machine, monkeypatch):
    machine(2)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cgroup.granted_cpus() == 1


@pytest.mark.parametrize(
    ("membership", "files"),
    [
        (V2, {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 500\ninactive_file 200\n"}),
        (
            V1,
            {
                "memory/docker/abc/memory.limit_in_bytes": "1000",
                "memory/docker/abc/memory.usage_in_bytes": "700",
                "memory/docker/abc/memory.stat": "inactive_file 1\ntotal_inactive_file 200\n",
            },
        ),
    ],
    ids=["version 2", "version 1"],
)
def test_memory_that_holds_only_files_is_free(machine, membership, files):
    machine(8, membership, **files)
    assert cgroup.memory() == (1000, 500)


def test_the_tightest_limit_on_memory(machine):
    machine(8, V2, **{"app.slice/job/memory.max": "max", "app.slice/memory.max": "3000", "memory.max": "5000"})
    assert cgroup.memory() == (3000, 3000)


@pytest.mark.parametrize("text", ["max", "", "lots"])
def test_no_limit_on_memory(machine, text):
    machine(8, V2, **{"memory.max": text})
    assert cgroup.memory() is None


def test_counts_without_tensorflow():
    code = "import sys; from bert_tf.runtime import cgroup; print(cgroup.granted_cpus() >= 1, 'tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"
