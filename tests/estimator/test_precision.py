"""Training in 16 bits and by XLA."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.features.batching import Batching, Schedule
from bert_tf.modeling.execution import Execution
from bert_tf.optimization import gradients
from tests import classifier, processes
from tests.estimator import toy

pytestmark = pytest.mark.versions

SCHEDULE = Schedule(24, 4, 25)  # 150 steps
ONCE = {"save_checkpoints_steps": 1000}
COUNTERS = {"global_step", "loss_scale/good_steps", "loss_scale/skipped_steps"}


def train(folder, dtype, restore, *, schedule=SCHEDULE, training=ONCE, **model):
    """Returns the lines of metrics.jsonl."""
    execution = Execution(dtype=dtype)
    scaled = dtype == tf.float16
    model = {"execution": execution, "restore": restore, "loss_scaling": scaled, **model}
    toy.train(folder, schedule=schedule, training=training, **model)
    return toy.metrics_lines(folder)


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16], ids=lambda dtype: dtype.name)
def test_training_in_16_bits_lowers_the_loss_and_keeps_weights_and_moments_in_float32(tmp_path, pretrained, caplog, dtype):
    with caplog.at_level("INFO"):
        lines = train(tmp_path, dtype, pretrained, training={**ONCE, "keep_optimizer_slots": True})
    losses = [line["loss"] for line in lines]
    assert np.mean(losses[:12]) > 0.6
    assert np.mean(losses[-12:]) < 0.3
    saved = toy.entries(tmp_path, SCHEDULE.steps)
    assert "output_weights/adam_v" in saved
    assert {value.dtype for name, value in saved.items() if name not in COUNTERS} == {np.dtype(np.float32)}
    reports = [text for text in caplog.messages if text.endswith(", skipped steps = 0")]
    if dtype == tf.float16:
        assert [line["skipped_steps"] for line in lines[:6]] == [0] * 6
        assert reports[5].startswith("step 6 of 150: loss = ")
    else:
        assert reports == []


KEPT = {"save_checkpoints_steps": 60, "keep_optimizer_slots": True}
LONG = {"schedule": Schedule(24, 4, 40), "training": KEPT, "learning_rate": 0.006}  # 240 steps


@pytest.fixture(scope="module")
def overflown(tmp_path_factory, pretrained):
    """The folder of a run whose scale is too large at first."""
    folder = tmp_path_factory.mktemp("overflown")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradients, "_INITIAL", 2.0**127)
        train(folder, tf.float16, pretrained, **LONG)
    return folder


def test_steps_that_overflow_are_skipped_and_training_goes_on(overflown):
    lines = toy.metrics_lines(overflown)
    skipped = [line["skipped_steps"] for line in lines]
    losses = [line["loss"] for line in lines]
    assert skipped[:80] == list(range(80))  # what float16 can bear here is somewhere below 2**47
    assert skipped[-1] < 127 < len(skipped)
    assert np.mean(losses[-12:]) < 0.6 < np.mean(losses[:80])
    constants = []
    for line in (overflown / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=constants.append)
    assert constants == []  # NaN and Infinity, which only Python reads
    before, after = toy.random_weights(toy.CONFIG), toy.entries(overflown, 60)  # skipped steps change no weight
    assert [name for name, value in before.items() if value.tobytes() != after[name].tobytes()] == []


def test_float16_continues_with_its_scale(overflown, tmp_path, pretrained):
    folder = shutil.copytree(overflown, tmp_path / "copy")
    saved = toy.entries(folder, 120)
    assert saved["loss_scale/scale"] == 2.0 ** (127 - saved["loss_scale/skipped_steps"])
    assert saved["loss_scale/skipped_steps"] > 0
    (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-120"\n')
    lines = train(folder, tf.float16, pretrained, **LONG)
    assert [line["skipped_steps"] for line in lines][120] == saved["loss_scale/skipped_steps"]


XLA_RUN = """
import sys
from pathlib import Path
from tests.estimator import test_precision, toy
folder = Path(sys.argv[1])
test_precision.train_for_xla(folder, toy.restore_plan(folder / "model"), xla=True)
"""


def train_for_xla(folder, restore, *, xla):
    """Trains without dropout, with one shape for all batches; returns the losses."""
    rates = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout_prob")
    sure = dataclasses.replace(toy.CONFIG, **dict.fromkeys(rates, 0.0))
    execution = Execution(pack_tokens=False)
    training = {**ONCE, "batching": Batching(pad_to=12)}
    defer = classifier.parse(["run_classifier.py", "--task_name=MRPC", f"--xla={xla}"]).speed.defer_embeddings
    ways = {"execution": execution, "restore": restore, "defer_embeddings": defer}
    toy.train(folder, config=sure, training=training, xla=xla, **ways)
    return [line["loss"] for line in toy.metrics_lines(folder)]


@pytest.mark.several_machines  # a process that compiles
def test_xla_trains_to_the_same_losses_and_compiles_once(tmp_path, pretrained):
    (tmp_path / "run.py").write_text(XLA_RUN)
    environment = {**os.environ, "TF_XLA_FLAGS": "--tf_xla_cpu_global_jit", "XLA_FLAGS": f"--xla_dump_to={tmp_path / 'dump'}"}
    done = processes.run([tmp_path / "run.py", tmp_path / "xla"], environment=environment)
    assert done.returncode == 0, done.stderr[-2000:]
    # Of each compilation a file: module_0012.cluster_3__..., of which no cluster needs two, as all batches have one shape.
    clusters = [path.name.split(".")[1] for path in (tmp_path / "dump").glob("module_*.before_optimizations.txt")]
    assert len(clusters) == len(set(clusters)) > 0
    losses = [line["loss"] for line in toy.metrics_lines(tmp_path / "xla")]
    np.testing.assert_allclose(losses, train_for_xla(tmp_path / "plain", pretrained, xla=False), atol=1e-4)
