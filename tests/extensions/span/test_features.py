"""Features of questions, against windows worked out by hand."""

import numpy as np
import pytest

from bert_tf.extensions.span import features as spans
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

# [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4
VOCABULARY = Vocabulary([*SPECIAL_TOKENS, *"abcdefgh", "##s", "?", ".", "cafe"])
TOKENIZER = WordPieceTokenizer(VOCABULARY)
TEXT = "a b c d e f g h"


def build(*questions, length=9, stride=2, query=64):
    return spans.build([spans.Question(*one) for one in questions], TOKENIZER, spans.Windows(length, stride, query))


def rows(features, column=None):
    column = features.token_ids if column is None else features.targets[column]
    tokens = [part.tolist() for part in np.split(column, np.cumsum(features.lengths))[:-1]]
    return tokens if column is not features.token_ids else [" ".join(VOCABULARY.tokens[i] for i in row) for row in tokens]


def targets(features):
    return list(zip(*(features.targets[name].tolist() for name in (spans.START, spans.END, spans.COUNTED))))


@pytest.mark.parametrize(
    ("text", "stride", "expected"),
    [
        (TEXT, 2, ["a b c d", "c d e f", "e f g h"]),
        ("a b c d e", 3, ["a b c d", "d e"]),  # the last window may be shorter
        (TEXT, 128, ["a b c d", "e f g h"]),  # a stride beyond the window leaves nothing out
        *((text, 2, [""]) for text in ("", " ", "\u200b")),
    ],
)
def test_a_window_starts_every_stride_until_one_ends_with_the_text(text, stride, expected):
    assert rows(build(("a?", text), stride=stride)) == [f"[CLS] a ? [SEP] {row} [SEP]".replace("  ", " ") for row in expected]
    assert len(build()) == 0


def test_the_question_is_the_first_segment_cut_if_long_and_a_text_that_several_share_is_cut_once(monkeypatch):
    features = build(("a?", TEXT), ("b", "c"))
    assert features.first_lengths.tolist() == [4, 4, 4, 3]
    assert features.example_ids.tolist() == [0, 0, 0, 1]
    features = build(("a b c?", "d"), query=2)
    assert (rows(features), features.truncated) == (["[CLS] a b [SEP] d [SEP]"], 1)
    assert build(("a b c d e f g h", "a"), length=11).lengths.tolist() == [6 + 3 + 1]
    cut = []
    pieces = WordPieceTokenizer.pieces
    monkeypatch.setattr(WordPieceTokenizer, "pieces", lambda self, text: cut.append(text) or pieces(self, text))
    build(("a", TEXT), ("b", TEXT), ("c", "d"))
    assert cut == [TEXT, "d"]


def test_each_token_counts_in_the_window_that_shows_most_around_it():
    # c has one word on its poorer side in the first window, and none in the second; d none, and one.
    widest = [[int(one) for one in row] for row in rows(build(("a?", TEXT)), spans.WIDEST)]
    assert widest == [[0] * 4 + [1, 1, 1, 0, 0], [0] * 4 + [0, 1, 1, 0, 0], [0] * 4 + [0, 1, 1, 1, 0]]
    # Offsets are those of the original text.
    features = build(("a", "bs  Cafe\u0301."))
    assert rows(features, spans.FIRST) == [[-1, -1, -1, 0, 1, 4, 9, -1]]
    assert rows(features, spans.AFTER) == [[-1, -1, -1, 1, 2, 8, 10, -1]]


def published_widest(starts_and_lengths, position):
    """The published rule as it is written there, one token at a time."""
    scores = [
        min(position - start, start + length - 1 - position) + 0.01 * length if start <= position < start + length else None
        for start, length in starts_and_lengths
    ]
    best = max(score for score in scores if score is not None)
    return scores.index(best)


def test_widest_windows_are_those_of_the_published_rule():
    random = np.random.default_rng(0)
    for _ in range(30):
        words, length, stride = (int(random.integers(*ends)) for ends in ((1, 60), (9, 30), (1, 20)))
        features = build(("a", " ".join(["b"] * words)), length=length, stride=stride)
        size = length - 4
        starts = np.minimum(stride, size) * np.arange(len(features))
        spans_of = [(int(start), min(size, words - int(start))) for start in starts]
        tokens = [np.flatnonzero(row) - 3 + start for row, start in zip(rows(features, spans.WIDEST), starts)]
        expected = [[p for p in range(words) if published_widest(spans_of, p) == n] for n in range(len(features))]
        assert [row.tolist() for row in tokens] == expected


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (("a?", TEXT, (6, 9)), [(0, 0, 1), (5, 6, 1), (0, 0, 1)]),  # "d e", which the other windows lack
        (("a", "b cafe", (3, 5)), [(4, 4, 1)]),  # an answer that ends within a piece has the whole piece
        (("a?", TEXT, spans.NO_ANSWER), [(0, 0, 1)] * 3),  # points at [CLS]
    ],
)
def test_positions_count_in_the_row(question, expected):
    assert targets(build(question)) == expected


@pytest.mark.parametrize("answer", [(0, 15), spans.UNUSABLE, (1, 2)], ids=["in no window", "wrong", "a blank"])
def test_what_cannot_be_learned_weighs_nothing(answer):
    features = build(("a?", TEXT, answer), ("a", "b", (0, 1)))
    assert targets(features) == [(0, 0, 0)] * 3 + [(3, 3, 1)]
    assert features.weights.tolist() == [0, 0, 0, 1]
