"""Special tokens and templates of tokenizers of several kinds, made by hand."""

import json

import numpy as np
import pytest

from bert_tf.errors import VocabularyError
from bert_tf.features import sentences
from bert_tf.tokenization import library
from bert_tf.tokenization.tokenizer import read_tokenizer, tokenizer_of
from tests.features.test_sentences import rows
from tests.tasks.refusals import refusal

pytest.importorskip("tokenizers")

BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
MPNET = ("<s>", "<pad>", "</s>", "[UNK]", "<mask>")
GEMMA = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
NAMELESS = ("begin", "end", "fill", "hide", "what")
SWITCHES = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
CHARACTERS = {"type": "BPE", "merges": [], "unk_token": None}


def content(tokens, template, pieces=("a", "b"), model=None):
    """A WordPiece tokenizer, or another model; `template` is of one text and of two, as in "[CLS] A [SEP] B:1 [SEP]:1"."""
    ids = {piece: number for number, piece in enumerate((*tokens, *pieces))}
    model = model or {
        "type": "WordPiece",
        "unk_token": "[UNK]",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 9,
    }
    named = {token: {"id": token, "ids": [number], "tokens": [token]} for token, number in ids.items() if token in tokens}
    parts = [
        [
            {"Sequence" if part in "AB" else "SpecialToken": {"id": part, "type_id": int(segment or 0)}}
            for part, _, segment in (word.partition(":") for word in words.split())
        ]
        for words in template
    ]
    return {
        "version": "1.0",
        "added_tokens": [{"id": ids[token], "content": token, **SWITCHES} for token in tokens],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": parts[0], "pair": parts[1], "special_tokens": named},
        "decoder": None,
        "model": {**model, "vocab": ids},
    }


ONE, TWO = ("[CLS] A [SEP]", "[CLS] A [SEP] B [SEP]"), ("<s> A </s>", "<s> A </s> </s> B </s>")


def read(folder, made, **beside):
    (folder / "tokenizer.json").write_text(json.dumps(made))
    for name, values in beside.items():
        (folder / f"{name}.json").write_text(json.dumps(values))
    return read_tokenizer(folder / "tokenizer.json")


@pytest.mark.parametrize(
    ("made", "special", "single", "pair"),
    [
        (content(BERT, ONE), BERT, [2, 5, 3], [2, 5, 3, 6, 5, 3]),
        (content(MPNET, TWO), ("<pad>", "[UNK]", "<s>", "</s>", "<mask>"), [0, 5, 2], [0, 5, 2, 2, 6, 5, 2]),
        (
            content(GEMMA, ("<bos> A <eos>", "<bos> A <eos> B <eos>"), model={**CHARACTERS, "unk_token": "<unk>"}),
            ("<pad>", "<unk>", "<bos>", "<eos>", "<mask>"),
            [2, 5, 1],
            [2, 5, 1, 6, 5, 1],
        ),
    ],
)
def test_the_template_says_what_begins_and_ends_texts(made, special, single, pair, tmp_path):
    vocabulary = read(tmp_path, made)
    assert vocabulary.special == special
    assert list(vocabulary.files()) == ["tokenizer.json"]
    tokenizer = tokenizer_of(vocabulary, lower_case=False)
    texts = [("a", None), ("a", "b a")]
    assert rows(sentences.build(texts, None, tokenizer, max_seq_length=9)) == [single, pair]
    assert [vocabulary.ids([token])[0] for token in special] == [
        *(vocabulary.pad_id, vocabulary.unk_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id)
    ]


BERTS = (ONE[0], "[CLS] A [SEP] B:1 [SEP]:1")


@pytest.mark.parametrize(
    ("template", "config", "segments"),
    [
        (BERTS, {}, [0, 0, 0, 1, 1, 1]),
        (BERTS, {"tokenizer_class": "PreTrainedTokenizerFast"}, [0, 0, 0, 1, 1, 1]),
        (BERTS, {"tokenizer_class": "BertTokenizer", "backend": "tokenizers"}, [0, 0, 0, 1, 1, 1]),
        (BERTS, {"tokenizer_class": "TokenizersBackend", "backend": "tokenizers"}, [0] * 6),
        (BERTS, {"tokenizer_class": "AlbertTokenizer", "backend": "tokenizers"}, [0] * 6),
        (BERTS, {"backend": "tokenizers", "model_input_names": ["input_ids", "token_type_ids"]}, [0, 0, 0, 1, 1, 1]),
        (BERTS, {"tokenizer_class": "BertTokenizer", "model_input_names": ["input_ids", "attention_mask"]}, [0] * 6),
        (ONE, {}, [0] * 6),  # XLM-RoBERTa's, which multilingual E5 has beside two rows of segments
    ],
)
def test_segments_are_those_of_the_template_if_transformers_passes_them(template, config, segments, tmp_path):
    (tmp_path / "kept").mkdir()
    vocabulary = read(tmp_path, content(BERT, template), tokenizer_config=config)
    for name, text in vocabulary.files().items():
        (tmp_path / "kept" / name).write_text(text)
    again = read_tokenizer(tmp_path / "kept" / "tokenizer.json")
    assert again.fingerprint == vocabulary.fingerprint
    for tokenizer in (tokenizer_of(one, lower_case=False) for one in (vocabulary, again)):
        features = sentences.build([("a", "b a")], None, tokenizer, max_seq_length=6)
        assert features.batch(np.array([0]), 6)["segment_ids"].tolist() == [segments]


