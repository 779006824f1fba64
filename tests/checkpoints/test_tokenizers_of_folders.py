"""Folders in Hugging Face's layout whose tokenizer is not a vocab.txt."""

import json

import pytest

from bert_tf.checkpoints import huggingface
from bert_tf.errors import CheckpointError
from bert_tf.tokenization.tokenizer import read_tokenizer
from tests.extensions.sentencepiece import test_unigram
from tests.huggingface import write_folder
from tests.tokenization.test_roles import BERT, ONE, content

pytest.importorskip("tokenizers")


@pytest.fixture
def folder(tmp_path):
    folder = write_folder(tmp_path / "hf")
    (folder / "vocab.txt").unlink()
    return folder


def test_bert_may_have_only_a_tokenizer_json(folder, tmp_path):
    text = json.dumps(content(BERT, ONE))
    (folder / "tokenizer.json").write_text(text)
    made = huggingface.converted(folder, tmp_path / "out")
    assert (made / "tokenizer.json").read_text() == text
    assert not (made / "vocab.txt").exists()
    (folder / "special_tokens_map.json").write_text(json.dumps({"mask_token": "[UNK]"}))
    again = huggingface.converted(folder, tmp_path / "out")
    assert again != made
    assert read_tokenizer(again / "tokenizer.json").special[4] == "[UNK]"


def test_a_sentencepiece_model_becomes_a_tokenizer_json(folder, tmp_path):
    vocabulary = read_tokenizer(test_unigram.write(folder, "albert cased"))
    huggingface.convert(folder, tmp_path / "tf")
    made = read_tokenizer(tmp_path / "tf" / "tokenizer.json")
    assert (made.fingerprint, made.special) == (vocabulary.fingerprint, vocabulary.special)
    assert not (tmp_path / "tf" / "spiece.model").exists()


def test_a_folder_without_any_is_refused(folder, tmp_path):
    with pytest.raises(CheckpointError, match=r"hf: no vocab\.txt beside the weights$"):
        huggingface.convert(folder, tmp_path / "tf")
