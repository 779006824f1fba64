from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import huggingface_classes
from bert_tf.checkpoints.huggingface import read_weights
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.export.huggingface import writer
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.export.models import RECORDS, exported

ARCHITECTURES = {
    "classification": "BertForSequenceClassification",
    "regression": "BertForSequenceClassification",
    "multi_label": "BertForSequenceClassification",
    "choice": "BertForMultipleChoice",
    "tags": "BertForTokenClassification",
    "span": "BertForQuestionAnswering",
    "similarity": "BertModel",
    "contrastive": "BertModel",
}


def written(folder, kind, **changed):
    model, target = exported(folder / "run", kind, **changed), folder / "out"
    target.mkdir()
    writer.write(model, target)
    return model, target


def read_json(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("kind", RECORDS)
def test_weights_and_configuration_are_those_of_the_model(tmp_path, kind):
    model, folder = written(tmp_path, kind)
    config = read_json(folder / "config.json")
    assert config["architectures"] == [ARCHITECTURES[kind]]
    tensors, reader = safetensors.numpy.load_file(folder / "model.safetensors"), CheckpointReader(model.trained.prefix)
    prefix = "" if kind in ("similarity", "contrastive") else "bert."
    query = tensors[f"{prefix}encoder.layer.0.attention.self.query.weight"]
    np.testing.assert_array_equal(query, reader["bert/encoder/layer_0/attention/self/query/kernel"].T)
    assert BertConfig.from_json_file(folder / "config.json") == model.trained.config


@pytest.mark.parametrize(
    ("kind", "name", "published"),
    [
        ("classification", "classifier", "output_"),
        ("multi_label", "classifier", "output_"),
        ("choice", "classifier", "output_"),
        ("tags", "classifier", "output_"),
        ("span", "qa_outputs", "cls/squad/output_"),
    ],
)
def test_the_head_has_the_names_of_its_class(tmp_path, kind, name, published):
    model, folder = written(tmp_path, kind)
    tensors, reader = safetensors.numpy.load_file(folder / "model.safetensors"), CheckpointReader(model.trained.prefix)
    np.testing.assert_array_equal(tensors[f"{name}.weight"], reader[f"{published}weights"])
    np.testing.assert_array_equal(tensors[f"{name}.bias"], reader[f"{published}bias"])


def test_comes_back_as_the_same_encoder(tmp_path):
    model, folder = written(tmp_path, "classification")
    reader = CheckpointReader(model.trained.prefix)
    for name, array in read_weights(folder / "model.safetensors", model.trained.config).items():
        np.testing.assert_array_equal(array, reader[name])


def test_labels_have_their_numbers(tmp_path):
    config = read_json(written(tmp_path, "tags")[1] / "config.json")
    assert config["id2label"] == {"0": "O", "1": "B-PER", "2": "I-PER"}
    assert config["label2id"] == {"O": 0, "B-PER": 1, "I-PER": 2}


@pytest.mark.parametrize("kind", ["regression", "multi_label", "classification"])
def test_says_what_kind_of_labels_there_are(tmp_path, kind):
    expected = {"regression": "regression", "multi_label": "multi_label_classification"}.get(
        kind, "single_label_classification"
    )
    assert read_json(written(tmp_path, kind)[1] / "config.json")["problem_type"] == expected


@pytest.mark.parametrize(("activation", "name"), [("gelu_erf", "gelu"), ("gelu_tanh", "gelu_pytorch_tanh"), ("relu", "relu")])
def test_activations_have_the_names_of_transformers(tmp_path, activation, name):
    _, folder = written(tmp_path, "classification", config={"hidden_act": activation})
    assert read_json(folder / "config.json")["hidden_act"] == name


def test_its_tokenizer_cuts_texts_alike(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model, folder = written(tmp_path, "classification")
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ours = WordPieceTokenizer(model.trained.vocabulary, lower_case=True)
    for text in ("The old rains, over bread.", "Wínd\u00a0and SALT!", "unknown " * 3, "x" * 150, ""):
        found = theirs.encode(text, "red soup")
        first, second = ([piece.token for piece in ours.tokenize(side)] for side in (text, "red soup"))
        assert found.tokens == ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
        assert found.type_ids == [0] * (2 + len(first)) + [1] * (1 + len(second))


def test_vectors_have_the_modules_of_sentence_transformers(tmp_path):
    _, folder = written(tmp_path, "similarity")
    modules = read_json(folder / "modules.json")
    assert [module["type"].rpartition(".")[2] for module in modules] == ["Transformer", "Pooling", "Normalize"]
    pooling = read_json(folder / "1_Pooling" / "config.json")
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]


def test_other_models_have_no_such_modules(tmp_path):
    assert not (written(tmp_path, "classification")[1] / "modules.json").exists()


def test_the_card_has_metrics_of_this_step_alone(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    split = {"accuracy": 0.75, "intervals_95": {"accuracy": [0.5, 0.9]}, "examples": 8}
    (run / "eval_results.json").write_text(json.dumps({"global_step": 7, "splits": {"dev": split}}))
    _, folder = written(tmp_path, "classification")
    assert "| dev | accuracy | 0.7500 | 0.5000 to 0.9000 | 8 |" in (folder / "README.md").read_text()
    (run / "eval_results.json").write_text(json.dumps({"global_step": 8, "splits": {"dev": split}}))
    writer.write(exported(run), folder)
    assert "accuracy" not in (folder / "README.md").read_text()


def test_the_card_has_each_setting_that_decides_what_is_learned(tmp_path):
    model, folder = exported(tmp_path / "run"), tmp_path / "out"
    folder.mkdir()
    settings = {"class_weights": "1.0,2.0,9.0", "freeze": ["embeddings", "0"], "temperature": 0.05, "ema": None}
    record = {**model.trained.record, **settings, "task_name": "custom"}
    writer.write(dataclasses.replace(model, trained=dataclasses.replace(model.trained, record=record)), folder)
    section = (folder / "README.md").read_text().partition("## Training\n")[2].split("\n")
    assert [line for line in section if line] == [
        "- class_weights: 1.0,2.0,9.0",
        "- freeze: embeddings, 0",
        "- temperature: 0.05",
    ]


def test_transformers_reads_the_rules_and_makes_segments(tmp_path):
    config = read_json(written(tmp_path, "classification")[1] / "tokenizer_config.json")
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"  # others make rules of their own
    assert "token_type_ids" in config["model_input_names"]
    assert config["split_special_tokens"]


@pytest.mark.parametrize("found", [None, {"accuracy": None}, {"accuracy": "high"}, {"accuracy": 0.5, "intervals_95": [1]}])
def test_the_card_leaves_out_metrics_that_are_no_numbers(tmp_path, found):
    run = exported(tmp_path / "run").trained.folder
    (run / "eval_results.json").write_text(json.dumps({"global_step": 7, "splits": {"dev": found}}))
    (tmp_path / "out").mkdir()
    writer.write(exported(tmp_path / "run"), tmp_path / "out")
    assert "Metrics" not in (tmp_path / "out" / "README.md").read_text()


def test_the_card_says_nothing_of_where_it_was_made(tmp_path):
    card = (written(tmp_path, "span")[1] / "README.md").read_text()
    assert str(tmp_path) not in card
    assert re.search(r"vocabulary: sha256 `[0-9a-f]{64}`", card)


def test_writes_the_same_bytes_each_time(tmp_path):
    first, second = (written(tmp_path / name, "classification")[1] for name in ("a", "b"))
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert [(first / name).read_bytes() for name in names] == [(second / name).read_bytes() for name in names]


def test_a_head_that_transformers_has_not_is_named():
    with pytest.raises(FlagError, match="kind of head of transformers 'toy'.*--format=saved_model"):
        huggingface_classes.of("toy")
