"""Reading a vocabulary, what makes one unusable, and which text it is for."""

import json
import re

import pytest

from bert_tf.errors import VocabularyError
from bert_tf.tokenization import casing
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
    vocabulary = Vocabulary(["a", *reversed(SPECIAL_TOKENS)])
    ids = (vocabulary.mask_id, vocabulary.sep_id, vocabulary.cls_id, vocabulary.unk_id, vocabulary.pad_id)
    assert ids == (1, 2, 3, 4, 5)
    # The fingerprint depends on order and on where pieces are divided.
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
    vocabulary = Vocabulary.from_file(written(tmp_path, data))
    assert (vocabulary.tokens, vocabulary.fingerprint) == (TOKENS, Vocabulary(TOKENS).fingerprint)


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
        (text_of([*TOKENS, "\u2581the", "\u2581a"]), ": pieces begin with \u2581, as SentencePiece's: their model is needed"),
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


LATIN = [f"{first}{second}" for first in "abcdefghijklmnopqrst" for second in "uvwxyz"]  # 120 pieces
IDEOGRAPHS = [chr(0x4E00 + n) for n in range(500)]
CHINESE = ["[unused1]", "<S>", "<T>", *IDEOGRAPHS, *LATIN, *(f"##{piece}" for piece in LATIN)]
CASED = [*LATIN, *map(str.title, LATIN)]


def find(*tokens: str) -> casing.Casing:
    return casing.find(Vocabulary([*SPECIAL_TOKENS, ".", *tokens]))


def in_folder(folder, *tokens: str, **files: object) -> casing.Casing:
    """Reads a vocabulary in a folder with files named by their stem."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS, ".", *tokens]) + "\n", encoding="utf-8")
    for stem, content in files.items():
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{stem}.json").write_text(text, encoding="utf-8")
    return casing.find(Vocabulary.from_file(folder / "vocab.txt"))


@pytest.mark.parametrize(
    ("tokens", "lower_case"),
    [
        (["a", "##b"], True),
        (["A"], False),
        (["##\u00c9"], False),
        (["[unused1]", "[UNUSED2]", "<S>", "</S>"], True),  # written alike in both kinds
        (CHINESE, True),
        ([*CHINESE, "A", "B"], True),
        (CASED, False),
        ([*IDEOGRAPHS, *CASED], False),
        ([], True),
    ],
    ids=str,
)
def test_pieces_speak_by_how_many_have_a_capital(tokens, lower_case):
    verdict = find(*tokens)
    assert verdict.lower_case is lower_case
    assert verdict.against(lower_case=not lower_case) is bool(verdict.signs)
    assert not verdict.against(lower_case=lower_case)
    assert not verdict.doubtful(lower_case=lower_case)


@pytest.mark.parametrize(("capitals", "lower_case"), [("QRS", True), ("BCDFGHIJ", False)])  # 2 and 6 of 100
def test_a_few_capitals_are_doubtful_and_refuse_nothing(capitals, lower_case):
    verdict = find(*LATIN, *capitals)
    assert verdict.lower_case is lower_case
    assert verdict.doubtful(lower_case=not lower_case)
    assert not verdict.doubtful(lower_case=lower_case)
    assert not verdict.against(lower_case=not lower_case)


NAMES = {
    True: "uncased_L-12_H-768_A-12 multilingual_L-12_H-768_A-12 chinese_L-12_H-768_A-12 bert-base-uncased",
    False: "cased_L-12_H-768_A-12 wwm_cased_L-24_H-1024_A-16 bert-base-multilingual-cased-0123456789ab",
    None: "bert-base-chinese cased bert-cased-and-uncased my-uncased-runs",
}


@pytest.mark.parametrize(("name", "lower_case"), [(name, value) for value, names in NAMES.items() for name in names.split()])
def test_published_names_of_folders_speak(tmp_path, name, lower_case):
    signs = in_folder(tmp_path / name, *IDEOGRAPHS).signs
    assert [sign.lower_case for sign in signs] == ([] if lower_case is None else [lower_case])


@pytest.mark.parametrize(
    ("files", "lower_case"),
    [
        ({"tokenizer_config": {"do_lower_case": False}}, False),
        ({"tokenizer_config": {"do_lower_case": True}, "tokenizer": {"normalizer": {"lowercase": False}}}, True),
        ({"tokenizer_config": {}, "tokenizer": {"normalizer": {"type": "BertNormalizer", "lowercase": False}}}, False),
        ({"tokenizer": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "Lowercase"}]}}}, True),
        ({"tokenizer": {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFD"}]}}}, False),
        ({"tokenizer": {"normalizer": None}}, None),
        ({"tokenizer_config": {"do_lower_case": "yes"}}, None),
    ],
    ids=str,
)
def test_tokenizer_files_speak(tmp_path, files, lower_case):
    signs = in_folder(tmp_path, *IDEOGRAPHS, **files).signs
    assert [sign.lower_case for sign in signs] == ([] if lower_case is None else [lower_case])


def test_clear_pieces_go_before_files_before_names_before_doubtful_pieces(tmp_path):
    folder, few_capitals = tmp_path / "uncased_L-2_H-8_A-2", (*LATIN, *"BCDFGHIJ")
    assert not in_folder(folder, *CASED).lower_case
    assert in_folder(folder, *few_capitals).lower_case
    assert not in_folder(folder, *few_capitals, tokenizer_config={"do_lower_case": False}).lower_case
    assert in_folder(folder, *CHINESE, tokenizer_config={"do_lower_case": False}).lower_case


@pytest.mark.parametrize("lower_case", [True, False])
def test_signs_that_disagree_refuse_nothing(tmp_path, lower_case):
    verdict = in_folder(tmp_path / "cased_L-2_H-8_A-2", *LATIN)
    assert not verdict.against(lower_case=lower_case)
    assert verdict.doubtful(lower_case=lower_case)
    assert str(verdict) == (
        "0 of 120 pieces with letters have a capital; the folder cased_L-2_H-8_A-2 is named as cased ones are"
    )
