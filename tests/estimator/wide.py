"""The toy's model with more words than a run uses, so that rows of the table are put off for long."""

import dataclasses

import numpy as np

from bert_tf.features.batching import Schedule
from bert_tf.features.columns import Features
from tests.estimator import toy
from tests.labelled import labelled

WORDS = 2100  # more than are made current at once
CONFIG = dataclasses.replace(toy.CONFIG, vocab_size=WORDS)
SURE = dataclasses.replace(CONFIG, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
SCHEDULE = Schedule(rows=48, batch_size=4, epochs=2.5)  # 30 steps
LONGEST = 16


def features(seed: int = 2) -> Features:
    """As the toy's, of 6 to 16 tokens; one word in two is among the first hundred."""
    rng = np.random.default_rng(seed)
    examples = SCHEDULE.rows
    lengths = rng.integers(6, LONGEST + 1, examples).astype(np.int32)
    labels = (np.arange(examples) % 2).astype(np.int32)
    ids = []
    for length, label in zip(lengths, labels):
        words = np.where(rng.integers(2, size=length - 5), rng.integers(7, WORDS, length - 5), rng.integers(7, 100, length - 5))
        ids += [2, 5 + label, 7, 3, *words, 3]
    return labelled(np.array(ids, np.int32), lengths, np.full(examples, 4, np.int32), labels)
