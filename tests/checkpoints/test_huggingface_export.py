import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import huggingface, huggingface_export
from bert_tf.checkpoints.names import pretraining_shapes
from bert_tf.config import BertConfig
from bert_tf.head_spec import CHOICE, MULTI_LABEL, PRETRAINING, SPAN, TAGS
from bert_tf.tokenization.vocabulary import SPECIAL_TOKENS
from tests.tiny import random_weights

pytestmark = pytest.mark.versions

CONFIG = BertConfig.tiny()
WEIGHTS = random_weights(CONFIG)
CLASSIFIER = {"output_weights": np.ones([3, 8], np.float32), "output_bias": np.zeros(3, np.float32)}
ANSWERS = {"cls/squad/output_weights": np.ones([2, 8], np.float32), "cls/squad/output_bias": np.zeros(2, np.float32)}
RANDOM = np.random.default_rng(2)
PRETRAINING_HEAD = {name: RANDOM.normal(size=shape).astype(np.float32) for name, shape in pretraining_shapes(CONFIG).items()}


@pytest.mark.parametrize(
    ("weights", "kind", "architecture"),
    [
        ({}, None, "BertModel"),
        (CLASSIFIER, None, "BertForSequenceClassification"),
        (CLASSIFIER, MULTI_LABEL, "BertForSequenceClassification"),
        (CLASSIFIER, TAGS, "BertForTokenClassification"),
        (CLASSIFIER, CHOICE, "BertForMultipleChoice"),
        (ANSWERS, None, "BertForQuestionAnswering"),
        (ANSWERS, SPAN, "BertForQuestionAnswering"),
        ({"cls/predictions/output_bias": np.zeros(32, np.float32)}, None, "BertForMaskedLM"),
        (PRETRAINING_HEAD, None, "BertForPreTraining"),
        (PRETRAINING_HEAD, PRETRAINING, "BertForPreTraining"),
    ],
)
def test_the_class_is_that_of_the_head(tmp_path, weights, kind, architecture):
    names = huggingface_export.write(
        tmp_path, {**WEIGHTS, **weights}, CONFIG, architecture=huggingface_export.guessed(weights, kind)
    )
    assert json.loads((tmp_path / "config.json").read_text())["architectures"] == [architecture]
    word = names["bert/embeddings/word_embeddings"]
    assert word == ("" if architecture == "BertModel" else "bert.") + "embeddings.word_embeddings.weight"
    assert set(names) == {*WEIGHTS, *weights}


def test_labels_and_activation_have_the_names_that_transformers_has(tmp_path):
    huggingface_export.write(tmp_path, {**WEIGHTS, **CLASSIFIER}, CONFIG, labels=("no", "maybe", "yes"))
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["id2label"] == {"0": "no", "1": "maybe", "2": "yes"}
    assert config["label2id"] == {"no": 0, "maybe": 1, "yes": 2}
    assert config["hidden_act"] == "gelu_pytorch_tanh"  # of published checkpoints: the tanh form


@pytest.mark.parametrize(
    ("written", "read"), [("12", 12), *((text, CONFIG.max_position_embeddings) for text in ("65", f"1{'0' * 30}", '"x"'))]
)
@pytest.mark.parametrize("labels", [["no", "maybe", "yes"], None])
def test_a_fine_tuned_folder_is_read_back_with_its_labels_and_length(tmp_path, written, read, labels):
    folder = tmp_path / "folder"
    folder.mkdir()
    huggingface_export.write(folder, {**WEIGHTS, **CLASSIFIER}, CONFIG, labels=labels or ())
    assert (folder / "model.safetensors").stat().st_mode == (folder / "config.json").stat().st_mode
    pieces = [*SPECIAL_TOKENS, *(f"w{number}" for number in range(CONFIG.vocab_size - len(SPECIAL_TOKENS)))]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (folder / "tokenizer_config.json").write_text(f'{{"model_max_length": {written}}}')
    huggingface.convert(folder, tmp_path / "converted")
    record = json.loads((tmp_path / "converted" / "run_config.json").read_text())["training"]
    assert record.get("labels") == labels
    assert record["max_seq_length"] == read


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("electra", {"embedding_size": CONFIG.hidden_size}),
        ("albert", {"embedding_size": CONFIG.hidden_size}),
        ("modernbert", {"embedding_dropout": CONFIG.hidden_dropout_prob}),
    ],
)
def test_keys_whose_defaults_there_are_others_are_written(tmp_path, kind, written):
    huggingface_export.write(tmp_path, {}, dataclasses.replace(CONFIG, model_type=kind, attention_window=4))
    config = json.loads((tmp_path / "config.json").read_text())
    assert {name: config[name] for name in written} == written
    BertConfig.from_json_file(tmp_path / "config.json")


def test_names_of_no_place_there_are_left_out(tmp_path):
    names = huggingface_export.write(tmp_path, {**WEIGHTS, "head/own": np.ones(2), "global_step": np.int64(3)}, CONFIG)
    assert set(names) == set(WEIGHTS)
    assert len(safetensors.numpy.load_file(tmp_path / "model.safetensors")) == len(WEIGHTS)


def test_what_is_written_is_read_back(tmp_path):
    weights = {**WEIGHTS, **PRETRAINING_HEAD}
    huggingface_export.write(tmp_path, weights, CONFIG)
    assert BertConfig.from_json_file(tmp_path / "config.json") == CONFIG
    read = huggingface.read_weights(tmp_path / "model.safetensors", CONFIG)
    assert read.keys() == weights.keys()
    assert all((read[name] == weight).all() for name, weight in weights.items())
