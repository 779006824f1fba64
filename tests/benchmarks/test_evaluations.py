"""Checkpoints evaluated by one command."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import results, whole_command
from benchmarks.comparisons import COMPARISONS
from benchmarks.whole_command import Job
from benchmarks.workers import WorkerError
from bert_tf.commands import evaluate
from tests import classifier_flags


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path / "data", tmp_path / "published", tmp_path / "huggingface", 64, 12)


def test_a_checkpoint_is_kept_of_each_step(job, tmp_path, monkeypatch):
    lines = []
    monkeypatch.setattr(whole_command, "wall_time", lambda command, *_: lines.append(command))
    whole_command.train(job, tmp_path / "run", 10, environment={}, limit=1)
    train = classifier_flags.parse(lines[0][1:]).train
    assert (train.num_train_steps, train.save_checkpoints_steps, train.keep_checkpoint_max) == (10, 1, 0)


def test_the_first_checkpoints_are_evaluated(job, tmp_path):
    line = whole_command.evaluation(job, tmp_path / "run", 3, tmp_path / "out")
    told = dict(argument[2:].split("=", 1) for argument in line[4:])
    assert [path.rpartition("-")[2] for path in told["checkpoints"].split(",")] == ["1", "2", "3"]
    assert told.keys() <= {flag.name for flag in evaluate.FLAGS}


@pytest.mark.parametrize(("rows", "fits"), [(3, True), (2, False)])
def test_all_have_to_be_in_the_table(job, tmp_path, monkeypatch, rows, fits):
    output = tmp_path / "out"
    code = f"open({str(output / 'results.json')!r}, 'w').write({json.dumps({'rows': [{}] * rows})!r})"
    monkeypatch.setattr(whole_command, "evaluation", lambda *_: [sys.executable, "-S", "-c", code])
    if fits:
        assert whole_command.evaluate(job, tmp_path, 3, output, environment={}, limit=30) > 0.0
        assert not output.exists()
    else:
        with pytest.raises(WorkerError, match="evaluated 2 of 3 checkpoints"):
            whole_command.evaluate(job, tmp_path, 3, output, environment={}, limit=30)


def test_checkpoints_are_deleted_when_they_are_evaluated(bench, monkeypatch):
    runs = []

    def train(_, run, *__, **___):
        run.mkdir()
        runs.append(run)

    def evaluate(_, run, checkpoints, *__, **___):
        assert run.is_dir()
        return float(checkpoints)

    monkeypatch.setattr(whole_command, "train", train)
    monkeypatch.setattr(whole_command, "evaluate", evaluate)
    (comparison,) = (row for row in COMPARISONS if row.name == "checkpoints-sample")
    assert [row["median"] for row in results.compare(comparison, bench)["rows"]] == [10.0, 3.0]
    assert [run.exists() for run in runs] == [False]


def test_without_checkpoints_nothing_is_evaluated_and_the_benchmark_goes_on(bench, monkeypatch):
    def train(*_, **__):
        raise WorkerError("ended with status 2")

    monkeypatch.setattr(whole_command, "train", train)
    (comparison,) = (row for row in COMPARISONS if row.name == "checkpoints-sample")
    found = results.compare(comparison, bench)["rows"]
    assert {row["status"] for row in found} == {"failed: no checkpoints to evaluate: ended with status 2"}
