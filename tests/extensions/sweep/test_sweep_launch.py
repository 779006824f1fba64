"""Sweeps on several machines: a Ray cluster of two nodes, whose node is killed; Slurm's script under a stub of sbatch."""

import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import time

import psutil
import pytest

from tests.extensions.sweep import test_sweeps
from tests.extensions.sweep.test_sweeps import finished, trainings, wait_for, workers
from tests.processes import ROOT, chartless

pytestmark = pytest.mark.several_machines
file, table = test_sweeps.file, test_sweeps.table  # fixtures
NODES = "ab"


@contextlib.contextmanager
def two_nodes():
    """A head without CPUs, as is usual, and two nodes."""
    from ray.cluster_utils import Cluster

    small = {"object_store_memory": 80 << 20}
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **small})
    try:
        made.nodes = {name: made.add_node(num_cpus=1, node_name=name, **small) for name in NODES}
        yield made
    finally:
        made.shutdown()


@pytest.fixture(scope="module")
def cluster():
    """No node of it is killed."""
    with two_nodes() as made:
        yield made


@pytest.fixture
def mortal():
    with two_nodes() as made:
        yield made


def begin(cluster, file, folder, cwd=ROOT):
    command = [sys.executable, "-m", "bert_tf", "sweep", file, f"--output_dir={folder}", "--slots=1", "--launch=ray"]
    environment = chartless(RAY_ADDRESS=cluster.address)
    return subprocess.Popen(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def begun(cluster, file, folder):
    """A command of whose leaders each trains in its one slot."""
    process = begin(cluster, file, folder)
    wait_for(lambda: len(workers(folder)) == len(NODES))
    return process


def ended(process, status=0, seconds=300):
    """What a command has said that ends with a status."""
    out, said = process.communicate(timeout=seconds)
    assert process.returncode == status, said
    return out, said


def kill(node):
    """Kills all processes of a node, as when its machine is gone."""
    (raylet,) = node.all_processes["raylet"]
    root = psutil.Process(raylet.process.pid)
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def test_both_nodes_of_a_cluster_train_the_runs(cluster, file, table, tmp_path):
    out, _ = ended(begun(cluster, file, tmp_path))
    assert len(out.splitlines()) == 1 + test_sweeps.RUNS, out
    assert trainings(tmp_path) == [1] * test_sweeps.RUNS
    assert (tmp_path / "sweep.tsv").read_text() == table


def test_the_runs_of_a_killed_node_are_taken_over(mortal, file, table, tmp_path):
    process = begun(mortal, file, tmp_path)
    time.sleep(1.0)
    kill(mortal.nodes["b"])
    _, said = ended(process)
    assert len(re.findall("^.* b: lost .*; its runs are left to the other nodes$", said, re.MULTILINE)) == 1, said
    assert (tmp_path / "sweep.tsv").read_text() == table


def test_without_nodes_the_command_says_that_it_continues(mortal, file, table, tmp_path):
    process = begun(mortal, file, tmp_path)
    for node in mortal.nodes.values():
        kill(node)
    _, said = ended(process, os.EX_TEMPFAIL)
    assert said.splitlines()[-1].startswith("error: --launch=ray: 0 runs have a result, no leader has all; the same command")
    wait_for(lambda: not workers(tmp_path))  # the raylets' processes have ended
    assert finished(file, tmp_path) == table


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_signal_stops_the_leaders_after_a_step_and_the_same_command_continues(cluster, file, table, tmp_path, number, status):
    process = begun(cluster, file, tmp_path)
    time.sleep(1.0)
    process.send_signal(number)
    _, said = ended(process, status, 60)
    if number == signal.SIGKILL:
        wait_for(lambda: not workers(tmp_path), 30)
    else:
        assert said.splitlines()[-1] == "error: stopped; the same command continues"
        assert not workers(tmp_path)
    ended(begin(cluster, file, tmp_path))
    assert (tmp_path / "sweep.tsv").read_text() == table


def test_a_folder_that_the_nodes_do_not_share_is_one_line(cluster, file, tmp_path):
    folder = "/proc/self/cwd/sweep"  # another one in each process
    _, said = ended(begin(cluster, file, folder, cwd=tmp_path), 2, 100)
    assert said == f"error: --output_dir={folder}: not seen by a, b; name a folder that all nodes share\n"
    assert list(tmp_path.glob("sweep/.*token")) == []


SBATCH = """#!/bin/bash
# Each element of the array is a process; its number is that of the job.
elements=$(sed -n 's/.*--array=1-\\([0-9]*\\).*/\\1/p' "$1")
for element in $(seq "$elements"); do
  SLURM_JOB_ID=$element bash "$1" > "$(dirname "$1")/element$element.txt" 2>&1 &
done
echo "Submitted batch job 1"
"""


def test_slurm_s_array_trains_the_table(file, table, tmp_path):
    stub = tmp_path / "bin" / "sbatch"
    stub.parent.mkdir()
    stub.write_text(SBATCH)
    stub.chmod(stub.stat().st_mode | stat.S_IXUSR)
    folder = tmp_path / "sweep"
    flags = [f"--output_dir={folder}", "--slots=1", "--launch=slurm", "--nodes=2", "--slurm=--time=10:00"]
    environment = chartless(PATH=f"{stub.parent}:{os.environ['PATH']}")
    command = [sys.executable, "-m", "bert_tf", "sweep", file, *flags]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, timeout=100, check=True)
    assert done.stdout == "Submitted batch job 1\n"
    outputs = [folder / f"element{number}.txt" for number in (1, 2)]
    wait_for(lambda: all(path.exists() and "MRPC  learning_rate=0.1 " in path.read_text() for path in outputs), 300)
    assert trainings(folder) == [1] * test_sweeps.RUNS
    assert (folder / "sweep.tsv").read_text() == table
