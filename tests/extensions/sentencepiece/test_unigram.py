"""SentencePiece models without a tokenizer.json.

`benchmarks/peers/write_sentencepiece_oracle.py` wrote sentencepiece_oracle.json.
"""

import base64
import json
import random
from pathlib import Path

import pytest

from bert_tf.errors import VocabularyError
from bert_tf.extensions.sentencepiece import model_file
from bert_tf.features import sentences
from bert_tf.tokenization.tokenizer import file_in, read_tokenizer, tokenizer_of
from tests.features.test_sentences import rows
from tests.tasks.refusals import refusal

pytest.importorskip("tokenizers")

ORACLE = json.loads(Path(__file__).with_name("sentencepiece_oracle.json").read_text(encoding="utf-8"))
FOLDERS = ORACLE["folders"]


def write(folder: Path, name: str, **files) -> Path:
    file, model = FOLDERS[name]["model"]
    (folder / file).write_bytes(base64.b64decode(model))
    for beside, text in {**FOLDERS[name]["files"], **files}.items():
        (folder / beside).write_text(text)
    return folder / file


@pytest.mark.parametrize("name", FOLDERS)
def test_ids_of_texts_and_pairs_are_those_of_transformers(name, tmp_path):
    vocabulary = read_tokenizer(file_in(write(tmp_path, name).parent, "tokenizer.json"))
    tokenizer = tokenizer_of(vocabulary, lower_case=False)
    texts = ORACLE["texts"]
    assert rows(sentences.build([(text, None) for text in texts], None, tokenizer, max_seq_length=999)) == FOLDERS[name]["ids"]
    pairs = [(text, ids) for text, ids in zip(texts, FOLDERS[name]["pairs"]) if tokenizer.ids(text)]
    built = sentences.build([(text, text) for text, _ in pairs], None, tokenizer, max_seq_length=1999)
    assert rows(built) == [ids for _, ids in pairs]


def test_the_file_that_is_made_gives_the_same_ids_and_fingerprint(tmp_path):
    vocabulary = read_tokenizer(write(tmp_path, "albert"))
    assert (tmp_path / "spiece.model").is_file()
    for name, text in vocabulary.files().items():
        (tmp_path / name).write_text(text)
    again = read_tokenizer(tmp_path / "tokenizer.json")
    assert again.fingerprint == vocabulary.fingerprint
    assert tokenizer_of(again, lower_case=False).ids("the mill") == tokenizer_of(vocabulary, lower_case=False).ids("the mill")


def test_googles_file_of_albert_is_read_by_its_name(tmp_path):
    model = write(tmp_path, "albert").read_bytes()
    (tmp_path / "google").mkdir()
    fingerprints = set()
    for name in ("30k-clean.model", "spiece.model"):
        path = tmp_path / "google" / name
        path.write_bytes(model)
        assert file_in(path.parent, "tokenizer.json") == path
        fingerprints.add(read_tokenizer(path).fingerprint)
        path.unlink()
    assert len(fingerprints) == 1


def test_added_tokens_have_the_ids_of_their_file(tmp_path):
    pieces = len(model_file.read_model(write(tmp_path, "deberta")).pieces)
    path = write(tmp_path, "deberta", **{"added_tokens.json": json.dumps({"mill": pieces, "[MASK]": pieces + 1})})
    vocabulary = read_tokenizer(path)
    assert (vocabulary.mask_id, len(vocabulary)) == (pieces + 1, pieces + 2)
    assert pieces in tokenizer_of(vocabulary, lower_case=False).ids("the mill")
    (tmp_path / "added_tokens.json").write_text(json.dumps({"[MASK]": 7}))
    assert "the added token '[MASK]' has the id 7 there, but would get" in refusal(VocabularyError, read_tokenizer, path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"tokenizer_config.json": '{"do_lower_case": 1}'},
            "tokenizer_config.json: do_lower_case is 1, expected true or false",
        ),
        (
            {"tokenizer_config.json": '{"tokenizer_class": "T5Tokenizer"}'},
            "'T5' is no known kind of tokenizer (DebertaV2Tokenizer",
        ),
    ],
)
def test_what_files_beside_it_say_wrongly_is_one_line(files, said, tmp_path):
    assert said in refusal(VocabularyError, read_tokenizer, write(tmp_path, "albert", **files))


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it has no pieces"),
        (b"\x0a\x05\x0a\x01a", "a field of 5 bytes, but 3 are left"),
        (b"\x0a\x03\x0a\x01\xff", "invalid start byte"),
        (b"\x0a\x03\x0a\x01a\x12\x02\x18\x02", "its model is of type 2, and only Unigram (1) is read; save its tokenizer.json"),
        (b"\x0a\x03\x0a\x01a\x12\x03\xc0\x02\x01", "the unknown piece is 1, but there are 1"),
        (b"\x0a\x02\x08\x01", "a number instead of a text"),
        (b"\x0a\x08\x0a\x01a\x15\x00\x00\x80\x7f", "the score of a piece is not finite"),
        (b"\x0b", "a field of type 3"),
        (b"\x80" * 11, "a number of more than 64 bits"),
        (b"\x08\x80", "it ends within a number"),
    ],
)
def test_damaged_models_are_one_line(data, said, tmp_path):
    (tmp_path / "spm.model").write_bytes(data)
    assert said in refusal(VocabularyError, read_tokenizer, tmp_path / "spm.model")


def test_any_change_of_a_byte_is_read_or_refused(tmp_path):
    path, draw = write(tmp_path, "xlm-roberta"), random.Random(0)
    data = path.read_bytes()
    refused = 0
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(draw.randint(1, 4)):
            changed[draw.randrange(len(data))] = draw.randrange(256)
        path.write_bytes(changed[: draw.choice([len(data), draw.randrange(len(data))])])
        try:
            model_file.read_model(path)
        except VocabularyError:
            refused += 1
    assert refused > 100
