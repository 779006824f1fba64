"""Tokenizers of a tokenizer.json beside transformers; `benchmarks/peers/write_library_oracle.py` wrote library_oracle.json."""

import importlib.util
import json
import pickle
from pathlib import Path

import pytest

from bert_tf.errors import FlagError, VocabularyError
from bert_tf.features import sentences
from bert_tf.tokenization import casing, library
from bert_tf.tokenization.tokenizer import read_tokenizer, tokenizer_of, word_pieces
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS, Vocabulary
from tests import tokenizer_files
from tests.features.test_sentences import rows
from tests.tasks.refusals import refusal

pytest.importorskip("tokenizers")

ORACLE = json.loads(Path(__file__).with_name("library_oracle.json").read_text(encoding="utf-8"))
TEXTS = ORACLE["texts"]


@pytest.fixture(scope="module", params=["byte level", "unigram"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def tokenizer(kind):
    return tokenizer_of(library.LibraryVocabulary(ORACLE[kind]["file"]), lower_case=True)


def built(texts, tokenizer, length: int) -> list[list[int]]:
    return rows(sentences.build(texts, None, tokenizer, max_seq_length=length))


def test_ids_of_texts_pairs_and_words_are_those_of_transformers(kind, tokenizer):
    assert built([(text, None) for text in TEXTS], tokenizer, 16) == ORACLE[kind]["ids"]
    # A second text without pieces is none, as published.
    pairs = list(zip(TEXTS[-1:] + TEXTS, TEXTS))
    expected = ORACLE[kind]["pairs"]
    pair_ids = built(pairs, tokenizer, 20)
    kept = [number for number, (_, second) in enumerate(pairs) if tokenizer.ids(second)]
    assert len(kept) > len(TEXTS) - 5
    assert [pair_ids[number] for number in kept] == [expected[number] for number in kept]
    for text, (ids, word_ids) in zip(TEXTS, ORACLE[kind]["words"]):
        words = text.split()
        expected = [[one for one, word in zip(ids, word_ids) if word == number] for number in range(len(words))]
        assert tokenizer.of_words(words) == expected, text


@pytest.mark.parametrize("length", [8, 9, 12, 13])
@pytest.mark.parametrize("sizes", [(1, 9), (9, 1), (5, 6), (6, 5), (6, 6), (3, 9)])
def test_pairs_are_truncated_as_by_the_library(tokenizer, sizes, length):
    pair = tuple(" ".join(["mill"] * size) for size in sizes)
    by_library = library.LibraryVocabulary(tokenizer.vocabulary.to_text()).library
    by_library.enable_truncation(length)
    assert built([pair], tokenizer, length) == [by_library.encode(*pair).ids]


@pytest.mark.parametrize("as_they_are", [True, False])
def test_words_of_a_tagger_from_elsewhere_have_the_blanks_that_the_file_adds(as_they_are, tmp_path):
    (tmp_path / "tokenizer.json").write_text(tokenizer_files.byte_level())
    vocabulary = read_tokenizer(tmp_path / "tokenizer.json", words_as_they_are=as_they_are)
    for name, text in vocabulary.files().items():
        (tmp_path / name).write_text(text)
    again = read_tokenizer(tmp_path / "tokenizer.json")
    assert again.fingerprint == vocabulary.fingerprint
    expected = again.library.encode(["w1", "w2"], is_pretokenized=True, add_special_tokens=False).ids
    ids_of_words = [number for ids in tokenizer_of(again, lower_case=False).of_words(["w1", "w2"]) for number in ids]
    assert (ids_of_words == expected) == as_they_are
    assert library.adds_blank(again.to_text_of_words()) is not as_they_are


@pytest.mark.parametrize(
    ("config", "step", "expected"),
    [
        ({"add_prefix_space": True}, {"type": "ByteLevel", "add_prefix_space": False}, {"add_prefix_space": True}),
        ({"tokenizer_class": "MPNetTokenizer", "do_lower_case": False, "strip_accents": None}, {"type": "BertNormalizer"},
         {"lowercase": False, "strip_accents": None}),
        ({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": False}, {"type": "BertNormalizer"}, {}),
    ],
)  # fmt: skip
def test_switches_beside_the_file_go_first_where_they_do_in_transformers(config, step, expected, tmp_path):
    content = json.loads(tokenizer_files.byte_level())
    switches = {"clean_text": True, "handle_chinese_chars": True, "lowercase": True, "strip_accents": True}
    is_normalizer = step["type"] == "BertNormalizer"
    part = "normalizer" if is_normalizer else "pre_tokenizer"
    content[part] = {**(switches if is_normalizer else content[part]), **step}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    read = json.loads(read_tokenizer(tmp_path / "tokenizer.json").to_text())
    assert read == {**content, part: {**content[part], **expected}}


def test_letters_keep_their_case_and_lone_surrogates_are_read_and_ranges_have_no_blank_before_the_piece(tokenizer, kind):
    assert not tokenizer.lower_case
    assert tokenizer.ids("Mill") != tokenizer.ids("mill")
    assert casing.find(tokenizer.vocabulary).signs == ()
    # JSON can escape them; of BERT's rules they are characters like others.
    assert tokenizer.ids("a \ud800 b") == tokenizer.ids("a \ufffd b")
    assert tokenizer.pieces("\udfff mill").ends[-1] == 6
    for text, expected in zip(TEXTS, ORACLE[kind]["ranges"]):
        pieces = tokenizer.pieces(text)
        assert pieces.ids.tolist() == tokenizer.ids(text)
        for start, end, (first, after) in zip(pieces.starts, pieces.ends, expected):
            assert (text[start:end], end) == (text[first:after].lstrip() or text[first:after], after)


def test_other_processes_get_the_same_and_a_file_of_padding_and_truncation_does_neither(kind, tokenizer):
    whole = {**json.loads(ORACLE[kind]["file"])}
    whole["truncation"] = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    other = tokenizer_of(library.LibraryVocabulary(json.dumps(whole)), lower_case=False)
    assert other.ids(TEXTS[3]) == tokenizer.ids(TEXTS[3])
    again = pickle.loads(pickle.dumps(tokenizer))  # noqa: S301 of our own
    assert again.ids(TEXTS[3]) == tokenizer.ids(TEXTS[3])
    assert again.vocabulary.fingerprint == tokenizer.vocabulary.fingerprint


def test_special_tokens_are_found_by_name(tmp_path):
    special = ("</s>", "<mask>", "<unk>", "<s>", "<pad>")
    (tmp_path / "tokenizer.json").write_text(tokenizer_files.byte_level(special=special))
    vocabulary = read_tokenizer(tmp_path / "tokenizer.json")
    with pytest.raises(VocabularyError, match="only a WordPiece vocabulary will do here"):
        Vocabulary.from_file(tmp_path / "tokenizer.json")
    assert [vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id] == [4, 2, 3, 0, 1]
    assert (len(vocabulary), vocabulary.folder) == (23, tmp_path)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ": cannot read the tokenizer: No such file"),
        (b'{"a": 1}', "not a tokenizer that `tokenizers` reads"),
        (b"{", "not a tokenizer that `tokenizers` reads"),
        (b"\xff", "not UTF-8 at byte 0"),
        (tokenizer_files.byte_level(special=("<s>", "</s>", "<unk>", "<mask>")).encode(), "<pad> missing; is this a tokenizer"),
        (tokenizer_files.byte_level(special=("<unk>",)).encode(), "puts 0 special tokens around a text"),
        (tokenizer_files.byte_level(around=False).encode(), "puts 0 special tokens around a text and 0 around a pair"),
    ],
)
def test_damaged_files_end_in_one_line(content, expected, tmp_path):
    if content is not None:
        (tmp_path / "tokenizer.json").write_bytes(content)
    line = refusal(VocabularyError, read_tokenizer, tmp_path / "tokenizer.json")
    assert expected in line
    assert line.startswith(f"{tmp_path}/tokenizer.json")


def test_what_needs_word_pieces_says_so_and_without_the_library_its_command_is_shown(tokenizer, monkeypatch):
    with pytest.raises(FlagError, match=r"fill-mask: only for models with a WordPiece vocabulary \(vocab.txt\)"):
        word_pieces(tokenizer, "fill-mask")
    own = tokenizer_of(Vocabulary([*SPECIAL_TOKENS, "a"]), lower_case=True)
    assert word_pieces(own, "fill-mask") is own
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(FlagError, match="tokenizer.json needs tokenizers: pip install 'tokenizers>="):
        library.LibraryVocabulary(tokenizer_files.byte_level())


def test_an_id_far_beyond_the_pieces_is_refused_before_names_are_made_for_the_gap():
    content = json.loads(tokenizer_files.byte_level())
    content["model"]["vocab"]["far"] = 20_000_000
    with pytest.raises(VocabularyError, match="'far' has the id 20000000, but there are 24 pieces"):
        library.LibraryVocabulary(json.dumps(content))


def test_pieces_have_the_notation_of_bert_and_those_that_text_is_not_cut_into_are_known(tokenizer):
    vocabulary = tokenizer.vocabulary
    pieces = " ".join(map(vocabulary.word_piece, tokenizer.ids("the mill, the mills")))
    assert pieces.replace(" ##", "").removeprefix("##").split() == ["the", "mill", ",", "the", "mills"]
    outside = vocabulary.outside_texts
    assert {*filter(None, vocabulary.special)} <= outside
    assert all(vocabulary.word_piece(vocabulary.id(token)) == token for token in outside if token in vocabulary)
    known = {number for text in TEXTS[:20] for number in tokenizer.ids(text)} - {vocabulary.unk_id}
    assert not outside & {vocabulary.tokens[number] for number in known}
    assert vocabulary.word_piece(len(vocabulary) + 3) == f"[{len(vocabulary) + 3}]"


def test_a_letter_that_other_tokenizers_write_for_a_blank_changes_no_word_pieces():
    content = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "mill", "##s", "\u0120"]
    content["vocab"] = {token: number for number, token in enumerate(tokens)}
    written = json.loads(tokenizer_files.byte_level())
    vocabulary = library.LibraryVocabulary(json.dumps({**written, "model": content, "added_tokens": []}))
    assert [vocabulary.word_piece(number) for number in (5, 6, 7)] == ["mill", "##s", "\u0120"]


def test_parts_of_a_character_keep_their_names():
    content = json.loads(tokenizer_files.byte_level())
    number = len(content["model"]["vocab"])
    content["model"]["vocab"]["\u00f0"] = number  # the first of four bytes
    content["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    assert library.LibraryVocabulary(json.dumps(content)).word_piece(number) == "\u00f0"


@pytest.mark.parametrize(
    ("model", "begins", "goes_on"),
    [({}, "w", "##w"), ({"type": "WordPiece", "continuing_subword_prefix": "##"}, "\u0120w", "w")],
)
def test_pieces_of_markdown_are_no_sign_of_word_pieces(model, begins, goes_on):
    content = json.loads(tokenizer_files.byte_level())
    pieces = content["model"]["vocab"]
    pieces["##"] = pieces.pop("unused4")
    of_word_pieces = {"unk_token": "<unk>", "max_input_chars_per_word": 100, "vocab": pieces}
    content["model"] = {**of_word_pieces, **model} if model else content["model"]
    vocabulary = library.LibraryVocabulary(json.dumps(content))
    assert [vocabulary.word_piece(pieces[piece]) for piece in ("\u0120w", "w", "##")] == [begins, goes_on, "##"]
