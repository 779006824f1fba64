"""From logits to answers, worked out by hand and beside the published loop."""

from __future__ import annotations

import collections

import numpy as np
import pytest

from bert_tf.features import spans
from bert_tf.tasks.span.decoding import Rules, decode
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer

TOKENIZER = WordPieceTokenizer(Vocabulary([*SPECIAL_TOKENS, *"abcdefgh", "##s"]))
RULES = Rules(n_best_size=20, max_answer_length=30)


def built(*questions, length=384, stride=128):
    return spans.build([spans.Question(*one) for one in questions], TOKENIZER, spans.Windows(length, stride, 64))


def found(starts, ends, text="a b c", rules=RULES, **windows):
    """Decodes one question `h` about a text, by the logits of all tokens of its rows."""
    features = built(("h", text), **windows)
    (one,) = decode(np.array([starts, ends], np.float32).T, features, [text], rules)
    return one


def texts(one):
    return [candidate.text for candidate in one.candidates]


# [CLS] h [SEP] a b c [SEP]
def test_the_best_pair_comes_first_with_its_characters():
    one = found([0, 0, 0, 1, 5, 0, 0], [0, 0, 0, 0, 0, 4, 0])
    best = one.candidates[0]
    assert (best.text, best.start, best.end, best.window) == ("b c", 2, 5, 0)
    assert (best.start_logit, best.end_logit, best.score) == (5.0, 4.0, 9.0)


def test_an_answer_does_not_end_before_it_begins_nor_lies_in_the_question():
    one = found([9, 9, 9, 0, 0, 5, 9], [9, 9, 9, 6, 0, 0, 9])
    assert texts(one)[:2] == ["a", "c"]
    assert set(texts(one)) <= {"a", "b", "c", "a b", "b c", "a b c"}


def test_an_answer_is_at_most_so_long():
    starts, ends = [0, 0, 0, 9, 0, 0, 0], [0, 0, 0, 0, 0, 9, 0]
    assert texts(found(starts, ends))[0] == "a b c"
    assert "a b c" not in texts(found(starts, ends, rules=RULES._replace(max_answer_length=2)))


def test_only_so_many_logits_of_a_row_are_looked_at_as_published():
    # The two highest of each end are those of [CLS] and one token.
    assert texts(found([9, 0, 0, 1, 5, 4, 0], [9, 0, 0, 1, 5, 6, 0], rules=Rules(2, 30))) == ["b c"]


def test_so_many_candidates_are_kept():
    assert len(texts(found([0] * 7, [0, 0, 0, 3, 2, 1, 0], rules=Rules(7, 30)))) == 6
    assert len(texts(found([0, 0, 0, 3, 2, 1, 0], [0, 0, 0, 3, 2, 1, 0], rules=Rules(3, 30)))) == 3


def test_equal_texts_are_one_candidate():
    one = found([0, 0, 0, 3, 0, 4, 0], [0, 0, 0, 3, 0, 4, 0], text="a b a")
    assert [candidate.start for candidate in one.candidates if candidate.text == "a"] == [4]


def test_an_answer_begins_in_the_widest_window_of_its_first_token():
    # Rows: [CLS] h [SEP] a b c d [SEP] and [CLS] h [SEP] c d e f [SEP]; c is poorer in the second.
    second = [0, 0, 0, 9, 0, 0, 0, 0]
    one = found([0] * 8 + second, [0] * 8 + second, text="a b c d e f", length=8, stride=2)
    assert all(candidate.score < 18 for candidate in one.candidates)
    assert next(candidate for candidate in one.candidates if candidate.text == "c").window == 0


def test_no_answer_is_that_of_the_window_where_it_is_least_likely():
    one = found([5] + [0] * 7 + [2] + [0] * 7, [1] + [0] * 7 + [3] + [0] * 7, text="a b c d e f", length=8, stride=2)
    assert one.none == ("", None, None, 1, 2.0, 3.0)


def test_a_context_without_pieces_has_no_candidates():
    assert texts(found([1, 0, 0, 0], [1, 0, 0, 0], text="")) == []


def test_an_accent_of_its_own_belongs_to_the_answer():
    one = found([0, 0, 0, 9, 0, 0], [0, 0, 0, 9, 0, 0], text="e\u0301 b")
    assert (one.candidates[0].text, one.candidates[0].end) == ("e\u0301", 2)


def published(logits, features, contexts, rules):
    """The published loop over windows and pairs, token by token."""
    rows = collections.defaultdict(list)
    start = 0
    for row, length in enumerate(features.lengths.tolist()):
        rows[int(features.example_ids[row])].append(slice(start, start + length))
        start += length
    for example, context in enumerate(contexts):
        pairs = []
        for window, row in enumerate(rows[example]):
            first, after = (features.targets[name][row] for name in (spans.FIRST, spans.AFTER))
            best = [sorted(range(len(first)), key=lambda at, e=e: -logits[row][at, e])[: rules.n_best_size] for e in (0, 1)]
            for a in best[0]:
                for b in best[1]:
                    if first[a] < 0 or first[b] < 0 or not features.targets[spans.WIDEST][row][a]:
                        continue
                    if b < a or b - a + 1 > rules.max_answer_length:
                        continue
                    scores = float(logits[row][a, 0]), float(logits[row][b, 1])
                    pairs.append((sum(scores), context[first[a] : after[b]], window))
        pairs.sort(key=lambda pair: -pair[0])
        distinct = {}
        for score, text, window in pairs:
            distinct.setdefault(text, (text, score, window))
        yield list(distinct.values())[: rules.n_best_size]


@pytest.mark.parametrize("rules", [RULES, Rules(3, 4)])
def test_equal_to_the_published_loop(rules):
    random = np.random.default_rng(1)
    contexts = [" ".join(random.choice(list("abcdefg"), int(size))) for size in random.integers(0, 40, 25)]
    features = built(*(("h", text) for text in contexts), length=20, stride=5)
    logits = random.normal(size=(len(features.token_ids), 2)).astype(np.float32)
    expected = [
        [(text, pytest.approx(score), window) for text, score, window in one]
        for one in published(logits, features, contexts, rules)
    ]
    found = decode(logits, features, contexts, rules)
    assert [[(c.text, c.score, c.window) for c in one.candidates] for one in found] == expected


def test_blocks_of_rows_do_not_change_the_result(monkeypatch):
    features = built(*(("h", text) for text in ("a b", "c", "d e f")))
    logits = np.random.default_rng(2).normal(size=(len(features.token_ids), 2)).astype(np.float32)
    whole = decode(logits, features, ["a b", "c", "d e f"], RULES)
    monkeypatch.setattr("bert_tf.tasks.span.decoding._BLOCK", 1)
    assert decode(logits, features, ["a b", "c", "d e f"], RULES) == whole
