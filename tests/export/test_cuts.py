"""Long texts are cut in the graph as where features are built."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.export.saved_model.rows import CUTS
from bert_tf.features import long_text

tf1 = tf.compat.v1


@pytest.mark.parametrize("name", long_text.CUTS)
def test_cuts_are_those_of_features(name):
    rng = np.random.default_rng(3)
    first, second = (rng.integers(0, 60, 500).astype(np.int32) * (rng.random(500) < 0.9) for _ in range(2))
    limit = rng.integers(1, 40, 500).astype(np.int32)
    wanted = long_text.CUTS[name](*(values.astype(np.int32) for values in (first, second, limit)))
    with tf.Graph().as_default(), tf1.Session() as session:
        found = session.run(CUTS[name](*(tf.constant(values, tf.int32) for values in (first, second, limit))))
    rows = np.arange(500) if wanted.example_ids is None else wanted.example_ids
    np.testing.assert_array_equal(found.example_ids, rows)
    for ours, theirs in ((found.first, wanted.first), (found.second, wanted.second)):
        np.testing.assert_array_equal([list(span) for span in ours], [list(span) for span in theirs])
