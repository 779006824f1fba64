"""What a vocabulary makes of a text."""

from __future__ import annotations

import pytest

from bert_tf.tokenization import counting, fertility
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer


def test_fertility_is_as_counted_by_hand():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "un", "##aff", "##able", "rain", "."])
    counts = counting.count([counting.chunks(["Rain. Unaffable rain.", "Snow rain."])], lower_case=True)
    found = fertility.of(counts, WordPieceTokenizer(vocabulary))
    assert (found.words, found.pieces, found.cut, found.unknown, found.texts) == (8, 10, 1, 1, 2)
    shares = (found.pieces_a_word, found.cut_share, found.unknown_share, found.tokens_a_sentence)
    assert shares == pytest.approx((1.25, 0.125, 0.125, 5.0))


def test_words_that_begin_with_a_new_one_are_cut_otherwise():
    pieces = [*SPECIAL_TOKENS, "li", "##ght", "##s", "##house"]
    before, after = (WordPieceTokenizer(Vocabulary(some)) for some in (pieces, [*pieces, "light"]))
    counts = counting.count([counting.chunks(["Light lights lights li lighthouse snow"])], lower_case=True)
    assert fertility.cut_otherwise(counts, before, after) == {"lights": 2, "lighthouse": 1}
