"""What the peer is given, and what is made of its logits; a script that knows no library stands in for it."""

import json
import math
import sys

import numpy as np
import pytest
import safetensors.numpy

from benchmarks.quality import runs
from benchmarks.quality.runs import PEER, START, Reached, Series
from benchmarks.workers import WorkerError
from bert_tf.checkpoints.reader import CheckpointReader, write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.features.columns import Features
from bert_tf.home import SAMPLE
from bert_tf.io import documents
from bert_tf.tasks.base import DEV, TRAIN, Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tiny import random_weights

TASK = get_task("CoNLL2003")
LABELS = len(TASK.family.labels)
SETTINGS = {"data_dir": str(SAMPLE / "CoNLL2003"), "learning_rate": 1e-4, "train_batch_size": 8, "num_train_epochs": 2.0}
CERTAIN_OF_THE_FIRST_TAG = """
import json, pathlib, sys
import numpy as np, safetensors.numpy
job = json.loads(pathlib.Path(sys.argv[1]).read_text())
total = len(safetensors.numpy.load_file(job["dev"])["token_ids"])
before, after = np.zeros([2, total, job["num_labels"]], np.float32)
after[:, 0] = 9.0
output = pathlib.Path(job["output"])
safetensors.numpy.save_file({"before": before, "after": after}, output.with_suffix(".safetensors"))
output.write_text(json.dumps({"seconds": 5.0, "losses": [2.0, 1.0], "versions": {}}))
"""


@pytest.fixture
def series(project, tmp_path, monkeypatch) -> Series:
    """A series whose first run of ours is there, at rate 0."""
    script = tmp_path / "peer.py"
    script.write_text(CERTAIN_OF_THE_FIRST_TAG)
    monkeypatch.setattr(runs, "SCRIPT", script)
    series = Series(TASK, SETTINGS, tmp_path / "runs", sys.executable, threads=1)
    run = series.run_folder(START, 1)
    (run / "features").mkdir(parents=True)
    vocabulary = Vocabulary.from_file(project.vocab_file)
    for split in (TRAIN, DEV):
        examples = TASK.examples(SAMPLE / "CoNLL2003", split)
        columns = TASK.family.features(examples, WordPieceTokenizer(vocabulary), Limits(64)).columns()
        safetensors.numpy.save_file(dict(columns), run / "features" / f"CoNLL2003-{split}-0.safetensors")
    config = BertConfig.from_json_file(project.bert_config_file)
    weights, bias = np.full([LABELS, config.hidden_size], 0.5, np.float32), np.ones(LABELS, np.float32)
    write_checkpoint(run / "model.ckpt-1", {**random_weights(config), "output_weights": weights, "output_bias": bias})
    (run / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-1"\nall_model_checkpoint_paths: "model.ckpt-1"\n')
    (run / "bert_config.json").write_text(config.to_json())
    (run / "vocab.txt").write_text(vocabulary.to_text())
    keep(series, Reached({"loss": math.log(LABELS)}))
    return series


def keep(series, reached, side=START):
    (series.folder / f"{side}-1.json").write_text(documents.to_json(reached.__dict__))


def test_our_family_measures_the_logits_of_a_peer_that_starts_from_our_head_and_takes_as_many_steps_as_we_do(series):
    reached = series.reached(PEER, 1)
    outside = [tag for example in series.examples for tag in example.label].count(TASK.family.labels[0])
    words = sum(len(example.words) for example in series.examples)
    assert TASK.family.labels[0] == "O"
    assert reached.metrics["token_accuracy"] == pytest.approx(outside / words)
    assert (reached.seconds, list(reached.losses)) == (5.0, [])
    folder = series.folder / f"run-{PEER}-1"
    job = json.loads((folder / "job.json").read_text())
    assert job["steps"] == int(len(safetensors.numpy.load_file(job["train"])["lengths"]) / 8 * 2.0)
    head = safetensors.numpy.load_file(folder / "model" / "head.safetensors")
    ours = CheckpointReader(series.run_folder(START, 1) / "model.ckpt-1")
    np.testing.assert_array_equal(head["weight"], ours["output_weights"])
    np.testing.assert_array_equal(head["bias"], ours["output_bias"])
    features = runs.features(series, 1, DEV)
    assert isinstance(features, Features)  # as the cache has them
    assert features.examples == len(series.examples)


def test_another_loss_before_training_is_refused(series):
    keep(series, Reached({"loss": 1.5}))
    with pytest.raises(WorkerError, match=r"transformers: loss on dev before training is 2\.19\d+, not 1\.5"):
        series.reached(PEER, 1)
    assert not (series.folder / f"{PEER}-1.json").exists()


def test_what_is_finished_is_not_trained_again(series):
    keep(series, Reached({"entity_f1": 0.5}, {"entity_f1": (0.4, 0.6)}, 7.0), side=PEER)
    reached = series.reached(PEER, 1)
    assert (reached.metrics["entity_f1"], reached.seconds) == (0.5, 7.0)


def test_a_peer_that_fails_is_named(series, monkeypatch, tmp_path):
    script = tmp_path / "fails.py"
    script.write_text("raise SystemExit(3)")
    monkeypatch.setattr(runs, "SCRIPT", script)
    with pytest.raises(WorkerError, match="transformers with seed 1 ended with status 3"):
        series.reached(PEER, 1)
