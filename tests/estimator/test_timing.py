"""Times of steps, and what they say of runs that are made slow on purpose."""

import dataclasses
import json
import time

import pytest
import tensorflow as tf

from bert_tf.estimator.evaluation_hook import EvaluationPlan
from bert_tf.estimator.saver import CheckpointHook
from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from bert_tf.profiling.diagnosis import COMMUNICATION_BOUND, INPUT_BOUND, TOO_SHORT
from bert_tf.profiling.wall_clock import WALL
from tests import processes
from tests.estimator import toy

tf1 = tf.compat.v1

APART = pytest.mark.several_machines  # seconds of computing
STEPS = 50
SCHEDULE = Schedule(rows=24, batch_size=4, epochs=1, fixed_steps=STEPS)
SHORT = dataclasses.replace(SCHEDULE, fixed_steps=36)
SLOW = 0.1  # that a reader takes for a batch: much more than a step, however busy the machine is


class SlowFeatures(Features):
    """Takes its time for every batch."""

    def batch(self, rows, tokens):
        time.sleep(SLOW)
        return super().batch(rows, tokens)


def slow_features() -> SlowFeatures:
    return SlowFeatures(**{field.name: getattr(toy.features(24), field.name) for field in dataclasses.fields(Features)})


def timing(folder):
    return json.loads((folder / "timing.json").read_text(encoding="utf-8"))


def tokens(lines, batch_size):
    """The tokens of each step, by its rates."""
    return [batch_size * line["tokens_per_second"] / line["examples_per_second"] for line in lines]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Many operations of a microsecond each."""
    folder = tmp_path_factory.mktemp("tiny")
    toy.train(folder, schedule=SCHEDULE, training={"save_checkpoints_steps": 1000})
    return folder


@APART
def test_a_slow_reader_makes_a_run_input_bound(tmp_path, caplog):
    with caplog.at_level("INFO", logger="absl"):
        toy.train(
            tmp_path,
            schedule=dataclasses.replace(SCHEDULE, fixed_steps=36),
            data=slow_features(),
            training={"save_checkpoints_steps": 1000},
        )
    account = timing(tmp_path)
    assert account["diagnosis"]["kind"] == INPUT_BOUND
    assert account["diagnosis"]["text"] in caplog.text
    assert 0.5 * SLOW < account["reader"]["p50"] < account["batch"]["p50"] < 3 * SLOW


def test_the_first_steps_are_kept_apart(tiny):
    account = timing(tiny)
    assert (account["first_steps"], account["traced_steps"], account["steps"]) == (5, 0, STEPS - 5)
    assert account["first_seconds"] > 5 * account["batch"]["p99"]  # the first builds the graph


def test_a_short_run_says_so_and_micro_batches_are_one_step(tmp_path, caplog):
    (tmp_path / "timing.json").mkdir()
    with caplog.at_level("INFO", logger="absl"):
        outcome = toy.train(tmp_path, schedule=Schedule(24, 4, 1), micro_batches=2)
    assert f"The run was {TOO_SHORT}: 1 after the first steps" in caplog.text
    # A file that cannot be written does not fail a run that is trained.
    assert outcome.step == 6
    assert "timing.json: cannot write" in caplog.text
    lines = toy.metrics_lines(tmp_path)
    assert len(lines) == 6
    assert sum(tokens(lines, 4)) == pytest.approx(toy.features(24).lengths.sum())


def test_saves_and_evaluations_have_their_own_part_of_the_wall_time(tmp_path, monkeypatch):
    slow = 0.05

    def measure(_):
        time.sleep(slow)
        return {"eval_loss": 1.0}

    saved = CheckpointHook._get_saver

    def slow_saver(hook):
        time.sleep(slow)
        return saved(hook)

    monkeypatch.setattr(CheckpointHook, "_get_saver", slow_saver)
    plan = EvaluationPlan(4, toy.make_forward, measure, "eval_loss")
    with WALL.run():
        toy.train(tmp_path, schedule=Schedule(24, 4, 2), training={"evaluation": plan, "save_checkpoints_steps": 6})
        account = WALL.account()
    # Of 12 steps the 4th, 6th, 8th and 12th are saved; the 4th, 8th and 12th are evaluated, and no step follows the last.
    assert account.parts["saves"] >= 4 * slow
    assert account.parts["evaluations"] >= 3 * slow
    assert {"graph", "first_steps", "steps", "log", "between", "closing"} < account.parts.keys()


def test_reports_have_the_costs_of_their_steps_and_count_real_tokens(tiny):
    lines = toy.metrics_lines(tiny)
    assert ["batch_cost" in line for line in lines[:6]] == [False] * 5 + [True]
    assert 0 <= lines[-1]["reader_cost"] <= lines[-1]["batch_cost"]
    assert {"reader_cost", "batch_cost", "batch_cost_p99", "tokens_per_second"} <= toy.summary_tags(tiny)
    assert sum(tokens(lines[:6], SCHEDULE.batch_size)) == pytest.approx(toy.features(24).lengths.sum())  # an epoch


@pytest.fixture(scope="module")
def one_core():
    """What tests/estimator/timing_check.py reports; in a process of its own, since devices are set up only once."""
    result = processes.run(["-m", "tests.estimator.timing_check"])
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout)


@APART
def test_a_slow_all_reduce_makes_a_run_communication_bound(one_core):
    account = one_core["timing"]
    assert account["diagnosis"]["kind"] == COMMUNICATION_BOUND, account["diagnosis"]["text"]
    assert (
        0.9 * one_core["seconds"] < account["communication"]["p50"] < 2 * one_core["seconds"]
    )  # both replicas wait at the same time


@APART
def test_replicas_share_a_step_and_its_tokens_count_once(one_core):
    assert sum(one_core["timing"][f"{kind}steps"] for kind in ("", "first_", "traced_")) == one_core["steps"]
    lines = one_core["lines"]
    assert sum(tokens(lines[:3], 8)) == pytest.approx(toy.features(24).lengths.sum())  # an epoch: three batches of eight
    assert lines[-1]["communication_cost"] > 0.9 * one_core["seconds"]
