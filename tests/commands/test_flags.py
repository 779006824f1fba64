"""How command lines are read: words, flags and actions."""

from __future__ import annotations

import pytest

from bert_tf.commands.flags import Flag, HelpAsked, action_of, read_with_words
from bert_tf.errors import FlagError

ROWS = (Flag("top", int, 3, "how many", 0),)


def test_words_and_flags_come_in_any_order():
    words, values = read_with_words(["memory", "a.txt", "--top=5", "b.txt"], ROWS)
    assert (words, values["top"].value) == (["a.txt", "b.txt"], 5)


def test_an_action_is_the_first_word():
    assert action_of(["data", "check", "fetch"], ("fetch", "check")) == "check"


@pytest.mark.parametrize("argv", [["data"], ["data", "--help"], ["data", "-h"]])
def test_without_an_action_there_is_help(argv):
    with pytest.raises(HelpAsked):
        action_of(argv, ("fetch",))


def test_an_unknown_action_is_compared_with_the_known_ones():
    with pytest.raises(FlagError, match=r"^data: unknown action 'fetsch'; did you mean fetch\?"):
        action_of(["data", "fetsch"], ("fetch", "check"))