def test_names_are_in_the_files_beside_it_and_are_kept_with_it(tmp_path):
    made = content(NAMELESS, ("begin A end", "begin A end B end"), model={**CHARACTERS, "unk_token": "what"})
    config = {"mask_token": {"content": "hide", "lstrip": True}, "pad_token": None}
    vocabulary = read(tmp_path, made, special_tokens_map={"pad_token": "fill"}, tokenizer_config=config)
    assert vocabulary.special == ("fill", "what", "begin", "end", "hide")
    (tmp_path / "kept").mkdir()
    for name, text in vocabulary.files().items():
        (tmp_path / "kept" / name).write_text(text)
    again = read_tokenizer(tmp_path / "kept" / "tokenizer.json")
    assert (again.special, again.fingerprint) == (vocabulary.special, vocabulary.fingerprint)
    plain = read(tmp_path, made, tokenizer_config={"pad_token": "fill"}, special_tokens_map={})
    assert plain.fingerprint != vocabulary.fingerprint


def test_bytes_need_no_unknown_token_and_a_mask_only_where_one_is_asked_for(tmp_path):
    vocabulary = read(tmp_path, content(("[PAD]", "[CLS]", "[SEP]"), ONE, model=CHARACTERS))
    assert (vocabulary.unk_id, vocabulary.special[1], vocabulary.special[4]) == (-1, "", "")
    with pytest.raises(VocabularyError, match=r"tokenizer\.json: has no mask token, and masks are needed here"):
        _ = vocabulary.mask_id


def test_tokens_of_other_files_are_added_and_stay_whole(tmp_path):
    decoder = {"7": {"content": "ab", "special": False, "normalized": False}}
    vocabulary = read(tmp_path, content(BERT, ONE), tokenizer_config={"added_tokens_decoder": decoder}, added_tokens={"bba": 8})
    assert tokenizer_of(vocabulary, lower_case=False).ids("a ab bba") == [5, 7, 8]
    assert library.LibraryVocabulary(vocabulary.to_text()).fingerprint == vocabulary.fingerprint
    line = refusal(VocabularyError, read, tmp_path, content(BERT, ONE), added_tokens={"bba": 9})
    assert "the added token 'ab' has the id 7" not in line
    assert "the added token 'bba' has the id 9, but the tokenizer ends at 7" in line


def test_blanks_and_line_breaks_may_be_tokens_of_their_own(tmp_path):
    """ModernBERT and Gemma have such, in both files."""
    tokens = (*BERT, "  ", "\n")
    decoder = {str(number): {"content": token, **SWITCHES} for number, token in enumerate(tokens)}
    added = {"9": {"content": "\n\n", "special": False, "normalized": False}}
    vocabulary = read(tmp_path, content(tokens, ONE), tokenizer_config={"added_tokens_decoder": {**decoder, **added}})
    assert tokenizer_of(vocabulary, lower_case=False).ids("a  b\na\n\n") == [7, 5, 8, 6, 7, 9]


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (("[CLS] A [SEP]", "[CLS] A [SEP] B"), "puts 2 special tokens around a text and 2 around a pair; only CLS A SEP, and"),
        (("A [SEP] [CLS]", "A [SEP] B [SEP] [CLS]"), "puts 2 special tokens around a text and 3 around a pair"),
        (("[CLS] A [SEP]", "[CLS] B [SEP] A [SEP]"), "puts 2 special tokens around a text and 3 around a pair"),
        (("[CLS] A [SEP]", "[CLS] A [SEP] B [MASK]"), "puts 2 special tokens around a text and 3 around a pair"),
        (("[CLS]:1 A [SEP]", "[CLS]:1 A [SEP] B [SEP]"), "gives the segments [0, 1]; known are 0, and 0 or 1 of a second"),
        (("[CLS] A [SEP]", "[CLS] A [SEP] B:2 [SEP]:2"), "gives the segments [0, 2]; known are"),
    ],
)
def test_other_templates_are_one_line(template, said, tmp_path):
    assert said in refusal(VocabularyError, read, tmp_path, content(BERT, template))


@pytest.mark.parametrize(
    ("beside", "said"),
    [
        ({"tokenizer_config": {"mask_token": 3}}, "tokenizer_config.json: mask_token is 3, expected a token"),
        ({"special_tokens_map": {"pad_token": {"content": 1}}}, "special_tokens_map.json: pad_token is 1, expected a token"),
        ({"special_tokens_map": []}, "special_tokens_map.json: expected a JSON object"),
        ({"tokenizer_config": {"added_tokens_decoder": {"x": 1}}}, "an added token is None, expected one with content and id"),
        ({"added_tokens": {"x": "7"}}, "the added token 'x' has the id '7', expected a whole number"),
    ],
)
def test_other_types_beside_it_are_one_line(beside, said, tmp_path):
    assert said in refusal(VocabularyError, read, tmp_path, content(BERT, ONE), **beside)


def test_a_template_of_tokens_that_are_not_there_is_one_line(tmp_path):
    made = content(BERT, ONE)
    made["post_processor"]["special_tokens"]["[SEP]"]["ids"] = [99]
    assert "puts a token 99 around texts, but there are 7 pieces" in refusal(VocabularyError, read, tmp_path, made)


def test_a_model_that_cannot_split_a_text_is_one_line(tmp_path):
    made = content(("[PAD]", "[CLS]", "[SEP]"), ONE)  # WordPiece without [UNK]
    assert "not a tokenizer that `tokenizers` reads: " in refusal(VocabularyError, read, tmp_path, made)
