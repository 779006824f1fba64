"""What is computed packed, deferred and by hand-written gradients is what the published layout computes, dropout included."""

from __future__ import annotations

import dataclasses
import os

import numpy as np
import pytest

from bert_tf import home
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.inputs.pipeline import Schedule
from bert_tf.jobs import sources
from bert_tf.jobs.settings import ModelSettings
from bert_tf.tasks.base import TRAIN, Limits
from bert_tf.tasks.registry import get_task
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.estimator import wide
from tests.estimator.same_masks import Case, distance
from tests.tiny import random_weights

STEPS = 40


def schedule(examples: int, batch_size: int) -> Schedule:
    return Schedule(examples, batch_size, 1, fixed_steps=STEPS)


def test_the_same_masks_give_the_same_40_losses():
    config = dataclasses.replace(wide.CONFIG, num_hidden_layers=2)
    head = np.random.default_rng(6).normal(0, 0.2, (2, config.hidden_size))
    weights = {**random_weights(config), "output_weights": head}
    data = wide.features()
    assert distance(Case(config, data, schedule(len(data), 4), wide.LONGEST, weights, 0.003)) < 1e-5


@pytest.mark.slow
def test_the_same_masks_give_the_same_40_losses_of_the_bundled_sample():
    """By the default checkpoint and the settings of its recipe."""
    model = sources.find_model(ModelSettings(None, None, None), environment=os.environ)
    config, reader = BertConfig.from_json_file(model.config), CheckpointReader(model.checkpoint)
    head = np.random.default_rng(6).normal(0, 0.02, (2, config.hidden_size))
    weights = {**{name: reader[name] for name in reader.shapes}, "output_weights": head}
    task = get_task("MRPC")
    examples = task.examples(home.SAMPLE / task.name, TRAIN)
    tokenizer = WordPieceTokenizer(Vocabulary.from_file(model.vocabulary))
    data = task.family.features(examples, tokenizer, Limits(64))
    assert distance(Case(config, data, schedule(len(data), 16), 64, weights, 1e-4)) < 1e-5
