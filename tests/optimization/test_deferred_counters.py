"""The steps that rows of a table are current at, as numbers that a GPU can write."""

from __future__ import annotations

import pytest
import tensorflow as tf

from bert_tf.optimization.adamw import AdamWConfig
from bert_tf.optimization.deferred import MOST_STEPS, DeferredTable


def rates(step: tf.Tensor) -> tf.Tensor:
    return tf.ones_like(step, tf.float32) * 1e-5


def make(total_steps: int) -> DeferredTable:
    return DeferredTable(AdamWConfig(), rates, tf.constant(0, tf.int64), total_steps=total_steps)


def test_counters_are_numbers_that_gpus_write_to_places_of():
    with tf.Graph().as_default():
        table = tf.compat.v1.get_variable("words", [9, 2])
        make(10).lookup(table, tf.constant([1, 4]))
        assert {variable.dtype for variable in tf.compat.v1.local_variables()} == {tf.float32}


def test_more_steps_than_float32_counts_one_by_one_are_refused():
    with tf.Graph().as_default():
        make(MOST_STEPS)
        with pytest.raises(ValueError, match="16777217 steps: updates can be put off for 16777216 at most"):
            make(MOST_STEPS + 1)
