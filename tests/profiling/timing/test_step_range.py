from __future__ import annotations

import pytest

from bert_tf.errors import FlagError
from bert_tf.profiling.timing.step_range import StepRange


@pytest.mark.parametrize(("text", "first", "last"), [("20-30", 20, 30), ("7", 7, 7), (" 1-1 ", 1, 1)])
def test_a_range_has_both_ends(text, first, last):
    assert StepRange.parse("profile_steps", text) == StepRange(first, last)


@pytest.mark.parametrize("text", ["", "a-b", "20-", "-20", "20,30", "30-20", "0-3"])
def test_what_is_no_range_is_refused_with_the_flag(text):
    with pytest.raises(FlagError, match=f"^--profile_steps={text}: "):
        StepRange.parse("profile_steps", text)
