"""No dataset of the project starts the thread of tf.data that closing a session has to wait for."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.data.ops.multi_device_iterator_ops import MultiDeviceIterator

from bert_tf.estimator.pipeline import train_input_fn
from bert_tf.features.batching import Schedule
from tests import datasets
from tests.labelled import labelled

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1

FEATURES = labelled(np.arange(60, dtype=np.int32), np.full(10, 6, np.int32), np.full(10, 3, np.int32), np.zeros(10, np.int32))
INPUT_FN = train_input_fn(FEATURES, Schedule(10, 5, 3.0), seed=3)


def test_what_is_read_is_not_tuned():
    with tf.Graph().as_default(), datasets.readers() as tuned:
        tf1.data.make_initializable_iterator(INPUT_FN())
    assert tuned == [("make_iterator", False)]


def test_nor_is_what_strategies_put_between_the_reader_and_each_replica():
    with tf.Graph().as_default(), datasets.readers() as tuned:
        MultiDeviceIterator(INPUT_FN(), ["/cpu:0", "/cpu:0"])
    assert tuned == [("multi_device_iterator_init", False), *[("make_iterator", False)] * 2]
