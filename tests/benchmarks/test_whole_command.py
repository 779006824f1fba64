"""Whole commands: how they are started, what is read of them, what their accounts are held to; evaluations."""

import contextlib
import dataclasses
import json
import sys
from unittest import mock

import pytest

from benchmarks import PROJECT, procedures, report, results, whole_command
from benchmarks.comparisons import COMPARISONS, OWN
from benchmarks.materials import Materials
from benchmarks.stage import Stage
from benchmarks.workers import WorkerError
from tests import classifier, declared

ROWS = {row.name: row for row in COMPARISONS}


@pytest.fixture
def job(tmp_path):
    return whole_command.Job(tmp_path / "data", tmp_path / "published", tmp_path / "huggingface", 64, 12, threads=1, limit=30.0)


def run(job, library, code, folder):
    return job.run(library, [sys.executable, "-S", "-c", code], folder / "output")


def leaves(folder, **files):
    """Returns a program that writes JSON files, and takes a tenth of a second at least."""
    lines = [f"open({str(folder / 'output' / name)!r}, 'w').write({json.dumps(content)!r})" for name, content in files.items()]
    return "; ".join(["import time", "time.sleep(0.1)", *lines])


def test_both_are_told_the_same(job, tmp_path):
    ours = classifier.parse(job.own(tmp_path)[1:])
    theirs = dict(argument[2:].split("=") for argument in job.peer("python", tmp_path)[2:])
    assert theirs.keys() >= {"task", "output", "save"}
    told = [
        *(ours.data.data_dir, ours.data.max_seq_length, ours.train.train_batch_size, ours.train.learning_rate),
        *(ours.train.num_train_epochs, ours.train.seed),
    ]
    names = ("data_dir", "max_seq_length", "batch_size", "learning_rate", "epochs", "seed")
    assert told == [type(mine)(theirs[name]) for mine, name in zip(told, names)]
    assert (ours.actions.do_train, ours.actions.do_eval, ours.train.adam_bias_correction) == (True, True, True)
    assert ours.model.init_checkpoint == str(job.published / "bert_model.ckpt")
    assert theirs["model"] == str(job.huggingface)


def test_the_sample_is_not_taken_for_mrpc(bench):
    source = bench.materials._source
    data = {**source.data, "MRPC": (source.data["MRPC"][0], PROJECT / "data" / "sample" / "MRPC")}  # as a user names it
    materials = Materials(bench.materials._folder, dataclasses.replace(source, data=data))
    stage = Stage(ROWS["command"], dataclasses.replace(bench, materials=materials))
    assert procedures._commands(stage, stage.present()) == {}
    assert stage.notes["bert_tf"] == "needs the data of MRPC: --data_dir"


def test_a_peer_is_timed_from_outside(job, tmp_path):
    done = run(job, "transformers", leaves(tmp_path, **{"results.json": {"accuracy": 0.75, "transformers": "5"}}), tmp_path)
    assert done.seconds >= 0.1
    assert (done.accuracy, done.parts, done.versions) == (0.75, {}, {"transformers": "5"})
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize(("parts", "fits"), [((60, 39), True), ((60, 42), True), ((60, 37), False), ((60, 43), False)])
def test_an_account_may_be_two_hundredths_off(parts, fits):
    message = f"its account adds up to {sum(parts)}.0 s of 100.0 s of wall time"
    with contextlib.nullcontext() if fits else pytest.raises(WorkerError, match=message):
        whole_command.check_account(dict(zip(("steps", "saves"), parts)), 100.0)


WRONG_ACCOUNT = {"timing.json": {"wall": {"parts": {"steps": 0.05}}}, "eval_results.json": {"eval_accuracy": 0.5}}


@pytest.mark.parametrize(
    ("library", "code", "message"),
    [
        ("transformers", "raise SystemExit('out of luck')", "ended with status 1: out of luck"),
        ("transformers", "pass", "left no results that can be read: FileNotFoundError"),
        ("transformers", "import time; time.sleep(60)", "not done within 0.5 s"),
        (OWN, None, "its account adds up to 0.1 s of"),
    ],
)
def test_why_a_command_cannot_be_measured(job, tmp_path, library, code, message):
    job = dataclasses.replace(job, limit=0.5 if "sleep(60)" in str(code) else 30)
    with pytest.raises(WorkerError) as caught:
        run(job, library, code or leaves(tmp_path, **WRONG_ACCOUNT), tmp_path)
    assert message in str(caught.value)


def test_every_run_counts_and_the_report_says_where_our_wall_time_went(bench, monkeypatch):
    def run(_, library, line, __):
        assert "/sample/MRPC" in " ".join(line)
        seconds = next(times[library])
        parts = {"start": 2.0, "steps": seconds - 2.0} if library == OWN else {}
        return whole_command.Finished(seconds, seconds / 100, parts, {})

    times = {OWN: iter((10.0, 12.0, 11.0)), "transformers": iter((20.0, 24.0, 22.0))}
    monkeypatch.setattr(whole_command.Job, "run", run)
    compared = results.compare(ROWS["command-sample"], bench)
    ours, theirs = compared["rows"]
    assert (ours["samples"], ours["ratio"]["median"], ours["accuracy"]) == ([10.0, 12.0, 11.0], 0.5, 0.11)
    assert (ours["parts"], theirs["parts"]) == ({"start": 2.0, "steps": 9.0}, {})
    settings = {"threads": 1, "rounds": 3, "steps": 4, "data": "d"}
    text = report._comparison({**compared, "measured": {"command": "c", "date": "d", "commit": "e", "settings": settings}})
    assert "| bert_tf | 12 | 11 (10 to 12) | 0.5 | 0.110 |" in text
    assert "| steps | 9.0 | 81.8% |" in text
    assert text.count("Where the wall time of") == 1


def test_a_checkpoint_of_each_step_is_kept_and_the_first_ones_are_evaluated(job, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(whole_command.Job, "wall_time", lambda _, __, command, ___: lines.append(command))
    job.train(tmp_path / "run", 10)
    train = classifier.parse(lines[0][1:]).train
    assert (train.num_train_steps, train.save_checkpoints_steps, train.keep_checkpoint_max) == (10, 1, 0)
    line = job.evaluation(tmp_path / "run", 3, tmp_path / "out")
    told = dict(argument[2:].split("=", 1) for argument in line[4:])
    assert [path.rpartition("-")[2] for path in told["checkpoints"].split(",")] == ["1", "2", "3"]
    assert told.keys() <= {flag.name for flag in declared.flags()["evaluate"]}


def test_checkpoints_are_deleted_when_they_are_evaluated(bench, monkeypatch):
    runs = []

    def train(_, run, __):
        run.mkdir()
        runs.append(run)

    def evaluate(_, run, checkpoints, __):
        assert run.is_dir()
        return float(checkpoints)

    monkeypatch.setattr(whole_command.Job, "train", train)
    monkeypatch.setattr(whole_command.Job, "evaluate", evaluate)
    assert [row["median"] for row in results.compare(ROWS["checkpoints-sample"], bench)["rows"]] == [10.0, 3.0]
    assert [run.exists() for run in runs] == [False]
    # Without them nothing is evaluated, and the benchmark goes on.
    monkeypatch.setattr(whole_command.Job, "train", mock.Mock(side_effect=WorkerError("ended with status 2")))
    rows = results.compare(ROWS["checkpoints-sample"], bench)["rows"]
    assert {row["status"] for row in rows} == {"failed: no checkpoints to evaluate: ended with status 2"}
