"""The published rules one by one, with cases written by hand."""

import copy
import doctest
import string
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert_tf.tokenization import characters, wordpiece
from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tokenization import any_text

E_ACUTE, ACUTE = "\u00e9", "\u0301"
JAMO = "\u1112\u1161\u11ab"  # of the Hangul syllable U+D55C
LETTERS = [piece for letter in string.ascii_letters for piece in (letter, f"##{letter}")]
VOCABULARY = Vocabulary(
    [*SPECIAL_TOKENS, *LETTERS, *string.punctuation, "un", "##aff", "##able", "##ab", "unaff", E_ACUTE, f"##{E_ACUTE}"]
)
# One piece for every ideograph at the edges of the published ranges.
IDEOGRAPHS = (
    "\u3400\u4dbf\u4e00\u9fff\uf900\ufaff\U00020000\U0002a6df\U0002a700\U0002b73f\U0002b740\U0002b81f\U0002b820\U0002ceaf"
    "\U0002f800\U0002fa1f"
)
# What ends a word, by the Unicode table of this Python: the category of blanks, three controls and both separators.
BLANKS = [c for c in any_text.ASSIGNED if unicodedata.category(c) == "Zs" or c in "\t\n\r\u2028\u2029"]
# Deleted, so that they join what they divided; some of them Python calls blanks.
DELETED = "\0\ufffd\x01\x0b\x0c\x1c\x1d\x1e\x1f\x7f\x85\x9f\u00ad\u200b\u200d\u202e\ufeff"
BOTH_CASES = pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])


def tokens(text: str, vocabulary: Vocabulary = VOCABULARY, *, lower_case: bool = True) -> list[str]:
    return [piece.token for piece in WordPieceTokenizer(vocabulary, lower_case=lower_case).tokenize(text)]


def words(text: str, **settings) -> list[str]:
    """Cuts a text and joins the pieces of each word, so that a case shows the words only."""
    return " ".join(tokens(text, **settings)).replace(" ##", "").split()


def spans(text: str, vocabulary: Vocabulary = VOCABULARY) -> list[str]:
    return [text[piece.start : piece.end] for piece in WordPieceTokenizer(vocabulary).tokenize(text)]


def test_examples_in_the_documentation_hold():
    result = doctest.testmod(wordpiece)
    assert result.attempted > result.failed == 0


@BOTH_CASES
def test_blanks_end_a_word_and_deleted_characters_join_what_they_divided(lower_case):
    assert {c: words(f"ab{c}cd", lower_case=lower_case) for c in DELETED} == {c: ["abcd"] for c in DELETED}
    assert {c: words(f"ab{c}cd", lower_case=lower_case) for c in BLANKS} == {c: ["ab", "cd"] for c in BLANKS}


@pytest.mark.parametrize(
    ("characters", "expected"),
    [
        (IDEOGRAPHS, ["a", "##b", "{0}", "{0}", "c"]),
        # All of ASCII's symbols, also those that Unicode does not call punctuation: $ + < = > ^ ` | ~
        (f"{string.punctuation}\u00a1\u2014\u2019\u3002\uff01\u00ab\u203f", ["a", "##b", "{0}", "{0}", "c"]),
        # Hiragana, Katakana, Hangul and a neighbour of the first range of ideographs; symbols that are no punctuation.
        ("\u3042\u30a2\uac00\u33ff\u20ac\u00a9\u00d7\u00b4", ["a", "##b", "##{0}", "##{0}", "##c"]),
    ],
)
def test_characters_that_stand_alone_or_stay_in_their_word(characters, expected):
    vocabulary = Vocabulary(dict.fromkeys([*VOCABULARY.tokens, *characters, *(f"##{c}" for c in characters)]))
    for character in characters:
        pieces = tokens(f"ab{character}{character}c", vocabulary, lower_case=False)
        assert pieces == [piece.format(character) for piece in expected]


@pytest.mark.parametrize(
    ("text", "lower_case", "expected"),
    [
        *((blank, True, []) for blank in ("", " ", "\0", "\u200b\ufeff", "\n\t \r")),
        (" \t ab \u3000\n cd\r\n", True, ["ab", "cd"]),
        ("AbC", True, ["abc"]),
        ("AbC", False, ["AbC"]),
        *((f"a{accented}b", True, ["aeb"]) for accented in (E_ACUTE, "\u00c9", f"e{ACUTE}", "\u1ec7", f"E{ACUTE}\u0323")),
        (f"a{E_ACUTE}b", False, [f"a{E_ACUTE}b"]),
        (f"e{ACUTE}", False, ["[UNK]"]),  # is not composed
        (f"a {ACUTE} b", True, ["a", "b"]),
        ("[CLS]", True, ["[", "cls", "]"]),
        ("ab\u037ecd", True, ["ab", ";", "cd"]),  # the Greek question mark decomposes to a semicolon
        ("ab0 cd", True, ["[UNK]", "cd"]),
        ("00-ab", True, ["[UNK]", "-", "ab"]),
        ("\u2603", True, ["[UNK]"]),
        ("a" * 200, True, ["a" * 200]),
        ("a" * 201 + " b", True, ["[UNK]", "b"]),
        ("a" * 150 + "-" + "a" * 150, True, ["a" * 150, "-", "a" * 150]),  # measured after punctuation is split
        ("a" * 200 + ACUTE, True, ["a" * 200]),  # and accents are stripped
    ],
)
def test_words(text, lower_case, expected):
    assert words(text, lower_case=lower_case) == expected


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (VOCABULARY.tokens[5:], "unaffable", ["unaff", "##able"]),  # the longest first
        # "ab" + "##cd" would fit, but the longer "abc" is taken and leaves a "d" that no piece covers.
        (["ab", "##cd", "abc"], "abcd", ["[UNK]"]),
        (["a", "b"], "ab", ["[UNK]"]),
        (["##a", "##ab"], "ab", ["[UNK]"]),
        ([JAMO[0], f"##{JAMO[1]}", f"##{JAMO[2]}"], "\ud55c", [JAMO[0], f"##{JAMO[1]}", f"##{JAMO[2]}"]),
        (["\u03c3", "##\u03c2", "##\u03c3"], "\u03a3\u03a3", ["\u03c3", "##\u03c2"]),  # a capital sigma that ends a word
    ],
)
def test_pieces_are_matched(pieces, text, expected):
    assert tokens(text, Vocabulary([*SPECIAL_TOKENS, *pieces])) == expected


