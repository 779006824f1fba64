"""Sweeps in real processes that are killed: no run is lost, none is trained twice, the table is the same."""

import contextlib
import functools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import processes
from tests.integration import commands
from tests.processes import ROOT, chartless
from tests.tiny import write_project

pytestmark = pytest.mark.several_machines  # dozens of processes

RUNS = 3  # on two slots


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    project = write_project(folder / "project")
    model = {name: str(getattr(project, name)) for name in ("data_dir", "vocab_file", "bert_config_file", "init_checkpoint")}
    fixed = {"num_train_steps": 30, "save_checkpoints_steps": 7, "max_seq_length": 24, "train_batch_size": 8, **model}
    path = folder / "sweep.json"
    path.write_text(json.dumps({"tasks": "MRPC", "seeds": "1", "settings": {**fixed, "learning_rate": [1e-3, 1e-2, 1e-1]}}))
    return path


def line(file, folder):
    return ["-m", "bert_tf", "sweep", file, f"--output_dir={folder}", "--slots=2"]


def begin(file, folder, before=None):
    """Starts the command, forked; its runs come from a server of their own, as ever."""
    begins = functools.partial(commands.without_charts, before)
    return processes.start(line(file, folder), environment=chartless(), before=begins)


def ended(process, status=0, seconds=480):
    """What a command has said that ends with a status."""
    _, said = process.communicate(timeout=seconds)
    assert process.returncode == status, said
    return said


def finished(file, folder):
    ended(begin(file, folder))
    return (folder / "sweep.tsv").read_text()


@pytest.fixture(scope="module")
def table(file, tmp_path_factory):
    """Of a sweep that nobody disturbed, not forked; each run was trained once."""
    folder = tmp_path_factory.mktemp("whole")
    command = [sys.executable, *line(file, folder)]
    done = subprocess.run(command, cwd=ROOT, env=chartless(), capture_output=True, text=True, timeout=480)
    assert done.returncode == 0, done.stderr
    text = (folder / "sweep.tsv").read_text()
    assert len(text.splitlines()) == RUNS + 1
    assert trainings(folder) == [1] * RUNS
    clocks = [json.loads(path.read_text())["wall"] for path in folder.glob("*/timing.json")]
    assert max(clock["parts"]["start"] for clock in clocks) < min(
        clock["seconds"] for clock in clocks
    )  # not since the server began
    return text


def trainings(folder):
    return [path.read_text().count("Running training") for path in sorted((folder / "logs").iterdir())]


def workers(folder):
    """Process numbers of the runs that are being trained; a killed process leaves its note."""
    pids = []
    for path in folder.glob(".*.claim.json"):
        with contextlib.suppress(OSError, ValueError):
            pids.append(json.loads(path.read_text())["pid"])
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def wait_for(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return value


def test_killed_workers_are_replaced(file, table, tmp_path):
    process, seen = begin(file, tmp_path), set()
    for delay in (0.0, 0.2, 0.4, 0.7, 1.0):  # seconds after a run is claimed: data, graph, steps
        pid = wait_for(lambda: next((pid for pid in workers(tmp_path) if pid not in seen), None))
        seen.add(pid)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
    assert ended(process).count("resuming it") == len(seen)
    assert (tmp_path / "sweep.tsv").read_text() == table


@pytest.mark.parametrize("delay", [0.0, 4.0])
def test_a_killed_leader_is_followed_by_the_next(file, table, tmp_path, delay):
    process = begin(file, tmp_path)
    wait_for(lambda: workers(tmp_path))
    time.sleep(delay)
    process.kill()
    process.communicate()
    wait_for(lambda: not workers(tmp_path), seconds=15.0)  # they have saved
    assert finished(file, tmp_path) == table


def test_two_leaders_share_the_runs_and_one_takes_over_those_of_the_other(file, table, tmp_path):
    for process in (begin(file, tmp_path), begin(file, tmp_path)):
        ended(process)
    assert trainings(tmp_path) == [1] * RUNS
    assert (tmp_path / "sweep.tsv").read_text() == table
    shared = tmp_path / "again"
    first, second = begin(file, shared), begin(file, shared)
    wait_for(lambda: len(workers(shared)) >= 3)
    first.kill()
    first.communicate()
    ended(second)
    assert (shared / "sweep.tsv").read_text() == table


def test_ctrl_c_stops_after_a_step_and_the_same_command_continues(file, table, tmp_path):
    process = begin(file, tmp_path)
    wait_for(lambda: workers(tmp_path))
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    assert ended(process, 130, 60).splitlines()[-1] == "error: stopped; the same command continues"
    wait_for(lambda: not workers(tmp_path))
    assert finished(file, tmp_path) == table


@pytest.fixture
def train(tmp_path):
    """Trains runs of five steps with flags, in a folder."""
    project = write_project(tmp_path / "project")

    def train(folder, *flags):
        return commands.run([*project.flags(folder, num_train_steps=5), *flags], variables=chartless())

    return train


@pytest.mark.parametrize("series", ["seed", "fold"])
def test_seeds_and_folds_on_slots_are_those_of_one_process(series, train, tmp_path):
    several = "--seeds=2,1" if series == "seed" else "--folds=2"
    runs = [train(tmp_path / slots, several, f"--slots={slots}") for slots in "12"]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    assert runs[0].stdout == runs[1].stdout
    numbers = json.loads((tmp_path / "1" / f"{series}s.json").read_text())[f"{series}s"]
    assert len(numbers) == 2
    for run in (one["folder"] for one in numbers):
        one, two = (tmp_path / slots / run / "model.ckpt-5.data-00000-of-00001" for slots in "12")
        assert one.read_bytes() == two.read_bytes()
    if series == "fold":
        assert (tmp_path / "1" / "out_of_fold.tsv").read_bytes() == (tmp_path / "2" / "out_of_fold.tsv").read_bytes()
        assert not list((tmp_path / "2" / "results").glob("*.pickle"))


def test_a_seed_that_fails_is_named_when_the_others_have_ended(train, tmp_path):
    (tmp_path / "out" / "seed-1").mkdir(parents=True)
    (tmp_path / "out" / "seed-1" / "run_config.json").write_text("no record")
    done = train(tmp_path / "out", "--seeds=1-2", "--slots=2")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: seed-1: ")
    assert "run_config.json" in last
    assert [row["seed"] for row in json.loads((tmp_path / "out" / "seeds.json").read_text())["seeds"]] == [2]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_all_processes_saves_each_run(number, file, table, tmp_path):
    """Ctrl-C in a terminal and a scheduler's signal reach the leader and its runs."""
    process = begin(file, tmp_path, before=os.setsid)
    training = wait_for(lambda: [path for path in (tmp_path / "logs").glob("*") if "step 8 of" in path.read_text()])
    os.killpg(process.pid, number)
    ended(process, 130, 120)
    for path in training:
        steps = [int(one.stem.rpartition("-")[2]) for one in (tmp_path / path.stem).glob("model.ckpt-*.index")]
        assert max(steps) >= 8  # 7 was due
    assert finished(file, tmp_path) == table


def test_a_program_without_a_guard_trains_a_sweep(file, table, tmp_path):
    """A script that multiprocessing would import again in each process."""
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nprint('begun')\nimport bert_tf\n"
        f"print(len(bert_tf.sweep({str(file)!r}, output_dir='out', slots=2).results))\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, env=chartless(), capture_output=True, text=True, timeout=480)
    assert done.stdout.splitlines() == ["begun", str(RUNS)], done.stderr
    assert (tmp_path / "out" / "sweep.tsv").read_text() == table
