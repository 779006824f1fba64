"""Words become pieces, long sentences windows, and each word has its tag once."""

import numpy as np
import pytest

from bert_tf.extensions.tags import features as tags
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

VOCABULARY = Vocabulary([*SPECIAL_TOKENS, "a", "b", "c", "##x", "##y"])
TOKENIZER = WordPieceTokenizer(VOCABULARY)
CONTROL = "\u0001"


def built(*sentences, limit=16):
    words = [sentence.split(" ") for sentence in sentences]
    count = sum(map(len, words))
    return tags.build(words, np.arange(count, dtype=np.int32), TOKENIZER, max_seq_length=limit)


def rows(features):
    """Returns tokens and tags of each row."""
    ends = np.cumsum(features.lengths)[:-1]
    ids, tag_ids = np.split(features.token_ids, ends), np.split(features.targets["tag_ids"], ends)
    return [(" ".join(VOCABULARY.tokens[i] for i in row), of_row.tolist()) for row, of_row in zip(ids, tag_ids)]


def test_the_first_piece_of_a_word_has_its_tag_and_one_that_is_too_long_is_cut_and_counted():
    assert rows(built("ax b", "cxy")) == [
        ("[CLS] a ##x b [SEP]", [-1, 0, -1, 1, -1]),
        ("[CLS] c ##x ##y [SEP]", [-1, 2, -1, -1, -1]),
    ]
    features = built("a cxyxyxy b", "cxyxyxy cxyxyxy", "a", limit=5)
    assert rows(features)[1] == ("[CLS] c ##x ##y [SEP]", [-1, 1, -1, -1, -1])
    assert features.truncated == 2
    # Words without pieces and sentences without words have a row without tags.
    features = tags.build([[CONTROL], [], ["a"]], np.zeros(2, np.int32), TOKENIZER, max_seq_length=8)
    assert rows(features) == [("[CLS] [SEP]", [-1, -1])] * 2 + [("[CLS] a [SEP]", [-1, 0, -1])]
    assert features.weights.tolist() == [0, 0, 1]


def test_a_word_counts_in_the_window_of_most_context():
    features = built("a", "a b c a b c a", limit=7)  # windows of five: the middle words are in two
    assert rows(features)[1:] == [
        ("[CLS] a b c a b [SEP]", [-1, 1, 2, 3, 4, -1, -1]),
        ("[CLS] c a b c a [SEP]", [-1, -1, -1, 5, 6, 7, -1]),
    ]
    assert features.example_ids.tolist() == [0, 1, 1]
    assert features.weights.tolist() == [1, 4, 3]


@pytest.mark.parametrize("limit", range(5, 20))
def test_every_word_with_pieces_has_one_tag_whatever_the_limit(limit):
    random = np.random.default_rng(limit)
    sentences = [" ".join(random.choice(["a", "bx", "cxyxy", CONTROL], n)) for n in random.integers(1, 60, 30)]
    features = built(*sentences, limit=limit)
    tag_ids = features.targets["tag_ids"]
    words = [word for sentence in sentences for word in sentence.split(" ")]
    assert sorted(tag_ids[tag_ids >= 0].tolist()) == [n for n, word in enumerate(words) if word != CONTROL]
    assert features.lengths.max() <= limit
    assert features.weights.sum() == np.sum(tag_ids >= 0)
