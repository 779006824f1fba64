"""Cores and memory granted by affinity and by control groups, on machines made of a few files."""

import os
import subprocess
import sys

import pytest

from bert_tf.runtime import cgroup

V2 = "0::/app.slice/job\n"
V1 = "4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n0::/docker/abc\n"
JOB = "app.slice/job/cpu.max"


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


def quota(folder, text):
    return {f"{folder}/cpu.cfs_quota_us": f"{text}\n", f"{folder}/cpu.cfs_period_us": "100000\n"}


MEMORY_V1 = {"limit_in_bytes": "1000", "usage_in_bytes": "700", "stat": "inactive_file 1\ntotal_inactive_file 200\n"}
AROUND = {JOB: "max 100000", "app.slice/cpu.max": "600000 100000"}


@pytest.mark.parametrize(
    ("cores", "membership", "files", "granted"),
    [
        (3, None, {}, 3),
        *(
            (8, V2, {JOB: f"{limit}\n"}, granted)  # rounded up
            for limit, granted in (("150000", 2), ("100000", 1), ("5000", 1), ("6400000", 8), ("max", 8))
            for limit in (f"{limit} 100000",)
        ),
        (2, V2, {JOB: "600000 100000"}, 2),  # affinity is narrower
        *((8, V2, {**AROUND, f"{folder}cpu.max": "300000 100000"}, 3) for folder in ("", "app.slice/", "app.slice/job/")),
        *((8, V1, quota(folder, "150000"), 2) for folder in ("cpu", "cpu/docker", "cpu/docker/abc")),
        (8, V1, quota("cpu/docker/abc", "-1"), 8),
        (8, "1:name=systemd:/\n0::/job\n", {"unified/job/cpu.max": "200000 100000"}, 2),  # both versions at once
        *(  # of an unknown group the root of the container counts
            (8, unknown, {"cpu.max": "200000 100000"}, 2)
            for unknown in (None, "", "nonsense", "0::/../../outside", "0::no path")
        ),
        *(  # a damaged file is no limit
            (8, V2, {JOB: text}, 8)
            for text in ("", "max", "150000", "150000 0", "0 100000", "1 2 3", "many 100000", "-5 100000", "\xff\xfe")
        ),
    ],
)
def test_granted_cpus(machine, cores, membership, files, granted):
    machine(cores, membership, **files)
    assert cgroup.granted_cpus() == granted


def test_a_system_without_affinity(machine, monkeypatch):
    machine(2)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cgroup.granted_cpus() == 1


@pytest.mark.parametrize(
    ("membership", "files", "memory"),
    [
        # Memory that holds only files is free.
        (V2, {"memory.max": "1000", "memory.current": "700", "memory.stat": "anon 500\ninactive_file 200\n"}, (1000, 500)),
        (V1, {f"memory/docker/abc/memory.{name}": text for name, text in MEMORY_V1.items()}, (1000, 500)),
        (V2, {"app.slice/job/memory.max": "max", "app.slice/memory.max": "3000", "memory.max": "5000"}, (3000, 3000)),
        (V1, {"memory/docker/abc/memory.limit_in_bytes": f"{2**63 - 4096}", "memory/memory.limit_in_bytes": "9"}, (9, 9)),
        *((V2, {"memory.max": text}, None) for text in ("max", "", "lots", f"{2**63 - 4096}")),
    ],
)
def test_memory(machine, membership, files, memory):
    machine(8, membership, **files)
    assert cgroup.memory() == memory


def test_counts_without_tensorflow():
    code = "import sys; from bert_tf.runtime import cgroup; print(cgroup.granted_cpus() >= 1, 'tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"
