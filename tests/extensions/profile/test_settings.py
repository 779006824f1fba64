"""The range of steps that are profiled."""

import pytest

from bert_tf.errors import FlagError
from bert_tf.extensions.profile import StepRange


@pytest.mark.parametrize(("text", "first", "last"), [("20-30", 20, 30), ("7", 7, 7), (" 1-1 ", 1, 1)])
def test_a_range_of_steps_has_both_ends(text, first, last):
    assert StepRange.parse("profile_steps", text) == StepRange(first, last)


@pytest.mark.parametrize("text", ["", "a-b", "20-", "-20", "20,30", "30-20", "0-3", "9999999999"])
def test_other_texts_are_rejected_with_the_flag(text):
    with pytest.raises(FlagError, match=f"^--profile_steps={text}: "):
        StepRange.parse("profile_steps", text)
