"""Which runs a leader starts, when, and what it makes of their ends; processes are fakes that end at once."""

import collections
import dataclasses
import errno
import json
import os
import time
import types
from unittest import mock

import pytest

from bert_tf.errors import OutputError
from bert_tf.extensions.sweep import TABLE, leader, table, worker
from bert_tf.extensions.sweep.leader import Leader, Slot
from bert_tf.extensions.sweep.plan import PlannedRun
from bert_tf.runtime import nvidia
from tests.classifier import mrpc

CONFIG = mrpc()
ONE_SLOT = (Slot({}),)


def planned(name, cost=1.0, after=None):
    return PlannedRun(name, "MRPC", 1, {}, CONFIG, cost, after)


def result(run, **values):
    return table.Result(run.name, run.task, run.seed, {}, 5, {"eval_accuracy": 0.5}, 1.0, "eval_accuracy", **values)


class Ended:
    """A process that has ended: its sentinel is ready at once."""

    def __init__(self, status):
        self.exitcode = status
        self.sentinel = os.open(os.devnull, os.O_RDONLY)

    def __del__(self):
        os.close(self.sentinel)


class Machine:
    """Ends runs at once with a status: 0 writes a result."""

    def __init__(self, *statuses):
        self.statuses = list(statuses)
        self.started = []

    def __call__(self, run, folder, environment):
        status = self.statuses.pop(0) if self.statuses else table.EXIT_DONE
        self.started.append((run.name, environment.get("CUDA_VISIBLE_DEVICES"), run.config.devices.intra_op_threads))
        if status == table.EXIT_DONE:
            table.write(folder, result(run))
        return Ended(status)


def lead(folder, runs, machine, slots=ONE_SLOT):
    return Leader(runs, folder, slots, start=machine).lead()


def test_the_longest_run_is_started_first_and_results_keep_the_order_of_the_file(tmp_path):
    machine, runs = Machine(), [planned("short", 1.0), planned("long", 9.0), planned("middle", 3.0)]
    results = lead(tmp_path, runs, machine)
    assert [name for name, *_ in machine.started] == ["long", "middle", "short"]
    assert [one.name for one in results] == ["short", "long", "middle"]
    rows = (tmp_path / TABLE).read_text().splitlines()
    assert [row.split("\t")[-1] for row in rows] == ["folder", "short", "long", "middle"]


GPUS = [Slot({"CUDA_VISIBLE_DEVICES": f"GPU-{number}"}) for number in range(3)]


@pytest.mark.parametrize(
    ("slots", "spread", "a", "b"),
    [
        ([GPUS[0], Slot({}, threads=3)], False, ("GPU-0", None), (None, 3)),
        ([Slot({}, threads=2)] * 4, False, (None, 4), (None, 4)),  # threads that would idle are given
        (GPUS, False, ("GPU-0", None), ("GPU-1", None)),
        (GPUS, True, ("GPU-0,GPU-1", None), ("GPU-2", None)),  # GPUs only if asked
    ],
)
def test_slots_say_which_gpus_a_run_has_and_how_many_threads(tmp_path, slots, spread, a, b):
    machine = Machine()
    Leader([planned("a"), planned("b")], tmp_path, slots, spread=spread, start=machine).lead()
    assert machine.started == [("a", *a), ("b", *b)]


@pytest.mark.parametrize(
    ("cores", "free_gb", "asked", "threads"),
    [
        *((8, (64, 96), None, [1] * 8), (8, (9, 96), None, [4, 4]), (8, (96, 9), None, [4, 4]), (8, (1, 96), None, [8])),
        *((8, (64, 96), 3, [2] * 3), (2, (64, 96), 5, [1] * 5)),
    ],
)
def test_without_a_gpu_cores_and_memory_are_divided(monkeypatch, cores, free_gb, asked, threads):
    monkeypatch.setattr(leader.nvidia, "survey", nvidia.System)
    monkeypatch.setattr(leader.cgroup, "granted_cpus", lambda: cores)
    granted, of_machine = (gb << 30 for gb in free_gb)
    monkeypatch.setattr(leader.cgroup, "memory", lambda: (128 << 30, granted))
    monkeypatch.setattr(leader.psutil, "virtual_memory", lambda: types.SimpleNamespace(total=128 << 30, available=of_machine))
    assert leader.slots(asked, {}) == [Slot({}, threads=one) for one in threads]


