"""The tokenizer against an independent one: Hugging Face `tokenizers`, written in Rust."""

import string
import unicodedata

import pytest
import tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bert_tf.tokenization.characters import MAX_WORD_CHARACTERS
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, UNK, Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.tokenization import any_text


def _comparable() -> list[str]:
    """Returns the characters on which both can be held to the published rules.

    Left out are
    - categories Cn, Co and Cs: the oracle deletes what is unassigned or private, the published code keeps it, and
      surrogates are no text that could be handed over to Rust;
    - characters that Unicode 3.2 did not know or sorted otherwise: the oracle's tables are older than those of Python, so
      that newer marks, controls and punctuation are letters to it;
    - U+03A3, capital sigma: str.lower, as published, knows the form at the end of a word, the oracle lowers by letter.
    """
    characters = []
    for c in any_text.ASSIGNED:
        category = unicodedata.category(c)
        if category not in ("Cn", "Co", "Cs") and category == unicodedata.ucd_3_2_0.category(c) and c != "\u03a3":
            characters.append(c)
    return characters


COMPARABLE = _comparable()
BLANKS = " \t\n\r\u00a0\u1680\u2003\u2028\u3000"
DELETED = "\0\ufffd\x01\x0b\x1c\x7f\x85\u00ad\u200b\u200d\ufeff"
MARKS = "\u0300\u0301\u0323\u0327\u0345\u05b0\u0655\u0903\u093c\u20dd\u302e"
IDEOGRAPHS = "\u3400\u4e00\u4e2d\u9fa5\uf900\U00020000\U0002a6d6\U0002f800"


def _vocabulary() -> Vocabulary:
    """Letters and digits at the start and inside of words, marks, symbols, ideographs, and some longer pieces."""
    letters = [c for c in COMPARABLE if c < "\u1200" and c.isalnum()]
    ideographs = [*IDEOGRAPHS[:-1], *(chr(i) for i in range(0x4E00, 0x4E80))]
    symbols = [c for c in COMPARABLE if c < "\u3100" and unicodedata.category(c)[0] in "PS"]
    longer = ["un", "the", "abc", "caf\u00e9", "cafe", "\u00fcber", "\u03b1\u03b2", "\u4e2d\u6587"]
    tails = ["##ab", "##able", "##ing", "##s1", "##\u00e9e", "##20"]
    inside = [f"##{c}" for c in [*letters, *MARKS[:6], *symbols[-40:]]]
    return Vocabulary([*SPECIAL_TOKENS, *dict.fromkeys([*letters, *symbols, *ideographs, *longer, *tails, *inside])])


VOCABULARY = _vocabulary()
OURS = {lower_case: WordPieceTokenizer(VOCABULARY, lower_case=lower_case) for lower_case in (True, False)}


def _oracle(lower_case: bool):
    ids = {token: i for i, token in enumerate(VOCABULARY.tokens)}
    # The oracle would stop at words of 100 characters if left alone.
    model = tokenizers.models.WordPiece(ids, unk_token=UNK, max_input_chars_per_word=MAX_WORD_CHARACTERS)
    oracle = tokenizers.Tokenizer(model)
    oracle.normalizer = tokenizers.normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=lower_case, lowercase=lower_case
    )
    oracle.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    return oracle


ORACLE = {lower_case: _oracle(lower_case) for lower_case in (True, False)}

# Words of the vocabulary's letters, in long runs too, broken by what the rules treat in a way of its own; a character
# of all Unicode now and then.
TEXTS = st.lists(
    st.one_of(
        st.sampled_from("aabceinstuABCE019"),
        st.sampled_from([token.removeprefix("##") for token in VOCABULARY.tokens]),
        st.sampled_from(BLANKS + string.punctuation),
        st.sampled_from(DELETED),
        st.sampled_from(MARKS),
        st.sampled_from(IDEOGRAPHS),
        st.sampled_from(COMPARABLE),
        st.builds(lambda c, n: c * n, st.sampled_from("aE\u00e9"), st.integers(195, 205)),
    ),
    max_size=20,
).map("".join)


# The same examples in every run: a change is tested on its own merits, not on the luck of the draw.
fuzzed = settings(max_examples=250, deadline=None, derandomize=True, database=None)


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
@given(text=TEXTS)
@example(text="a" * 200 + " " + "a" * 201)
@example(text="\u0130\u00df\ufb01\u01c5")
@fuzzed
def test_ids_are_those_of_the_oracle(text, lower_case):
    expected, pieces = ORACLE[lower_case].encode(text, add_special_tokens=False), OURS[lower_case].tokenize(text)
    assert [p.token for p in pieces] == expected.tokens
    assert [p.id for p in pieces] == expected.ids


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
@given(text=TEXTS)
@fuzzed
def test_offsets_of_texts_without_marks_are_those_of_the_oracle(text, lower_case):
    text = "".join(c for c in text if not unicodedata.category(c).startswith("M"))
    expected = ORACLE[lower_case].encode(text, add_special_tokens=False)
    assert [(p.start, p.end) for p in OURS[lower_case].tokenize(text)] == expected.offsets


@pytest.mark.parametrize("lower_case", [True, False], ids=["uncased", "cased"])
def test_every_character_between_two_letters_is_as_in_the_oracle(lower_case):
    # "a" and "##b" tell a character that is deleted from one that divides and from one that stays in the word.
    # Ideographs and syllables by the ten thousand are treated alike: one in 16 of them.
    some = [c for i, c in enumerate(COMPARABLE) if c < "\u3400" or not c.isalpha() or i % 16 == 0]
    text = " ".join(f"a{c}b" for c in some)
    assert OURS[lower_case].ids(text) == ORACLE[lower_case].encode(text, add_special_tokens=False).ids
