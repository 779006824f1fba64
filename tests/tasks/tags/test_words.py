"""Plain text as words."""

from __future__ import annotations

import pytest

from bert_tf.tasks.tags import words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mara Jelen met Vint.", "Mara|Jelen|met|Vint|."),
        ("(U.S. troops)", "(|U.S.|troops|)"),
        ("J. Smith's 1,000 euros", "J.|Smith|'s|1,000|euros"),
        ("don\u2019t say O'Neill", "don|\u2019t|say|O'Neill"),
        ("3:2 against AC-Milan: a win, he said", "3:2|against|AC-Milan|:|a|win|,|he|said"),
        ("one,two", "one|,|two"),
        ("\u5317\u4eac2008", "\u5317|\u4eac|2008"),
        ("e\u0301te\u0301 !?", "e\u0301te\u0301|!|?"),
        (" \t\n", ""),
        ("Dr. No", "Dr.|No"),
    ],
)
def test_words_end_at_blanks_and_punctuation(text, expected):
    assert "|".join(text[start:end] for start, end in words.split(text)) == expected


def test_every_character_but_blanks_is_in_one_word():
    text = "a.b,c 'd' e's f-g- .. \u20ac5.00/kg\u00a0x"
    places = [place for start, end in words.split(text) for place in range(start, end)]
    assert places == [place for place, character in enumerate(text) if not character.isspace()]
