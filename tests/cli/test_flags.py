"""How command lines are read: words, flags and actions."""

import sys

import pytest

from bert_tf.cli.flags import Flag, HelpAsked, action_of, read, read_with_words
from bert_tf.errors import FlagError

ROWS = (Flag("top", int, 3, "how many", 0), Flag("share", float, 0.5, "how much", highest=1e9), Flag("name", str, None, ""))


def test_words_and_flags_come_in_any_order():
    words, values = read_with_words(["memory", "a.txt", "--top=5", "b.txt"], ROWS)
    assert (words, values["top"].value) == (["a.txt", "b.txt"], 5)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        *(
            (f"--share={value}", r"^flag --share=\S+: not a number up to 1000000000\.0$")
            for value in ("9999999999", "nan", "inf", "-1e400")
        ),
        ("--top=\udcff", r"^'--top=\\udcff': not valid UTF-8; rename the file$"),
        ("--name ", "^--name is empty"),
        ("--flagfile=", "^--flagfile is empty"),
        ("--undefok=", "^--undefok is empty"),
        ("a ", "^report: a name is empty"),
        ("--flagfile=/dev/zero", "^--flagfile=/dev/zero: it is a device"),
        ("--flagfile /dev/zero", "^--flagfile=/dev/zero: it is a device"),
        ("-flagfile=/dev/zero", "^--flagfile=/dev/zero: it is a device"),
    ],
)
def test_what_cannot_be_read_is_one_line(argv, message):
    reads = read_with_words if argv == "a " else read
    with pytest.raises(FlagError, match=message):
        reads(["report", *argv.split(" ")], ROWS)


def test_a_locale_without_the_letters_of_a_name_is_told(monkeypatch):
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: "ascii")
    with pytest.raises(FlagError, match=r"^--top=é: the locale's encoding is ascii; set PYTHONUTF8=1, or rename the file$"):
        read(["memory", "--top=\udcc3\udca9"], ROWS)


def test_an_action_is_the_first_word():
    assert action_of(["data", "check", "fetch"], ("fetch", "check")) == "check"
    for argv in (["data"], ["data", "--help"], ["data", "-h"]):
        with pytest.raises(HelpAsked):
            action_of(argv, ("fetch",))
    with pytest.raises(FlagError, match=r"^data: unknown action 'fetsch'; did you mean fetch\?"):
        action_of(["data", "fetsch"], ("fetch", "check"))
