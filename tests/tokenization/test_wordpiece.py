"""The published rules one by one, with cases written by hand."""

from __future__ import annotations

import copy
import doctest
import string
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.tokenization import wordpiece
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import MAX_WORD_CHARACTERS, WordPieceTokenizer
from tests.tokenization import any_text

E_ACUTE, COMBINING_ACUTE = "\u00e9", "\u0301"
LETTERS = [piece for letter in string.ascii_letters for piece in (letter, f"##{letter}")]
VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *LETTERS, *string.punctuation, "un", "##aff", "##able", "##ab", "unaff", E_ACUTE, f"##{E_ACUTE}"]
)
# One piece for every ideograph at the edges of the published ranges.
IDEOGRAPHS = (
    "\u3400\u4dbf\u4e00\u9fff\uf900\ufaff\U00020000\U0002a6df\U0002a700\U0002b73f\U0002b740\U0002b81f\U0002b820\U0002ceaf"
    "\U0002f800\U0002fa1f"
)
# Letters outside those ranges: Hiragana, Katakana, Hangul, and a neighbour of the first range.
OTHER_LETTERS = "\u3042\u30a2\uac00\u33ff"

# What ends a word, by the Unicode table of this Python: the category of blanks, three controls and both separators.
BLANKS = [c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Zs" or c in "\t\n\r\u2028\u2029"]


def code(character: str) -> str:
    return f"U+{ord(character):04X}"


def words(text: str, *, lower_case: bool = True) -> list[str]:
    """Cuts a text and joins the pieces of each word, so that a case shows the words only."""
    joined = " ".join(piece.token for piece in WordPieceTokenizer(VOCABULARY, lower_case=lower_case).tokenize(text))
    return joined.replace(" ##", "").split()


def tokens(text: str, vocabulary: Vocabulary = VOCABULARY, *, lower_case: bool = True) -> list[str]:
    return [piece.token for piece in WordPieceTokenizer(vocabulary, lower_case=lower_case).tokenize(text)]


def spans(text: str, vocabulary: Vocabulary = VOCABULARY, *, lower_case: bool = True) -> list[str]:
    pieces = WordPieceTokenizer(vocabulary, lower_case=lower_case).tokenize(text)
    return [text[piece.start : piece.end] for piece in pieces]


def test_examples_in_the_documentation_hold():
    result = doctest.testmod(wordpiece)
    assert result.attempted > 0
    assert result.failed == 0


# --- clean-up


@pytest.mark.parametrize(
    "character",
    ["\0", "\ufffd", "\x01", "\x0b", "\x0c", "\x1c", "\x7f", "\x85", "\x9f", "\u00ad", "\u200b", "\u200d", "\u202e", "\ufeff"],
    ids=code,
)
@pytest.mark.parametrize("lower_case", [True, False])
def test_nul_replacement_control_and_format_characters_are_deleted(character, lower_case):
    assert words(f"ab{character}cd", lower_case=lower_case) == ["abcd"]


@pytest.mark.parametrize("text", ["", " ", "\0", "\u200b\ufeff", "\n\t \r"])
def test_text_without_visible_characters_has_no_pieces(text):
    assert tokens(text) == []


@pytest.mark.parametrize("blank", BLANKS, ids=code)
@pytest.mark.parametrize("lower_case", [True, False])
def test_blank_ends_a_word(blank, lower_case):
    assert words(f"ab{blank}cd", lower_case=lower_case) == ["ab", "cd"]


@pytest.mark.parametrize("separator", "\x0b\x0c\x1c\x1d\x1e\x1f\x85", ids=code)
def test_control_that_python_calls_a_blank_joins_what_it_divided(separator):
    assert separator.isspace()
    assert words(f"ab{separator}cd") == ["abcd"]


def test_runs_of_blanks_count_as_one():
    assert words(" \t ab \u3000\n cd\r\n") == ["ab", "cd"]


# --- ideographs


@pytest.mark.parametrize("ideograph", IDEOGRAPHS, ids=code)
def test_ideograph_stands_alone(ideograph):
    vocabulary = Vocabulary([*VOCABULARY.tokens, ideograph])
    assert tokens(f"ab{ideograph}{ideograph}c", vocabulary, lower_case=False) == ["a", "##b", ideograph, ideograph, "c"]


@pytest.mark.parametrize("letter", OTHER_LETTERS, ids=code)
def test_letters_of_other_east_asian_scripts_stay_in_their_word(letter):
    vocabulary = Vocabulary([*VOCABULARY.tokens, letter, f"##{letter}"])
    assert tokens(f"a{letter}b", vocabulary, lower_case=False) == ["a", f"##{letter}", "##b"]


# --- lower-casing and accents


def test_uncased_lowers_letters():
    assert words("AbC") == ["abc"]


def test_cased_keeps_letters():
    assert words("AbC", lower_case=False) == ["AbC"]


@pytest.mark.parametrize("accented", ["\u00e9", "\u00c9", f"e{COMBINING_ACUTE}", "\u1ec7", f"E{COMBINING_ACUTE}\u0323"])
def test_uncased_strips_accents_composed_or_not(accented):
    assert words(f"a{accented}b") == ["aeb"]


def test_cased_keeps_accents():
    assert words(f"a{E_ACUTE}b", lower_case=False) == [f"a{E_ACUTE}b"]


def test_cased_does_not_compose():
    # e and a combining acute are two characters, and the second is in no piece.
    assert words(f"e{COMBINING_ACUTE}", lower_case=False) == ["[UNK]"]


def test_uncased_decomposes_hangul():
    jamo = "\u1112\u1161\u11ab"
    vocabulary = Vocabulary([*SPECIAL_TOKENS, jamo[0], f"##{jamo[1]}", f"##{jamo[2]}"])
    assert tokens("\ud55c", vocabulary) == [jamo[0], f"##{jamo[1]}", f"##{jamo[2]}"]


def test_capital_sigma_at_the_end_of_a_word_becomes_the_final_one():
    vocabulary = Vocabulary([*SPECIAL_TOKENS, "\u03c3", "##\u03c2", "##\u03c3"])
    assert tokens("\u03a3\u03a3", vocabulary) == ["\u03c3", "##\u03c2"]


MARKED = st.text(
    st.sampled_from([*any_text.SORTED, *any_text.SORTED_AND_KEPT * 9, "\u034f", "\u0903", *"a\u1ea5\ud55c\u1161\u0958"])
)


@given(MARKED)
@example("".join(any_text.CHARACTERS))
@example("".join(f"a{c}\u0316\u0301{c}" for c in any_text.CHANGED))
def test_long_words_are_decomposed_as_unicode_says(text):
    long = text + "a" * MAX_WORD_CHARACTERS + "b" + text
    assert wordpiece.decomposed(long) == unicodedata.normalize("NFD", long)


def test_word_of_accents_only_vanishes_in_uncased_text():
    assert tokens(f"a {COMBINING_ACUTE} b") == ["a", "b"]


def test_special_tokens_in_text_are_text():
    assert tokens("[CLS]") == ["[", "c", "##l", "##s", "]"]


# --- punctuation


@pytest.mark.parametrize("symbol", string.punctuation)
def test_ascii_symbol_stands_alone(symbol):
    # Also those that Unicode does not call punctuation: $ + < = > ^ ` | ~
    assert words(f"ab{symbol}{symbol}cd") == ["ab", symbol, symbol, "cd"]


@pytest.mark.parametrize("symbol", ["\u00a1", "\u2014", "\u2019", "\u3002", "\uff01", "\u00ab", "\u203f"], ids=code)
def test_unicode_punctuation_stands_alone(symbol):
    vocabulary = Vocabulary([*VOCABULARY.tokens, symbol])
    assert tokens(f"a{symbol}b", vocabulary) == ["a", symbol, "b"]


@pytest.mark.parametrize("symbol", ["\u20ac", "\u00a9", "\u00d7", "\u00b4"], ids=code)
def test_other_symbols_beyond_ascii_stay_in_their_word(symbol):
    vocabulary = Vocabulary([*VOCABULARY.tokens, f"##{symbol}"])
    assert tokens(f"a{symbol}b", vocabulary, lower_case=False) == ["a", f"##{symbol}", "##b"]


def test_punctuation_that_decomposition_brings_out_stands_alone():
    # U+037E, the Greek question mark, decomposes to a semicolon.
    assert words("ab\u037ecd") == ["ab", ";", "cd"]


# --- longest match


def test_longest_piece_is_taken_first():
    assert tokens("unaffable") == ["unaff", "##able"]


def test_match_is_greedy_even_where_the_rest_then_is_unknown():
    # "ab" + "##cd" would fit, but the longer "abc" is taken and leaves a "d" that no piece covers.
    assert tokens("abcd", Vocabulary([*SPECIAL_TOKENS, "ab", "##cd", "abc"])) == ["[UNK]"]


def test_piece_inside_a_word_needs_the_continuation_mark():
    assert tokens("ab", Vocabulary([*SPECIAL_TOKENS, "a", "b"])) == ["[UNK]"]


def test_piece_at_the_start_needs_none():
    assert tokens("ab", Vocabulary([*SPECIAL_TOKENS, "##a", "##ab"])) == ["[UNK]"]


def test_unknown_rest_makes_the_whole_word_unknown():
    assert tokens("ab0 cd") == ["[UNK]", "c", "##d"]


def test_unknown_word_ends_at_punctuation():
    assert tokens("00-ab") == ["[UNK]", "-", "a", "##b"]


def test_word_of_200_characters_is_cut():
    assert tokens("a" * MAX_WORD_CHARACTERS) == ["a"] + ["##a"] * 199


def test_word_of_201_characters_is_unknown():
    assert tokens("a" * 201 + " b") == ["[UNK]", "b"]


def test_word_is_measured_after_punctuation_is_split():
    assert tokens("a" * 150 + "-" + "a" * 150).count("[UNK]") == 0


def test_word_is_measured_after_accents_are_stripped():
    assert tokens("a" * 200 + COMBINING_ACUTE) == ["a"] + ["##a"] * 199


def test_unknown_symbol_is_unk():
    assert tokens("\u2603") == ["[UNK]"]


# --- ids and offsets


def test_ids_are_those_of_the_pieces():
    text = "Unaffable, 0 caf\u00e9!"
    tokenizer = WordPieceTokenizer(VOCABULARY)
    assert tokenizer.ids(text) == [piece.id for piece in tokenizer.tokenize(text)] == VOCABULARY.ids(tokens(text))


def test_same_chunk_in_another_place_has_other_offsets():
    # Chunks are remembered; their offsets must not be.
    pieces = WordPieceTokenizer(VOCABULARY).tokenize("un un  un")
    assert [(piece.start, piece.end) for piece in pieces] == [(0, 2), (3, 5), (7, 9)]


def test_cased_and_uncased_remember_apart():
    assert (words("AB"), words("AB", lower_case=False)) == (["ab"], ["AB"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Unaffable!", ["Unaff", "able", "!"]),
        ("a\u3000b", ["a", "b"]),
        ("(A$", ["(", "A", "$"]),
        ("x0y z", ["x0y", "z"]),
        ("un\u200baff", ["un\u200baff"]),
        ("\u200bab\u200b", ["a", "b"]),
        ("a\0b", ["a", "b"]),
        ("A\u00c9B", ["A", "\u00c9", "B"]),
        ("ab\u4e00c", ["a", "b", "\u4e00", "c"]),
        (f"ae{COMBINING_ACUTE}b", ["a", "e", "b"]),
    ],
    ids=ascii,
)
def test_offsets_cover_what_the_piece_was_made_of(text, expected):
    assert spans(text) == expected


def test_pieces_of_one_character_share_its_offsets():
    jamo = "\u1112\u1161\u11ab"
    vocabulary = Vocabulary([*SPECIAL_TOKENS, jamo[0], f"##{jamo[1]}", f"##{jamo[2]}"])
    assert spans("\ud55c", vocabulary) == ["\ud55c"] * 3


def test_offsets_of_a_letter_that_lower_cases_to_two():
    # U+0130 becomes i and a combining dot; the dot goes, and what follows keeps its place.
    assert spans("\u0130cd") == ["\u0130", "c", "d"]


def test_offsets_of_a_too_long_word_cover_it():
    assert spans("b " + "a" * 201) == ["b", "a" * 201]


TOKENIZERS = {lower_case: WordPieceTokenizer(VOCABULARY, lower_case=lower_case) for lower_case in (False, True)}


@given(
    st.text(st.sampled_from(f"unaffable {E_ACUTE}e{COMBINING_ACUTE}\u4e00!.\t\u00a0\u2028\0\u200b I\u0130"), max_size=30),
    st.booleans(),
)
def test_columns_hold_what_tokenize_says(text, lower_case):
    tokenizer = TOKENIZERS[lower_case]
    expected = [(piece.id, piece.start, piece.end) for piece in tokenizer.tokenize(text)]
    assert list(zip(*(column.tolist() for column in tokenizer.pieces(text)))) == expected
    assert tokenizer.pieces(text).ids.tolist() == tokenizer.ids(text)


def test_what_is_remembered_is_bounded_in_characters(monkeypatch):
    long = [f"ab{number:0400}" for number in range(5)]
    expected = [WordPieceTokenizer(VOCABULARY).ids(text) for text in long]
    monkeypatch.setattr(wordpiece, "_REMEMBERED_CHARACTERS", 1000)
    own = WordPieceTokenizer(VOCABULARY)
    assert [own.ids(text) for text in long] == expected
    for remembered in (own._ids_of, own._pieces_of):
        assert sum(map(len, remembered)) <= 1000


def test_goes_to_another_process_without_what_it_remembers():
    tokenizer = WordPieceTokenizer(VOCABULARY, lower_case=False)
    expected = tokenizer.ids("unaffable B")
    sent = copy.deepcopy(tokenizer)  # as pickle does it
    assert len(sent._pieces_of) == 0
    assert sent.ids("unaffable B") == expected
