"""Reading a vocabulary, and what makes one unusable."""

from __future__ import annotations

import re

import pytest

from bert_tf.errors import VocabularyError
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

TOKENS = (*SPECIAL_TOKENS, "the", "##s", "caf\u00e9")


def written(folder, data: bytes):
    path = folder / "vocab.txt"
    path.write_bytes(data)
    return path


def text_of(tokens, end="\n") -> bytes:
    return "".join(token + end for token in tokens).encode()


def test_pieces_have_their_position_as_id_and_unknown_ones_that_of_unk():
    vocabulary = Vocabulary(TOKENS)
    assert (vocabulary.ids(TOKENS), len(vocabulary), vocabulary.id("cat")) == (list(range(8)), 8, 1)
    assert [token in vocabulary for token in ("##s", "s", "The")] == [True, False, False]
    with pytest.raises(KeyError, match="cat"):
        vocabulary.ids(["the", "cat"])


def test_ids_of_special_tokens_follow_the_file():
    vocabulary = Vocabulary(["a", *reversed(SPECIAL_TOKENS)])
    ids = (vocabulary.mask_id, vocabulary.sep_id, vocabulary.cls_id, vocabulary.unk_id, vocabulary.pad_id)
    assert ids == (1, 2, 3, 4, 5)


def test_fingerprint_depends_on_order_and_on_where_pieces_are_divided():
    assert len({Vocabulary([*TOKENS, *more]).fingerprint for more in (("a", "b"), ("b", "a"), ("ab",))}) == 3


@pytest.mark.parametrize(
    "data",
    [
        text_of(TOKENS),
        text_of(TOKENS).removesuffix(b"\n"),
        text_of(TOKENS, end="\r\n"),
        b"\xef\xbb\xbf" + text_of(TOKENS),
        text_of(TOKENS, end="  \n"),
        Vocabulary(TOKENS).to_text().encode(),
    ],
    ids=["plain", "no last line end", "CRLF", "byte order mark", "trailing blanks", "to_text"],
)
def test_file_is_read_whatever_its_line_ends(tmp_path, data):
    found = Vocabulary.from_file(written(tmp_path, data))
    assert (found.tokens, found.fingerprint) == (TOKENS, Vocabulary(TOKENS).fingerprint)


def test_only_a_line_feed_ends_a_line_and_blanks_beyond_ascii_are_pieces(tmp_path):
    # The published Chinese vocabulary has a line with U+2028 and nothing else.
    blanks = ("\u2028", "\u3000", "\u00a0", "\x85")
    tokens = (*TOKENS, "a\u2028b", "c\x85d", "e\x0bf", *blanks, *(f"##{blank}" for blank in blanks))
    assert Vocabulary.from_file(written(tmp_path, text_of(tokens))).tokens == tokens


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, ": cannot read the vocabulary: No such file or directory"),
        (text_of(TOKENS) + b"caf\xe9\n", ":9: not UTF-8 at byte 3 of the line"),
        *((text_of([*TOKENS[:6], blank, *TOKENS[6:]]), ":7: blank line in the vocabulary; ") for blank in ("", "  ", "\t")),
        (b"", ":1: blank line in the vocabulary; "),
        (text_of([*TOKENS, "the"]), ":9: 'the' is already in line 6; every piece has one id"),
        (text_of([*TOKENS, "a\0b"]), r":9: 'a\x00b' holds a NUL character"),
        (text_of(SPECIAL_TOKENS), ": only special and unused pieces, so every word would be"),
        (text_of([*SPECIAL_TOKENS, "[unused0]"]), ": only special and unused pieces, so every word would be"),
        *(
            (text_of(one for one in TOKENS if one != token), f": {token} missing; is this a BERT vocabulary, one piece a line?")
            for token in SPECIAL_TOKENS
        ),
    ],
)
def test_what_is_unusable_is_named_with_its_line(tmp_path, data, problem):
    path = tmp_path / "vocab.txt" if data is None else written(tmp_path, data)
    with pytest.raises(VocabularyError, match=rf"\A{re.escape(f'{path}{problem}')}"):
        Vocabulary.from_file(path)
