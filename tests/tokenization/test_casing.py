"""Which text a vocabulary is for, by the files beside it, the name of its folder and its pieces."""

from __future__ import annotations

import json

import pytest

from bert_tf.tokenization import casing
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary

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
    found = find(*tokens)
    assert found.lower_case is lower_case
    assert found.against(lower_case=not lower_case) is bool(found.signs)
    assert not found.against(lower_case=lower_case)
    assert not found.doubtful(lower_case=lower_case)


@pytest.mark.parametrize(("capitals", "lower_case"), [("QRS", True), ("BCDFGHIJ", False)])  # 2 and 6 of 100
def test_a_few_capitals_are_doubtful_and_refuse_nothing(capitals, lower_case):
    found = find(*LATIN, *capitals)
    assert found.lower_case is lower_case
    assert found.doubtful(lower_case=not lower_case)
    assert not found.doubtful(lower_case=lower_case)
    assert not found.against(lower_case=not lower_case)


@pytest.mark.parametrize(
    ("name", "lower_case"),
    [
        ("uncased_L-12_H-768_A-12", True),
        ("cased_L-12_H-768_A-12", False),
        ("wwm_cased_L-24_H-1024_A-16", False),
        ("multilingual_L-12_H-768_A-12", True),
        ("chinese_L-12_H-768_A-12", True),
        ("bert-base-uncased", True),
        ("bert-base-multilingual-cased-0123456789ab", False),
        ("bert-base-chinese", None),
        ("cased", None),
        ("bert-cased-and-uncased", None),
        ("my-uncased-runs", None),
    ],
)
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
        ({"tokenizer_config": [], "tokenizer": 3}, None),
        ({"tokenizer_config": {"do_lower_case": "yes"}}, None),
        ({"tokenizer_config": "{"}, None),
    ],
    ids=str,
)
def test_tokenizer_files_speak_and_a_damaged_one_is_warned_of(tmp_path, caplog, files, lower_case):
    signs = in_folder(tmp_path, *IDEOGRAPHS, **files).signs
    assert [sign.lower_case for sign in signs] == ([] if lower_case is None else [lower_case])
    damaged = "line 1: not JSON: Expecting property name enclosed in double quotes at character 2"
    said = [f"{tmp_path}/tokenizer_config.json is not used: {damaged}"]
    assert caplog.messages == (said if files.get("tokenizer_config") == "{" else [])


def test_clear_pieces_go_before_files_before_names_before_doubtful_pieces(tmp_path):
    folder, few_capitals = tmp_path / "uncased_L-2_H-8_A-2", (*LATIN, *"BCDFGHIJ")
    assert not in_folder(folder, *CASED).lower_case
    assert in_folder(folder, *few_capitals).lower_case
    assert not in_folder(folder, *few_capitals, tokenizer_config={"do_lower_case": False}).lower_case
    assert in_folder(folder, *CHINESE, tokenizer_config={"do_lower_case": False}).lower_case


@pytest.mark.parametrize("lower_case", [True, False])
def test_signs_that_disagree_refuse_nothing(tmp_path, lower_case):
    found = in_folder(tmp_path / "cased_L-2_H-8_A-2", *LATIN)
    assert not found.against(lower_case=lower_case)
    assert found.doubtful(lower_case=lower_case)
    assert str(found) == (
        "0 of 120 pieces with letters have a capital; the folder cased_L-2_H-8_A-2 is named as cased ones are"
    )
