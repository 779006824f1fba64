"""Features of options, and what is kept of long texts, by hand."""

import numpy as np
import pytest

from bert_tf.extensions.choice.features import NO_ANSWER, Choice
from bert_tf.extensions.choice.features import build as build_choices
from bert_tf.features.long_text import CUTS, WINDOWS
from tests.features.test_sentences import TOKENIZER, rows

THE, CAT, SAT, STOP = 5, 6, 7, 9
CLS, SEP = 2, 3


def chosen(context, options, *, before="", after="", answer=0, max_seq_length=16, long_text="truncate"):
    choice = Choice(context, before, after, options)
    return build_choices([choice], [answer], TOKENIZER, max_seq_length=max_seq_length, long_text=long_text)


def test_each_option_is_a_row_behind_context_and_question_and_fills_the_blank():
    features = chosen("The cat", ("sat", "the ."), before="cat")
    assert rows(features) == [[CLS, THE, CAT, SEP, CAT, SAT, SEP], [CLS, THE, CAT, SEP, CAT, THE, STOP, SEP]]
    assert features.first_lengths.tolist() == [4, 4]
    assert rows(chosen("the", ("sat", "cat"), before="the", after="."))[0] == [CLS, THE, SEP, THE, SAT, STOP, SEP]


def test_rows_of_a_question_stay_together_and_name_its_answer():
    choices = [Choice("the", "", "", ("cat", "sat", ".")), Choice("cat", "", "", ("the", "sat"))]
    features = build_choices(choices, [2, NO_ANSWER], TOKENIZER, max_seq_length=16)
    assert (features.units, features.unit_rows.tolist(), features.together) == (2, [3, 2], True)
    assert features.targets["is_answer"].tolist() == [0, 0, 1, 0, 0]
    assert features.batch(np.arange(5), 8)["groups"].tolist() == [0, 0, 0, 1, 1]
    assert "option_ids" not in features.batch(np.arange(5), 8)


def test_the_context_is_cut_before_the_question_and_this_before_an_option():
    features = chosen("the " * 9, ("cat sat .", "sat"), before="cat", max_seq_length=10)
    first, second = rows(features)
    assert first == [CLS, THE, THE, THE, SEP, CAT, CAT, SAT, STOP, SEP]
    assert second == [CLS, *[THE] * 5, SEP, CAT, SAT, SEP]
    assert features.truncated == 1
    # A question longer than its context is cut first, and what follows the blank before what precedes it.
    assert rows(chosen("cat", ("sat",) * 2, before="the " * 9, max_seq_length=9))[0] == [CLS, CAT, SEP, *[THE] * 4, SAT, SEP]
    around = rows(chosen("", ("sat",) * 2, before="the the", after="cat . .", max_seq_length=8))
    assert around[0] == [CLS, SEP, THE, THE, SAT, CAT, STOP, SEP]
    # An option longer than a row leaves a quarter to the rest.
    features = chosen("cat " * 9, ("the " * 30, "sat"), max_seq_length=11)
    assert rows(features)[0] == [CLS, CAT, CAT, SEP, *[THE] * 6, SEP]
    assert features.truncated == 1


def test_windows_of_a_long_context_are_rows_of_their_option():
    features = chosen("the cat sat . the", ("cat", "sat sat"), max_seq_length=7, long_text=WINDOWS, answer=1)
    options = features.targets["option_ids"].tolist()
    assert sorted(set(options)) == [0, 1]
    assert features.targets["is_answer"].tolist() == [float(option == 1) for option in options]
    covered = {token for row, option in zip(rows(features), options) if option == 0 for token in row[1 : row.index(SEP)]}
    assert covered == {THE, CAT, SAT, STOP}
    assert (features.units, features.truncated) == (1, 0)


@pytest.mark.parametrize("long_text", sorted(CUTS))
@pytest.mark.parametrize("max_seq_length", [5, 6, 9, 14])
def test_every_row_fits_and_holds_its_option(long_text, max_seq_length):
    random = np.random.default_rng(3)
    choices = [
        Choice(*("the " * n for n in random.integers(0, 12, 3)), ["sat " * n for n in random.integers(1, 4, size)])
        for size in (2, 3, 5)
    ]
    features = build_choices(choices, [0, 1, 2], TOKENIZER, max_seq_length=max_seq_length, long_text=long_text)
    lengths = [len(option.split()) for choice in choices for option in choice.options]
    most = (max_seq_length - 3) - (max_seq_length - 3) // 4
    assert features.lengths.max() <= max_seq_length
    for row, option in zip(rows(features), features.targets["option_ids"].tolist()):
        assert row.count(SAT) == min(lengths[option], most)
        assert row.count(SEP) == 2