def test_each_visible_gpu_is_a_slot(monkeypatch):
    gpus = tuple(nvidia.Gpu(number=number, uuid=f"GPU-{number}") for number in range(3))
    monkeypatch.setattr(leader.nvidia, "survey", lambda: nvidia.System(gpus))
    assert [slot.environment for slot in leader.slots(None, {})] == [{"CUDA_VISIBLE_DEVICES": f"GPU-{n}"} for n in range(3)]
    for shown, count, expected in (
        ("2,0", 4, ["2", "0", "2", "0"]),  # CUDA may number them in another order than nvidia-smi
        ("GPU-2, 0,7,1", None, ["GPU-2", "0"]),
        ("0,0", None, ["0"]),
        ("MIG-a, MIG-b", None, ["MIG-a", "MIG-b"]),  # the parts that the job was given
    ):
        hidden = leader.slots(count, {"CUDA_VISIBLE_DEVICES": shown})
        assert [slot.environment["CUDA_VISIBLE_DEVICES"] for slot in hidden] == expected


def test_a_run_that_starts_from_another_waits_for_it_and_fails_without_a_start_if_that_failed(tmp_path):
    machine, runs = Machine(), [planned("second", 9.0, after="first"), planned("first")]
    lead(tmp_path, runs, machine, [Slot({})] * 2)
    assert [name for name, *_ in machine.started] == ["first", "second"]
    table.write(tmp_path / "failed", table.failed(runs[1], "no memory"))
    second, _ = lead(tmp_path / "failed", runs, machine)
    assert second.error == "it starts from the model of first, which failed"
    assert len(machine.started) == 2


def test_a_killed_run_is_continued_but_not_for_ever(tmp_path, caplog):
    machine = Machine(-9, -9)
    (ended,) = lead(tmp_path, [planned("a")], machine)
    assert len(machine.started) == 3
    assert ended.error is None

    caplog.clear()
    (ended,) = lead(tmp_path / "other", [planned("a")], Machine(-9, 137, -9))
    killed = [message.rpartition("; ")[2] for message in caplog.messages if "its process ended with status" in message]
    assert killed == ["resuming it", "resuming it", "giving up"]
    assert ended.error.startswith("its process ended 3 times, with status -9")


def test_a_run_that_another_leader_has_is_left_to_it(tmp_path):
    """The process finds it taken; its result comes from elsewhere."""

    def start(run, folder, _):
        table.write(folder, result(run))  # the other leader's
        return Ended(table.EXIT_TAKEN)

    (trained,) = lead(tmp_path, [planned("a")], start)
    assert trained.metrics == {"eval_accuracy": 0.5}


def test_finished_runs_are_not_started_again_and_failed_ones_are(tmp_path):
    runs = [planned("done"), planned("failed")]
    table.write(tmp_path, result(runs[0]))
    table.write(tmp_path, table.failed(runs[1], "no memory"))
    table.forget(tmp_path, [run.name for run in runs], failures=True)
    machine = Machine()
    lead(tmp_path, runs, machine)
    assert [name for name, *_ in machine.started] == ["failed"]


def test_of_many_runs_each_result_is_read_at_most_twice_and_the_table_is_written_once_a_round(tmp_path, monkeypatch):
    """So that ten thousand runs on two hundred slots take seconds."""
    runs = [planned(f"r{number}", 1.0 + number % 7) for number in range(400)]
    machine, read, reads, tables = Machine(), table.read_result, collections.Counter(), []
    monkeypatch.setattr(table, "read_result", lambda folder, name: reads.update([name]) or read(folder, name))
    results = Leader(runs, tmp_path, [Slot({})] * 20, keep=tables.append, start=machine).lead()
    assert len(results) == len(machine.started) == 400
    assert (max(reads.values()), len(tables)) == (2, 400 // 20)


def test_an_error_of_the_system_is_the_line_of_its_run(tmp_path, monkeypatch):
    monkeypatch.setattr(
        worker, "fine_tune", mock.Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "features"))
    )
    assert worker._trained(planned("r"), tmp_path) == table.EXIT_FAILED
    assert table.read_result(tmp_path, "r").error.startswith("features: No space left on device; free some space, or")


