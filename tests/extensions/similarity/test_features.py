"""Features of pairs, by hand."""

import numpy as np

from bert_tf.extensions.similarity.family import build_pairs
from bert_tf.features.long_text import WINDOWS
from tests.features.test_sentences import TOKENIZER, rows


def test_each_text_is_a_row_and_pairs_stay_together_and_windows_with_their_side():
    features = build_pairs([("the cat", "sat"), ("sat", ".")], [0.5, 1.0], TOKENIZER, max_seq_length=8)
    assert rows(features) == [[2, 5, 6, 3], [2, 7, 3], [2, 7, 3], [2, 9, 3]]
    assert features.targets["sides"].tolist() == [0, 1, 0, 1]
    assert features.targets["scores"].tolist() == [0.5, 0.5, 1.0, 1.0]
    assert (features.units, features.batch(np.arange(4), 4)["groups"].tolist()) == (2, [0, 0, 1, 1])
    features = build_pairs([("the cat sat .", "cat")], [1.0], TOKENIZER, max_seq_length=5, long_text=WINDOWS)
    assert features.targets["sides"].tolist() == [0, 0, 1]
    assert features.units == 1