MARKED = st.text(
    st.sampled_from([*any_text.SORTED, *any_text.SORTED_AND_KEPT * 9, "\u034f", "\u0903", *"a\u1ea5\ud55c\u1161\u0958"])
)


@given(MARKED)
@example("".join(any_text.SORTED))
@example("".join(f"a{c}\u0316\u0301{c}" for c in any_text.CHANGED))
def test_long_words_are_decomposed_as_unicode_says(text):
    long = text + "a" * MAX_WORD_CHARACTERS + "b" + text
    assert characters.decomposed(long) == unicodedata.normalize("NFD", long)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("un un  un", ["un"] * 3),  # chunks are remembered; their offsets must not be
        ("  Unaffable!", ["Unaff", "able", "!"]),
        ("a\u3000b", ["a", "b"]),
        ("(A$", ["(", "A", "$"]),
        ("x0y z", ["x0y", "z"]),
        ("un\u200baff", ["un\u200baff"]),
        ("\u200bab\u200b", ["a", "b"]),
        ("a\0b", ["a", "b"]),
        ("A\u00c9B", ["A", "\u00c9", "B"]),
        ("ab\u4e00c", ["a", "b", "\u4e00", "c"]),
        (f"ae{ACUTE}b", ["a", "e", "b"]),
        ("\u0130cd", ["\u0130", "c", "d"]),  # becomes i and a combining dot; the dot goes
        ("b " + "a" * 201, ["b", "a" * 201]),
    ],
    ids=ascii,
)
def test_offsets_cover_what_the_piece_was_made_of(text, expected):
    assert spans(text) == expected
    hangul = Vocabulary([*SPECIAL_TOKENS, JAMO[0], f"##{JAMO[1]}", f"##{JAMO[2]}"])
    assert spans("\ud55c", hangul) == ["\ud55c"] * 3  # pieces of one character share its offsets


TOKENIZERS = {lower_case: WordPieceTokenizer(VOCABULARY, lower_case=lower_case) for lower_case in (False, True)}


@given(
    st.text(st.sampled_from(f"unaffable {E_ACUTE}e{ACUTE}\u4e00!.\t\u00a0\u2028\0\u200b I\u0130"), max_size=30), st.booleans()
)
def test_columns_hold_what_tokenize_says(text, lower_case):
    tokenizer = TOKENIZERS[lower_case]
    expected = [(piece.id, piece.start, piece.end) for piece in tokenizer.tokenize(text)]
    assert list(zip(*(column.tolist() for column in tokenizer.pieces(text)))) == expected
    assert tokenizer.pieces(text).ids.tolist() == tokenizer.ids(text)
    assert VOCABULARY.ids(piece.token for piece in tokenizer.tokenize(text)) == tokenizer.ids(text)


def test_what_is_remembered_is_bounded_in_characters_and_goes_to_no_other_process(monkeypatch):
    tokenizer = WordPieceTokenizer(VOCABULARY, lower_case=False)
    expected = tokenizer.ids("unaffable B")
    sent = copy.deepcopy(tokenizer)  # as pickle does it
    assert len(sent._ids_of) == len(sent._ids_of_word) == 0
    assert sent.ids("unaffable B") == expected
    long = [f"ab{number:0400}" for number in range(5)] + [f"ab{number:050}," for number in range(50)]
    expected = [WordPieceTokenizer(VOCABULARY).ids(text) for text in long]
    monkeypatch.setattr(wordpiece, "_REMEMBERED_CHARACTERS", 1000)
    own = WordPieceTokenizer(VOCABULARY)
    assert [own.ids(text) for text in long] == expected
    for remembered in (own._ids_of, own._ids_of_word):
        assert sum(map(len, remembered)) <= 1000


def test_a_word_of_a_million_accented_letters_takes_no_time_for_its_pieces():
    tokenizer, start = WordPieceTokenizer(VOCABULARY), time.process_time()
    assert tokenizer.ids(E_ACUTE * 10**6) == [VOCABULARY.unk_id]
    assert time.process_time() - start < 5


@pytest.mark.parametrize("text", ["\u4e2d\u4e2d\u4e2d", "\u3042\u3044\u3042\u3044", "ab\u0e01\u0e33"])
def test_what_is_between_blanks_is_remembered_by_word(text):
    vocabulary = Vocabulary(dict.fromkeys([*VOCABULARY.tokens, *text, *(f"##{c}" for c in text)]))
    tokenizer = WordPieceTokenizer(vocabulary, lower_case=False)
    for word in (text, f"{text}, {text}", f"{text}," * 50):
        assert tokenizer.ids(word) == [piece.id for piece in tokenizer.tokenize(word)] == tokenizer.pieces(word).ids.tolist()
