"""Time to quality: the settings that trials choose, what both sides are told, the table."""

import json
import math
import sys
import time

import pytest

from benchmarks import time_to_quality
from benchmarks.comparisons import OWN
from benchmarks.time_to_quality import PEER, Contest, Run, report
from bert_tf.errors import FlagError
from bert_tf.home import SAMPLE
from tests import classifier

FIRST = {"precision": "bfloat16", "group_by_length": False, "learning_rate": 5e-5, "train_batch_size": 16}


@pytest.fixture
def contest(tmp_path):
    return Contest("MRPC", SAMPLE / "MRPC", "python", "encoder", tmp_path)


@pytest.fixture
def commands(monkeypatch):
    """Trainings that reach the goal after 10 seconds in float32, after 20 in bfloat16, not by length; their commands."""
    called = []

    def train(_side, command, _limit, log):
        called.append(command)
        words = " ".join(command)
        job = log.with_suffix("") / "job.json"
        words += job.read_text() if job.is_file() else ""
        score = 0.7 if "group_by_length=True" in words or "grouped" in words else 0.8
        seconds = 10.0 if "float32" in words else 20.0
        for name, line in (("evaluations", {"eval_accuracy": score}), ("clock", {"seconds": seconds, "training_seconds": 0})):
            log.with_suffix("").joinpath(f"{name}.jsonl").write_text(json.dumps({"step": 75, **line}) + "\n")

    monkeypatch.setattr(time_to_quality, "_train", train)
    return called


@pytest.mark.parametrize("side", [OWN, PEER])
def test_the_fastest_settings_are_chosen(contest, commands, side):
    assert contest.chosen(side) == {**FIRST, "precision": "float32"}
    tried = len(commands)
    assert tried == 4  # two precisions to the first evaluation; first settings, by length to the goal
    assert contest.chosen(side)["precision"] == "float32"
    assert len(commands) == tried  # by the record


def test_both_are_told_the_same(contest, commands):
    for side in (OWN, PEER):
        contest.run(side, 3, FIRST, 0.8)
    ours = classifier.parse(commands[0][1:]).train
    theirs = json.loads((contest.folder / "run" / "job.json").read_text())
    names = ("learning_rate", "train_batch_size", "num_train_epochs", "seed", "eval_every_n_steps")
    assert [getattr(ours, name) for name in names] == [theirs[name] for name in names]
    assert ours.target_metric == f"{theirs['metric']}:{theirs['goal']}"
    assert (ours.stop_at_target, ours.adam_bias_correction) == (True, True)


def test_a_late_training_does_not_start(tmp_path, commands):
    late = Contest("MRPC", SAMPLE / "MRPC", "python", "encoder", tmp_path, ends=time.monotonic() - 1)
    with pytest.raises(KeyboardInterrupt):
        late.run(OWN, 1, FIRST, 0.8)
    assert commands == []


def test_the_table_has_the_ratio_of_medians():
    seconds = {OWN: (30.0, 20.0, math.inf), PEER: (60.0, 90.0, 75.0)}
    runs = [Run("MRPC", side, seed, FIRST, 0.8, s, 0.79) for side, each in seconds.items() for seed, s in enumerate(each)]
    (row,) = (line for line in report("MRPC", runs) if line.startswith("| MRPC"))
    assert "| accuracy 0.8 | 30, 20, not reached (0.790) | 60, 90, 75 | 2.5 | bfloat16, rate 5e-05, batch 16;" in row


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--task=MRCP"], "--task: unknown task 'MRCP'; did you mean MRPC"),
        (["--task=MRPC"], "--peer_encoder=: no config.json there"),
        (["--task=MRPC", "--seeds=0-2"], "--seeds: 0 is the seed of trials"),
    ],
)
def test_mistakes_are_one_line(tmp_path, flags, message):
    (tmp_path / "config.json").write_text("{}")
    known = [f"--peer_encoder={tmp_path}"] if "seeds" in flags[-1] else []
    with pytest.raises(FlagError, match=message):
        time_to_quality.parse(["time_to_quality", f"--peer_python={sys.executable}", *flags, *known])