def test_a_run_is_trained_on_its_machine_alone_whatever_job_its_leader_is_of(tmp_path, monkeypatch):
    """As of Kubeflow, which names the other machines to each."""
    seen = []
    monkeypatch.setenv("TF_CONFIG", '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}')
    monkeypatch.setattr(worker.signals, "ending", list)
    monkeypatch.setattr(worker.os, "dup2", mock.Mock())
    monkeypatch.setattr(worker, "WALL", mock.Mock())
    monkeypatch.setattr(worker, "_trained", lambda *_: seen.append(os.environ.get("TF_CONFIG")))
    (tmp_path / table.LOGS).mkdir()
    with pytest.raises(SystemExit):
        worker.work(planned("r"), tmp_path, {})
    assert seen == [None]


def test_a_folder_is_of_one_set_of_settings(tmp_path):
    for _ in range(2):
        table.keep_settings(tmp_path, {"num_train_steps": 20}, {})
    with pytest.raises(OutputError, match="holds runs with other settings \\(num_train_steps was 20, now 30\\)"):
        table.keep_settings(tmp_path, {"num_train_steps": 30}, {})


def test_a_folder_is_of_one_state_of_its_files_once_a_run_has_a_result(tmp_path):
    for digest in ("a", "b"):  # a file may be repaired after a failure
        table.keep_settings(tmp_path, {}, {"train.csv": digest})
        table.write(tmp_path, table.failed(planned("r"), "a bad row"))
    table.write(tmp_path, result(planned("r")))
    table.keep_settings(tmp_path, {}, {"train.csv": "b", "new.csv": "a"})
    for name in ("train.csv", "new.csv"):
        with pytest.raises(OutputError, match=f"{name} has changed since its runs were trained; name another --output_dir"):
            table.keep_settings(tmp_path, {}, {name: "c"})


def test_a_result_by_the_name_of_a_run_with_other_settings_is_refused(tmp_path):
    run = dataclasses.replace(planned("learning_rate=2e-05"), varying={"learning_rate": 2e-5})
    table.write(tmp_path, table.result(run))
    table.refuse_others(tmp_path, [run, planned("new")])
    with pytest.raises(OutputError, match=r"=2e-05 is a run of {'learning_rate': 2e-05}, not .*2.00001e-05}; name"):
        table.refuse_others(tmp_path, [dataclasses.replace(run, varying={"learning_rate": 2.00001e-5})])


@pytest.mark.parametrize(
    "damage",
    [
        {"metrics": {"eval_accuracy": "0.5"}},
        {"metrics": None},
        {"seed": 1.5},
        {"name": "other"},  # another run's file
        {"seconds": True},
        *("", "{", "[]", '{"name": "a", "seconds": 1e400}'),
    ],
)
def test_a_damaged_result_is_that_of_a_run_that_is_not_done(tmp_path, damage):
    run = planned("a")
    table.write(tmp_path, result(run))
    path = tmp_path / "results" / "a.json"
    path.write_text(damage if isinstance(damage, str) else json.dumps({**json.loads(path.read_text()), **damage}))
    machine = Machine()
    assert lead(tmp_path, [run], machine) == [result(run)]
    assert len(machine.started) == 1


def test_a_result_of_another_version_is_read(tmp_path):
    table.write(tmp_path, result(planned("a")))
    path = tmp_path / "results" / "a.json"
    values = {**json.loads(path.read_text()), "more": 1}
    del values["pruned"]
    path.write_text(json.dumps(values))
    assert table.read_result(tmp_path, "a") == result(planned("a"))


def test_a_result_that_another_version_compared_by_another_metric_is_compared_by_that_of_its_run(tmp_path):
    run = dataclasses.replace(planned("a"), metric="eval_macro_f1")
    table.write(tmp_path, result(planned("a")))
    with pytest.raises(OutputError, match=": its runs are compared by eval_accuracy, not eval_macro_f1; name another"):
        lead(tmp_path, [run], Machine())
    table.write(tmp_path, dataclasses.replace(result(run), metrics={"eval_accuracy": 0.5, "eval_macro_f1": 0.4}))
    assert [one.worth for one in lead(tmp_path, [run], Machine())] == [0.4]
    assert table.read_result(tmp_path, "a").metric == "eval_macro_f1"
    with pytest.raises(OutputError):
        table.compared(tmp_path, run, dataclasses.replace(table.read_result(tmp_path, "a"), metric="eval_accuracy"), drawn=True)


