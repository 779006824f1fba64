"""Reading a vocabulary, and what makes one unusable."""

from __future__ import annotations

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


def test_id_is_the_position():
    assert Vocabulary(TOKENS).ids(TOKENS) == list(range(len(TOKENS)))


def test_length_is_the_number_of_pieces():
    assert len(Vocabulary(TOKENS)) == 8


def test_unknown_piece_has_the_id_of_unk():
    assert Vocabulary(TOKENS).id("cat") == 1


def test_ids_refuse_an_unknown_piece():
    with pytest.raises(KeyError, match="cat"):
        Vocabulary(TOKENS).ids(["the", "cat"])


@pytest.mark.parametrize(("token", "known"), [("##s", True), ("s", False), ("The", False)])
def test_contains_the_pieces_as_they_are_written(token, known):
    assert (token in Vocabulary(TOKENS)) is known


def test_ids_of_special_tokens_follow_the_file():
    vocabulary = Vocabulary(["a", *reversed(SPECIAL_TOKENS)])
    ids = (vocabulary.mask_id, vocabulary.sep_id, vocabulary.cls_id, vocabulary.unk_id, vocabulary.pad_id)
    assert ids == (1, 2, 3, 4, 5)


def test_fingerprint_depends_on_the_order():
    assert Vocabulary([*TOKENS, "a", "b"]).fingerprint != Vocabulary([*TOKENS, "b", "a"]).fingerprint


def test_fingerprint_depends_on_where_pieces_are_divided():
    assert Vocabulary([*TOKENS, "a", "b"]).fingerprint != Vocabulary([*TOKENS, "ab"]).fingerprint


@pytest.mark.parametrize(
    "data",
    [
        text_of(TOKENS),
        text_of(TOKENS).removesuffix(b"\n"),
        text_of(TOKENS, end="\r\n"),
        b"\xef\xbb\xbf" + text_of(TOKENS),
        text_of(TOKENS, end="  \n"),
    ],
    ids=["plain", "no last line end", "CRLF", "byte order mark", "trailing blanks"],
)
def test_file_is_read_whatever_its_line_ends(tmp_path, data):
    assert Vocabulary.from_file(written(tmp_path, data)).tokens == TOKENS


def test_only_a_line_feed_ends_a_line(tmp_path):
    tokens = (*TOKENS, "a\u2028b", "c\x85d", "e\x0bf")
    assert Vocabulary.from_file(written(tmp_path, text_of(tokens))).tokens == tokens


@pytest.mark.parametrize("blank", ["\u2028", "\u3000", "\u00a0", "\x85"], ids=ascii)
def test_blank_beyond_ascii_is_a_piece(tmp_path, blank):
    # The published Chinese vocabulary has a line with U+2028 and nothing else.
    tokens = (*TOKENS, blank, f"##{blank}")
    assert Vocabulary.from_file(written(tmp_path, text_of(tokens))).tokens == tokens


def test_to_text_is_read_back_with_the_same_fingerprint(tmp_path):
    vocabulary = Vocabulary(TOKENS)
    assert Vocabulary.from_file(written(tmp_path, vocabulary.to_text().encode())).fingerprint == vocabulary.fingerprint


def test_missing_file_is_named(tmp_path):
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(tmp_path / "none.txt")
    assert str(caught.value) == f"{tmp_path / 'none.txt'}: cannot read the vocabulary: No such file or directory"


def test_invalid_utf8_is_named_with_its_line(tmp_path):
    path = written(tmp_path, text_of(TOKENS) + b"caf\xe9\n")
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(path)
    assert str(caught.value).startswith(f"{path}:9: not UTF-8 at byte ")


@pytest.mark.parametrize("blank", ["", "  ", "\t"])
def test_blank_line_is_named_with_its_line(tmp_path, blank):
    path = written(tmp_path, text_of([*TOKENS[:6], blank, *TOKENS[6:]]))
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(path)
    assert str(caught.value).startswith(f"{path}:7: blank line in the vocabulary; ")


def test_repeated_piece_is_named_with_both_lines(tmp_path):
    path = written(tmp_path, text_of([*TOKENS, "the"]))
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(path)
    assert str(caught.value) == f"{path}:9: 'the' is already in line 6; every piece has one id"


@pytest.mark.parametrize("token", SPECIAL_TOKENS)
def test_missing_special_token_is_named(token):
    with pytest.raises(VocabularyError) as caught:
        Vocabulary([piece for piece in TOKENS if piece != token], path="vocab.txt")
    assert str(caught.value) == f"vocab.txt: {token} missing; is this a BERT vocabulary, one piece a line?"


def test_empty_file_is_refused(tmp_path):
    path = written(tmp_path, b"")
    with pytest.raises(VocabularyError) as caught:
        Vocabulary.from_file(path)
    assert str(caught.value).startswith(f"{path}:1: blank line")


def test_a_nul_character_is_named_with_its_line(tmp_path):
    path = written(tmp_path, text_of([*TOKENS, "a\0b"]))
    with pytest.raises(VocabularyError, match=rf":{len(TOKENS) + 1}: 'a\\x00b' holds a NUL character"):
        Vocabulary.from_file(path)


@pytest.mark.parametrize("more", [(), ("[unused0]",)])
def test_a_vocabulary_without_a_piece_of_any_word_is_refused(more):
    with pytest.raises(VocabularyError, match="only special and unused pieces, so every word would be"):
        Vocabulary((*SPECIAL_TOKENS, *more))
