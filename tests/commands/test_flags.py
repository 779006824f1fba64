"""How command lines are read: words, flags and actions."""

from __future__ import annotations

import sys

import pytest

from bert_tf.commands.flags import Flag, HelpAsked, action_of, read, read_with_words
from bert_tf.errors import FlagError

ROWS = (Flag("top", int, 3, "how many", 0),)


def test_words_and_flags_come_in_any_order():
    words, values = read_with_words(["memory", "a.txt", "--top=5", "b.txt"], ROWS)
    assert (words, values["top"].value) == (["a.txt", "b.txt"], 5)


@pytest.mark.parametrize("value", ["9999999999", "nan", "inf", "-1e400"])
def test_a_number_is_compared_with_its_bounds_in_every_command(value):
    rows = (Flag("share", float, 0.5, "how much", highest=1e9),)
    with pytest.raises(FlagError, match=r"^flag --share=\S+: not a number up to 1000000000\.0$"):
        read(["memory", f"--share={value}"], rows)


def test_a_name_that_is_not_utf8_is_refused():
    with pytest.raises(FlagError, match=r"^'--top=\\udcff': bytes that are not UTF-8; rename the file$"):
        read(["memory", "--top=\udcff"], ROWS)


def test_a_locale_without_the_letters_of_a_name_is_told(monkeypatch):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    with pytest.raises(FlagError, match=r"^--top=é: the locale takes ascii alone; set PYTHONUTF8=1, or rename the file$"):
        read(["memory", "--top=\udcc3\udca9"], ROWS)


def test_an_action_is_the_first_word():
    assert action_of(["data", "check", "fetch"], ("fetch", "check")) == "check"


@pytest.mark.parametrize("argv", [["data"], ["data", "--help"], ["data", "-h"]])
def test_without_an_action_there_is_help(argv):
    with pytest.raises(HelpAsked):
        action_of(argv, ("fetch",))


def test_an_unknown_action_is_compared_with_the_known_ones():
    with pytest.raises(FlagError, match=r"^data: unknown action 'fetsch'; did you mean fetch\?"):
        action_of(["data", "fetsch"], ("fetch", "check"))