@pytest.mark.parametrize(("waiting", "rest"), [("", "60 s"), ("e", "60 min"), ("ef", "61 min")])
def test_the_rest_of_the_time_is_that_of_the_last_run(tmp_path, waiting, rest):
    """Runs take an hour; three of four slots are busy for another minute."""
    one = Leader([planned(name) for name in f"abcd{waiting}"], tmp_path, ONE_SLOT * 4, start=Machine())
    since = time.monotonic() - 3540
    one._speeds, one._waiting = [3600.0], {name: planned(name) for name in waiting}
    one._started = {name: leader._Started(planned(name), None, since, (slot,)) for slot, name in enumerate("abc")}
    assert one._rest() == f"; about {rest} left"


def test_a_result_that_cannot_be_read_for_a_moment_ends_no_sweep(tmp_path, monkeypatch):
    machine, read, fails = Machine(), table.read_result, [False, True]  # where its process ends, and in the next round
    monkeypatch.setattr(table, "read_result", lambda *of: None if fails and fails.pop(0) else read(*of))
    assert lead(tmp_path, [planned("a")], machine) == [result(planned("a"))]
    assert len(machine.started) == 1


def test_a_file_where_the_logs_belong_is_one_line(tmp_path):
    (tmp_path / "logs").write_text("")
    with pytest.raises(OutputError, match="logs"):
        lead(tmp_path, [planned("a")], Machine())


def test_an_error_of_the_leader_stops_its_runs(tmp_path):
    """Also one that does not hear the first signal."""
    stopped = []

    class Running(Ended):
        def terminate(self):
            stopped.append("terminated")

        def join(self, _):
            stopped.append("joined")
            self.exitcode = table.EXIT_STOPPED if stopped.count("joined") == 2 else None

    def full(_):
        raise OutputError("no space left on device")

    def start(run, folder, _):
        if run.name == "a":
            table.write(folder, result(run))
        return Running(table.EXIT_DONE if run.name == "a" else None)

    with pytest.raises(OutputError, match="no space"):
        Leader([planned("a"), planned("b")], tmp_path, ONE_SLOT * 2, start=start, keep=full).lead()
    assert stopped == ["terminated", "joined"] * 2


def test_the_summary_has_means_over_seeds_collapsed_and_failed_runs(tmp_path):
    one = result(planned("a"))
    others = ({"metrics": {"eval_accuracy": 0.75}, "collapsed": "all the same"}, {"metrics": {}, "error": "no memory"})
    runs = [dataclasses.replace(one, name=str(number), **values) for number, values in enumerate(others)]
    _, row = table.summary([one, *runs], tmp_path)
    assert row.split() == ["MRPC", "accuracy", "0.6250", "0.1768", "2", "1", "1", "3"]


def test_the_summary_has_the_best_settings_first_with_the_interval_of_their_score(tmp_path):
    scores = {"low": -0.5, "none": None, "high": 0.75, "cut": 0.875, "zero": 0.0}
    one = result(planned("a"))
    results = [
        dataclasses.replace(
            one,
            name=name,
            varying={"learning_rate": name},
            pruned=name == "cut",
            metrics={} if score is None else {"eval_accuracy": score},
            error="no memory" if score is None else None,
        )
        for name, score in scores.items()
    ]
    high = next(result for result in results if result.name == "high")
    results.insert(0, dataclasses.replace(high, name="stopped", pruned=True, metrics={"eval_accuracy": 0.9}))  # counts nowhere
    for name, score in (("high", 0.75), ("low", 0.25)):  # the second is not the score of the sweep
        details = {"accuracy": score, "intervals_95": {"accuracy": [0.7, 0.8]}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "eval_results.json").write_text(json.dumps({"splits": {"dev": details}}))
    head, *rows = table.summary(results, tmp_path)
    assert head.split()[:6] == ["task", "settings", "metric", "mean", "95", "%"]
    assert [row.split()[1].partition("=")[2] for row in rows] == ["high", "zero", "low", "none", "cut"]
    assert rows[0].split()[3:7] == ["0.7500", "0.700", "to", "0.800"]
    assert rows[2].split()[3:5] == ["-0.5000", "-"]
