from __future__ import annotations

import numpy as np

from bert_tf.features.long_text import WINDOWS
from bert_tf.features.pairs import build
from tests.features.test_sentences import TOKENIZER, rows


def test_each_text_is_a_row_and_pairs_stay_together():
    features = build([("the cat", "sat"), ("sat", ".")], [0.5, 1.0], TOKENIZER, max_seq_length=8)
    assert rows(features) == [[2, 5, 6, 3], [2, 7, 3], [2, 7, 3], [2, 9, 3]]
    assert features.targets["sides"].tolist() == [0, 1, 0, 1]
    assert features.targets["scores"].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert (features.units, features.batch(np.arange(4), 4)["groups"].tolist()) == (2, [0, 0, 1, 1])


def test_windows_of_a_long_text_are_rows_of_its_side():
    features = build([("the cat sat .", "cat")], [1.0], TOKENIZER, max_seq_length=5, long_text=WINDOWS)
    assert features.targets["sides"].tolist() == [0, 0, 1]
    assert features.units == 1
