"""Heads of masked words beside transformers: folders in its layout, read, computed and written back.

`benchmarks/peers/write_encoders_oracle.py` wrote masked_words_oracle.npz.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from scipy import special

from bert_tf.checkpoints import huggingface, huggingface_export
from bert_tf.checkpoints.names import POSITIONS
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import FlagError
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.fields import GLOBAL_ROWS, GLOBAL_WEIGHT, INPUTS
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import LossOptions, part_of_mean
from tests import tokenizer_files
from tests.graphs import evaluate
from tests.tiny import held

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
ORACLE = dict(np.load(Path(__file__).with_name("masked_words_oracle.npz")))
KINDS = ("distilbert", "roberta", "mpnet", "deberta-v2", "modernbert")
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(18))]
SPEC = HeadSpec(2, PRETRAINING, (("next_sentence", False),))
HEAD = registry.make_head(SPEC)
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)


def weights_of(kind):
    prefix = f"{kind}/weight/"
    return {name[len(prefix) :]: values for name, values in ORACLE.items() if name.startswith(prefix)}


def write_folder(folder, kind, names=lambda name: name):
    folder.mkdir()
    (folder / "config.json").write_text(str(ORACLE[f"{kind}/config"]))
    is_library = ENCODERS[kind].vocabulary == "tokenizer.json"
    text = tokenizer_files.byte_level() if is_library else "\n".join(TOKENS) + "\n"
    (folder / ENCODERS[kind].vocabulary).write_text(text)
    weights = {names(name): values for name, values in weights_of(kind).items()}
    safetensors.numpy.save_file(weights, folder / "model.safetensors")
    return folder


def read(folder):
    huggingface.convert(folder, folder / "converted")
    return BertConfig.from_json_file(folder / "converted" / "bert_config.json"), held(folder / "converted" / "bert_model.ckpt")


@pytest.fixture(scope="module", params=KINDS)
def model(request, tmp_path_factory):
    """Kind, configuration and weights as they were read."""
    return (request.param, *read(write_folder(tmp_path_factory.mktemp("words") / request.param, request.param)))


def batch():
    """The batch with the labelled places of each row."""
    labels = ORACLE["labels"]
    slots = (labels >= 0).sum(axis=1).astype(np.int32)
    positions, ids = np.zeros([len(slots), slots.max()], np.int32), np.zeros([len(slots), slots.max()], np.int32)
    for row, of_row in enumerate(labels):
        (places,) = np.nonzero(of_row >= 0)
        positions[row, : len(places)], ids[row, : len(places)] = places, of_row[places]
    of_rows = {field.name: ORACLE[field.name].astype(np.int32) for field in INPUTS}
    of_places = {"slots": slots, "masked_lm_positions": positions, "masked_lm_ids": ids}
    sums = {GLOBAL_WEIGHT: np.int32(slots.sum()), GLOBAL_ROWS: np.int32(len(slots))}
    return {**of_rows, **of_places, **sums}


def mean_loss(config, execution):
    """Outputs, and the mean loss of all places."""
    features = {name: tf.constant(value) for name, value in batch().items()}
    outputs = compute_outputs(Model(config, SPEC), HEAD, features, execution)
    return outputs, part_of_mean(HEAD.losses(outputs, features, LossOptions()), features[GLOBAL_WEIGHT])


@pytest.mark.parametrize("execution", [PUBLISHED, Execution()], ids=["published", "packed"])
def test_words_are_as_probable(model, execution):
    kind, config, weights = model
    outputs, loss = evaluate(lambda: mean_loss(config, execution), weights)
    labels, slots = ORACLE["labels"], batch()["slots"]
    expected = special.log_softmax(ORACLE[f"{kind}/logits"].astype(np.float64), axis=-1)[labels >= 0]  # [P, V]
    real = np.arange(slots.max()) < slots[:, None]
    of_labels = expected[np.arange(len(expected)), labels[labels >= 0]]
    np.testing.assert_allclose(outputs["masked_lm_log_probs"][real], of_labels, atol=1e-5)
    best = -np.sort(-expected, axis=-1)[:, : outputs["masked_lm_top_log_probs"].shape[-1]]
    np.testing.assert_allclose(outputs["masked_lm_top_log_probs"][real], best, atol=1e-5)
    assert loss == pytest.approx(-of_labels.mean(), abs=1e-5)


def test_gradients(model):
    kind, config, weights = model

    def build():
        _, loss = mean_loss(config, Execution())
        variables = tf1.trainable_variables()
        pairs = zip(variables, tf.gradients(loss, variables))
        return {variable.op.name: tf.convert_to_tensor(gradient) for variable, gradient in pairs if gradient is not None}

    pairs = {pair.published: (name, pair) for name, pair in huggingface.pairs_in(config, weights_of(kind))}
    actual = evaluate(build, {name: value for name, value in weights.items() if name in pairs})
    assert {pairs[name][0] for name in actual} == {name.partition("gradient/")[2] for name in ORACLE if f"{kind}/grad" in name}
    for name, gradient in actual.items():
        theirs, pair = pairs[name]
        expected = ORACLE[f"{kind}/gradient/{theirs}"]
        expected = expected.T if pair.transposed else expected
        expected = expected[ENCODERS[kind].first_position :] if name == POSITIONS else expected
        number, parts = pair.share
        np.testing.assert_allclose(gradient, np.split(expected, parts, axis=-1)[number], atol=1e-5, rtol=1e-4, err_msg=name)


def test_what_is_written_is_what_was_read(model, tmp_path):
    kind, config, weights = model
    architecture = huggingface_export.of_encoder(huggingface_export.class_of(PRETRAINING, next_sentence=False), config)
    kept = {name: value for name, value in weights.items() if architecture.has_pooler or "pooler" not in name}
    huggingface_export.write(tmp_path, kept, config, architecture=architecture)
    written, expected = safetensors.numpy.load_file(tmp_path / "model.safetensors"), weights_of(kind)
    assert written.keys() == expected.keys()
    for name, value in expected.items():
        padding = ENCODERS[kind].first_position if "position_embeddings" in name else 0
        np.testing.assert_array_equal(written[name][padding:], value[padding:], err_msg=name)
    values, given = json.loads((tmp_path / "config.json").read_text()), json.loads(str(ORACLE[f"{kind}/config"]))
    assert (values["architectures"], values.get("legacy")) == (given["architectures"], False if kind == "deberta-v2" else None)
    assert "id2label" not in values


def test_deberta_has_an_older_head_with_the_names_of_bert(tmp_path):
    """Its word vectors are those of the inputs, as in transformers since version 5."""

    def older(name):
        name = name.replace("lm_predictions.lm_head.bias", "cls.predictions.bias")
        return name.replace("lm_predictions.lm_head", "cls.predictions.transform")

    config, weights = read(write_folder(tmp_path / "older", "deberta-v2", older))
    _, expected = read(write_folder(tmp_path / "newer", "deberta-v2"))
    assert config.model_type == "deberta-v2"
    assert weights.keys() == expected.keys() > {"cls/predictions/output_bias"}
    assert all(np.array_equal(weights[name], value) for name, value in expected.items())


def test_other_vectors_in_the_head_are_dropped_with_it(tmp_path, caplog):
    folder = write_folder(tmp_path / "hf", "modernbert")
    words = weights_of("modernbert")["model.embeddings.tok_embeddings.weight"]
    for decoder, kept in ((words, True), (words + 1, False)):
        safetensors.numpy.save_file({**weights_of("modernbert"), "decoder.weight": decoder}, folder / "model.safetensors")
        weights = huggingface.read_weights(folder / "model.safetensors", BertConfig.from_json_file(folder / "config.json"))
        assert ("cls/predictions/output_bias" in weights) == kept
    assert "has other word vectors in its head" in caplog.text


def test_a_head_of_next_sentences_is_that_of_bert_alone():
    config = BertConfig.from_dict(json.loads(str(ORACLE["modernbert/config"])))
    with pytest.raises(FlagError, match="a pre-training head of modernbert cannot be exported"):
        huggingface_export.of_encoder(huggingface_export.class_of(PRETRAINING), config)


@pytest.mark.parametrize(("kind", "is_gelu"), [("roberta", True), ("mpnet", True), ("distilbert", False)])
def test_the_head_of_roberta_and_mpnet_has_gelu_whatever_the_layers_have(kind, is_gelu, tmp_path):
    """Feed-forward layers of zeros make no use of an activation."""
    folder = write_folder(tmp_path / kind, kind)
    zeros = {
        name: value * 0 if ".output.dense" in name or "lin2" in name else value for name, value in weights_of(kind).items()
    }
    safetensors.numpy.save_file(zeros, folder / "model.safetensors")
    config, weights = read(folder)
    of_gelu, of_relu = (
        evaluate(lambda config=config: mean_loss(config, PUBLISHED), weights)[0]["masked_lm_log_probs"]
        for config in (config, dataclasses.replace(config, hidden_act="relu"))
    )
    assert np.array_equal(of_gelu, of_relu) == is_gelu


def test_modernbert_may_have_no_bias_of_words(tmp_path):
    folder = write_folder(tmp_path / "hf", "modernbert")
    without = weights_of("modernbert")
    bias = without.pop("decoder.bias")
    safetensors.numpy.save_file(without, folder / "model.safetensors")
    config, weights = read(folder)
    outputs, _ = evaluate(lambda: mean_loss(config, PUBLISHED), weights)
    logits = ORACLE["modernbert/logits"].astype(np.float64) - bias
    best = -np.sort(-special.log_softmax(logits, axis=-1)[ORACLE["labels"] >= 0], axis=-1)
    real = np.arange(batch()["slots"].max()) < batch()["slots"][:, None]
    log_probs = outputs["masked_lm_top_log_probs"][real]
    np.testing.assert_allclose(log_probs, best[:, : log_probs.shape[-1]], atol=1e-5)
