import dataclasses
import json
import re

import numpy as np
import pytest
import safetensors.numpy

from bert_tf.checkpoints import huggingface_export
from bert_tf.checkpoints.huggingface import read_weights
from bert_tf.checkpoints.reader import CheckpointReader
from bert_tf.config import BertConfig
from bert_tf.errors import FlagError
from bert_tf.extensions.export import huggingface
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from tests.extensions.export.models import exported

pytestmark = pytest.mark.versions

HEADS = {  # by kind: class, names of the head there and here, kind of labels
    "classification": ("BertForSequenceClassification", "classifier", "output_", "single_label_classification"),
    "regression": ("BertForSequenceClassification", "classifier", "output_", "regression"),
    "multi_label": ("BertForSequenceClassification", "classifier", "output_", "multi_label_classification"),
    "choice": ("BertForMultipleChoice", "classifier", "output_", None),
    "tags": ("BertForTokenClassification", "classifier", "output_", None),
    "span": ("BertForQuestionAnswering", "qa_outputs", "cls/squad/output_", None),
    "similarity": ("BertModel", None, None, None),
    "contrastive": ("BertModel", None, None, None),
}


def written(folder, kind="classification", **changed):
    model, target = exported(folder / "run", kind, **changed), folder / "out"
    target.mkdir()
    huggingface.write(model, target)
    return model, target


def card(folder):
    return (folder / "README.md").read_text()


def read_json(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize("kind", HEADS)
def test_weights_and_configuration_are_those_of_the_model(tmp_path, kind):
    architecture, head, published, problem = HEADS[kind]
    model, folder = written(tmp_path, kind)
    config = read_json(folder / "config.json")
    assert (config["architectures"], config.get("problem_type")) == ([architecture], problem)
    assert BertConfig.from_json_file(folder / "config.json") == model.trained.config
    tensors, reader = safetensors.numpy.load_file(folder / "model.safetensors"), CheckpointReader(model.trained.prefix)
    query = tensors["bert.encoder.layer.0.attention.self.query.weight"[0 if head else len("bert.") :]]
    np.testing.assert_array_equal(query, reader["bert/encoder/layer_0/attention/self/query/kernel"].T)
    for name in ("weight", "bias") if head else ():
        np.testing.assert_array_equal(tensors[f"{head}.{name}"], reader[published + {"weight": "weights"}.get(name, name)])
    for name, array in read_weights(folder / "model.safetensors", model.trained.config).items():  # comes back as it was
        if kind not in ("tags", "span") or not name.startswith("bert/pooler/"):  # which transformers has not for these
            np.testing.assert_array_equal(array, reader[name])
    if kind == "tags":
        assert config["id2label"] == {"0": "O", "1": "B-PER", "2": "I-PER"}
        assert config["label2id"] == {"O": 0, "B-PER": 1, "I-PER": 2}
    assert (folder / "modules.json").exists() == (head is None)


def test_the_activation_has_the_name_of_transformers(tmp_path):
    _, folder = written(tmp_path, config={"hidden_act": "relu"})  # gelu_tanh: tests/checkpoints
    assert read_json(folder / "config.json")["hidden_act"] == "relu"
    with pytest.raises(FlagError, match="kind of head of transformers 'toy'.*--format=saved_model"):
        huggingface_export.class_of("toy")


def test_its_tokenizer_cuts_texts_alike_and_makes_segments(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    model, folder = written(tmp_path)
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    ours = WordPieceTokenizer(model.trained.vocabulary, lower_case=True)
    for text in ("The old rains, over bread.", "Wínd\u00a0and SALT!", "unknown " * 3, "x" * 150, ""):
        encoding = theirs.encode(text, "red soup")
        first, second = ([piece.token for piece in ours.tokenize(side)] for side in (text, "red soup"))
        assert encoding.tokens == ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
        assert encoding.type_ids == [0] * (2 + len(first)) + [1] * (1 + len(second))
    config = read_json(folder / "tokenizer_config.json")
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast"  # others make rules of their own
    assert "token_type_ids" in config["model_input_names"]
    assert config["split_special_tokens"]


def test_vectors_have_the_modules_of_sentence_transformers(tmp_path):
    _, folder = written(tmp_path, "similarity")
    modules = read_json(folder / "modules.json")
    assert [module["type"].rpartition(".")[2] for module in modules] == ["Transformer", "Pooling", "Normalize"]
    pooling = read_json(folder / "1_Pooling" / "config.json")
    assert [name for name, value in pooling.items() if value is True] == ["pooling_mode_mean_tokens"]


def test_the_card_has_each_setting_that_decides_what_is_learned(tmp_path):
    model, folder = exported(tmp_path / "run"), tmp_path / "out"
    folder.mkdir()
    settings = {"class_weights": "1.0,2.0,9.0", "freeze": ["embeddings", "0"], "temperature": 0.05, "ema": None}
    record = {**model.trained.record, **settings, "task_name": "custom"}
    huggingface.write(dataclasses.replace(model, trained=dataclasses.replace(model.trained, record=record)), folder)
    section = card(folder).partition("## Training\n")[2].split("\n")
    assert [line for line in section if line.startswith("- ")] == [
        "- `class_weights`: 1.0,2.0,9.0",
        "- `freeze`: embeddings, 0",
        "- `temperature`: 0.05",
    ]


@pytest.mark.parametrize("kind", [*HEADS, "pretraining"])
def test_the_hub_reads_the_metadata_of_the_card(tmp_path, kind):
    hub = pytest.importorskip("huggingface_hub")
    record = {"labels": [], "nsp": True, "sampled_softmax": 0} if kind == "pretraining" else None
    (tmp_path / "run").mkdir()
    name = {"regression": "pearson", "pretraining": "masked_lm_accuracy"}.get(kind, "accuracy")
    split = {name: 0.75, "examples": 8}
    (tmp_path / "run" / "eval_results.json").write_text(json.dumps({"global_step": 7, "splits": {"dev": split}}))
    _, folder = written(tmp_path, kind, record=record, license="mit", language="en")
    data = hub.ModelCard.load(folder / "README.md").data
    library = "sentence-transformers" if kind in ("similarity", "contrastive") else "transformers"
    assert (data.library_name, data.license, data.language) == (library, "mit", ["en"])
    for result in data.eval_results or ():
        assert (result.dataset_split, result.metric_value) == ("dev", 0.75)


def test_writes_the_same_bytes_each_time_that_do_not_say_where(tmp_path):
    first, second = (written(tmp_path / name)[1] for name in ("a", "b"))
    assert str(tmp_path) not in card(first)
    assert re.search(r"vocabulary: sha256 `[0-9a-f]{64}`", card(first))
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert [(first / name).read_bytes() for name in names] == [(second / name).read_bytes() for name in names]
