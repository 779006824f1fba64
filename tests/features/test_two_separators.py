"""Rows of RoBERTa, which has two separators between texts: <s> A </s></s> B </s>."""

import numpy as np
import pytest

from bert_tf.extensions.choice import features as choices
from bert_tf.extensions.span import features as spans
from bert_tf.extensions.tags import features as tags
from bert_tf.features import sentences
from bert_tf.tokenization.library import LibraryVocabulary
from bert_tf.tokenization.tokenizer import tokenizer_of
from tests import tokenizer_files
from tests.features.test_sentences import rows

pytest.importorskip("tokenizers")

# <s> 0, <pad> 1, </s> 2; "w" 5, digits 6 to 15, a blank and "w" 17; a word does not go on behind a digit
TOKENIZER = tokenizer_of(LibraryVocabulary(tokenizer_files.byte_level()), lower_case=False)


@pytest.mark.parametrize(
    ("texts", "length", "row"),
    [
        (("w1 w2", None), 9, [0, 5, 7, 17, 8, 2]),
        (("w1 w2", "w2"), 10, [0, 5, 7, 17, 8, 2, 2, 5, 8, 2]),
        (("w1 w2", "w2"), 8, [0, 5, 7, 2, 2, 5, 8, 2]),
        (("w1", "w2 w1"), 8, [0, 5, 7, 2, 2, 5, 8, 2]),
        (("w1 w2", ""), 9, [0, 5, 7, 17, 8, 2]),
        (("w1", "w2 w1"), 5, [0, 2, 2, 5, 2]),
    ],
)
def test_sentences(texts, length, row):
    features = sentences.build([texts], None, TOKENIZER, max_seq_length=length)
    assert (rows(features), features.first_lengths.tolist()) == ([row], [len(row)])  # all of segment 0


def test_words_have_the_blank_before_them():
    features = tags.build([["w1", "w2"]], np.array([0, 1], np.int32), TOKENIZER, max_seq_length=9)
    assert rows(features) == [[0, 17, 7, 17, 8, 2]]
    assert features.targets["tag_ids"].tolist() == [-1, 0, -1, 1, -1, -1]


def test_answers_are_behind_both_separators():
    question = spans.Question("w1", "w2 w1 w2", (3, 5))
    features = spans.build([question], TOKENIZER, spans.Windows(12, 4, 4))
    assert rows(features) == [[0, 5, 7, 2, 2, 5, 8, 17, 7, 17, 8, 2]]
    assert (features.targets["start_positions"].tolist(), features.targets["end_positions"].tolist()) == ([7], [8])
    assert features.targets["first_characters"].tolist() == [-1, -1, -1, -1, -1, 0, 1, 3, 4, 6, 7, -1]
    narrow = spans.build([question], TOKENIZER, spans.Windows(9, 2, 4))
    assert [row[:5] for row in rows(narrow)] == [[0, 5, 7, 2, 2]] * 3
    assert narrow.lengths.tolist() == [9, 9, 8]


def test_options_are_written_as_parts_of_one_text():
    rows_of = {("", ""): [8], ("w2", ""): [8, 17, 8], ("w2", "w1"): [8, 17, 8, 17, 7]}
    for (before, after), second in rows_of.items():
        choice = choices.Choice("w1", before, after, ["w2", "w1"])
        features = choices.build([choice], [0], TOKENIZER, max_seq_length=16)
        assert rows(features)[0] == [0, 5, 7, 2, 2, 5, *second, 2]
        assert features.first_lengths.tolist() == features.lengths.tolist()
