"""Words of a corpus are those that the tokenizer matches."""

from __future__ import annotations

from collections import Counter

import pytest

from bert_tf.tokenization import counting
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer, words
from tests.tokenization import any_text

PIECES = any_text.vocabulary(seed=1)
TEXTS = any_text.texts(1000, 3, PIECES)
TEXT = "Don't stop: the café\u00a0closes at ten.\t東京 a\u00adb"


@pytest.mark.parametrize(
    ("lower_case", "expected"),
    [
        (True, ["don", "'", "t", "stop", ":", "the", "cafe", "closes", "at", "ten", ".", "東", "京", "ab"]),
        (False, ["Don", "'", "t", "stop", ":", "the", "café", "closes", "at", "ten", ".", "東", "京", "ab"]),
    ],
)
def test_words_are_cleaned_and_divided_as_the_tokenizer_does(lower_case, expected):
    assert list(words(TEXT, lower_case=lower_case)) == expected


@pytest.mark.parametrize("lower_case", [True, False])
def test_counts_and_pieces_of_words_are_those_of_each_text(lower_case):
    tokenizer = WordPieceTokenizer(PIECES, lower_case=lower_case)
    for text in TEXTS:
        by_word = [piece for word in words(text, lower_case=lower_case) for piece in tokenizer.pieces_of_word(word)]
        assert by_word == [piece.token for piece in tokenizer.tokenize(text)]
    found = counting.count([counting.chunks(TEXTS[:9]), counting.chunks(TEXTS[9:])], lower_case=lower_case)
    assert found.words == Counter(word for text in TEXTS for word in words(text, lower_case=lower_case))
    assert found.texts == len(TEXTS)


def test_what_occurred_once_is_forgotten_where_there_are_too_many_words():
    parts = [counting.chunks([f"rain rain w{number} v{number}"]) for number in range(50)]
    found = counting.count(parts, lower_case=True, most=10)
    assert found.words["rain"] == 100
    assert len(found.words) <= 12


def test_fertility_is_as_counted_by_hand():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "un", "##aff", "##able", "rain", "."])
    counts = counting.count([counting.chunks(["Rain. Unaffable rain.", "Snow rain."])], lower_case=True)
    found = counting.fertility_of(counts, WordPieceTokenizer(vocabulary))
    assert (found.words, found.pieces, found.cut, found.unknown, found.texts) == (8, 10, 1, 1, 2)
    shares = (found.pieces_a_word, found.cut_share, found.unknown_share, found.tokens_a_sentence)
    assert shares == pytest.approx((1.25, 0.125, 0.125, 5.0))


def test_words_that_begin_with_a_new_one_are_cut_otherwise():
    pieces = [*SPECIAL_TOKENS, "li", "##ght", "##s", "##house"]
    before, after = (WordPieceTokenizer(Vocabulary(some)) for some in (pieces, [*pieces, "light"]))
    counts = counting.count([counting.chunks(["Light lights lights li lighthouse snow"])], lower_case=True)
    assert counting.cut_otherwise(counts, before, after) == {"lights": 2, "lighthouse": 1}
