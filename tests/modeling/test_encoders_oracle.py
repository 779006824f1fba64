"""Encoders other than BERT beside transformers: folders in its layout, read, computed and written back.

`benchmarks/peers/write_encoders_oracle.py` wrote encoders_oracle.npz.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf

import bert_tf
from bert_tf.checkpoints import huggingface, huggingface_export
from bert_tf.checkpoints.names import POSITIONS, encoder_shapes
from bert_tf.config import BertConfig
from bert_tf.encoders import ENCODERS
from bert_tf.errors import ConfigError
from bert_tf.estimator import run_folder
from bert_tf.estimator.update import Optimization, Update
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CHOICE, CLASSIFICATION, PRETRAINING, SPAN, TAGS, HeadSpec
from bert_tf.modeling.encoder import bert
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.optimization.optimizers import AdamWConfig
from bert_tf.profiling.forecast import step_peak
from tests import tokenizer_files
from tests.graphs import evaluate
from tests.tiny import held

pytestmark = pytest.mark.versions

tf1 = tf.compat.v1
ORACLE = dict(np.load(Path(__file__).with_name("encoders_oracle.npz")))
HEADS = {
    "SequenceClassification": HeadSpec(3, CLASSIFICATION),
    "TokenClassification": HeadSpec(3, TAGS),
    "QuestionAnswering": HeadSpec(2, SPAN),
    "MultipleChoice": HeadSpec(1, CHOICE),
}
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(18))]
KINDS = ("electra", "distilbert", "roberta", "albert", "mpnet", "deberta-v2", "modernbert")
MODELS = [(kind, head) for kind in KINDS for head in HEADS]
PUBLISHED = Execution(pack_tokens=False, last_layer_cls_only=False, custom_gradients=False)


def weights_of(kind: str, head: str) -> dict[str, np.ndarray]:
    prefix = f"{kind}/{head}/weight/"
    return {name[len(prefix) :]: values for name, values in ORACLE.items() if name.startswith(prefix)}


def write_folder(folder: Path, kind: str, head: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text(str(ORACLE[f"{kind}/{head}/config"]))
    if ENCODERS[kind].vocabulary == "tokenizer.json":
        (folder / "tokenizer.json").write_text(tokenizer_files.byte_level())
    else:
        (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n")
    safetensors.numpy.save_file(weights_of(kind, head), folder / "model.safetensors")
    return folder


def converted(folder: Path, kind: str, head: str = "SequenceClassification") -> tuple[BertConfig, dict[str, np.ndarray]]:
    """Returns configuration and weights of a folder that is written, converted and read."""
    huggingface.convert(write_folder(folder, kind, head), folder / "converted")
    return BertConfig.from_json_file(folder / "converted" / "bert_config.json"), held(folder / "converted" / "bert_model.ckpt")


@pytest.fixture(scope="module", params=MODELS, ids="-".join)
def model(request, tmp_path_factory):
    """Kind, head, configuration and weights as they were read."""
    folder = tmp_path_factory.mktemp("encoders") / "-".join(request.param)
    return (*request.param, *converted(folder, *request.param))


def computed(config, spec, execution):
    head = registry.make_head(spec)
    inputs = {field.name: tf.constant(ORACLE[field.name].astype(np.int32)) for field in INPUTS}
    reads = {field.name: tf.zeros([len(ORACLE["input_ids"])], tf.int32) for field in head.inputs}
    encoded = bert(*inputs.values(), config, execution)
    (output,) = head.compute(encoded, {**inputs, **reads}, config, execution).values()
    return output


def test_logits(model):
    kind, head, config, weights = model
    real = ORACLE["input_mask"] == 1
    for execution in (Execution(), PUBLISHED) if head in ("SequenceClassification", "TokenClassification") else (Execution(),):
        actual = evaluate(lambda execution=execution: computed(config, HEADS[head], execution), weights)
        expected = ORACLE[f"{kind}/{head}/logits"]
        if head in ("TokenClassification", "QuestionAnswering"):
            actual, expected = actual[real], expected[real]
        np.testing.assert_allclose(actual, expected.reshape(actual.shape), atol=1e-5)


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("kind", ["electra", "roberta"])
def test_native_kernels_have_the_epsilon_of_the_configuration(kind, tmp_path):
    """1e-12 of ELECTRA, 1e-5 of RoBERTa."""
    config, weights = converted(tmp_path / "hf", kind)
    logits = evaluate(lambda: computed(config, HEADS["SequenceClassification"], Execution(native=True)), weights)
    np.testing.assert_allclose(logits, ORACLE[f"{kind}/SequenceClassification/logits"], atol=1e-6)  # another changes 6e-6


def test_gradients(model):
    kind, head, config, weights = model
    if head != "SequenceClassification":
        return

    def build():
        logits = computed(config, HEADS[head], Execution())
        variables = tf1.trainable_variables()
        gradients = tf.gradients(logits, variables, tf.constant(ORACLE["upstream"]))
        return {v.op.name: tf.convert_to_tensor(g) for v, g in zip(variables, gradients)}

    actual = evaluate(build, weights)
    architecture = huggingface_export.of_encoder(huggingface_export.class_of(CLASSIFICATION), config)
    theirs = {pair.published: pair for pair in architecture.encoder_names(config)}
    assert actual.keys() == {*theirs, *architecture.weights}
    for name, gradient in actual.items():
        expected = ORACLE[f"{kind}/gradient/{theirs[name].huggingface if name in theirs else architecture.weights[name]}"]
        expected = expected.T if name in theirs and theirs[name].transposed else expected
        expected = expected[ENCODERS[kind].first_position :] if name == POSITIONS else expected
        if name in theirs:
            number, parts = theirs[name].share
            expected = np.split(expected, parts, axis=-1)[number]
        np.testing.assert_allclose(gradient, expected, atol=1e-5, rtol=1e-4, err_msg=name)


def test_what_is_written_is_what_was_read(model, tmp_path):
    kind, head, config, weights = model
    architecture = huggingface_export.of_encoder(huggingface_export.class_of(HEADS[head].kind), config)
    kept = {name: value for name, value in weights.items() if architecture.has_pooler or "pooler" not in name}
    huggingface_export.write(tmp_path, kept, config, architecture=architecture)
    written = safetensors.numpy.load_file(tmp_path / "model.safetensors")
    assert written.keys() == weights_of(kind, head).keys()
    for name, value in weights_of(kind, head).items():
        padding = ENCODERS[kind].first_position if "position_embeddings" in name else 0
        np.testing.assert_array_equal(written[name][padding:], value[padding:], err_msg=name)
        assert written[name].shape == value.shape
        assert not written[name][:padding].any()
    texts = ((tmp_path / "config.json").read_text(), str(ORACLE[f"{kind}/{head}/config"]))
    values, expected = map(json.loads, texts)
    ids = {
        name for name in values if name.endswith("_token_id") and values[name] is None
    }  # of a vocabulary, which is not there
    shared = values.keys() & expected.keys() - {"id2label", "label2id", "problem_type", *ids}
    if expected.get("hidden_act") == "gelu_new":
        expected["hidden_act"] = "gelu_pytorch_tanh"  # the same function
    if "classifier_dropout" in expected and expected["classifier_dropout"] is None:
        expected["classifier_dropout"] = expected["hidden_dropout_prob"]
    assert {name: values[name] for name in shared} == {name: expected[name] for name in shared}
    assert BertConfig.from_dict(values) == config


def test_training_takes_the_same_steps(tmp_path):
    """Of the kind with most variables of its own; gradients of all kinds are above."""
    config, weights = converted(tmp_path / "hf", "deberta-v2")
    losses = ORACLE["deberta-v2/losses"]
    adamw = AdamWConfig(bias_correction=True)
    with tf.Graph().as_default(), tf1.Session() as session:
        update = Update(Optimization(1e-3, warmup_steps=4, total_steps=len(losses), adamw=adamw), defers=False)

        def loss_of(features, number):
            del features, number
            logits = computed(config, HEADS["SequenceClassification"], Execution())
            return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits([2, 0, 1], logits))

        loss, step = update.minimize(loss_of, {})
        session.run(tf1.global_variables_initializer())
        for variable in tf1.trainable_variables():
            variable.load(weights[variable.op.name], session)
        actual = [session.run([loss, step])[0] for _ in losses]
    np.testing.assert_allclose(actual, losses, atol=1e-5)
    assert actual[-1] < actual[0] - 0.4


@pytest.mark.parametrize("kind", ["electra", "distilbert", "roberta"])
def test_a_trained_folder_predicts(kind, tmp_path):
    if kind == "roberta":
        pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path / kind, kind, "SequenceClassification")
    with bert_tf.load(folder) as model:
        (prediction,) = model.predict(["w1 w2 w3"])
    assert list(prediction.probabilities) == ["no", "maybe", "yes"]


@pytest.mark.parametrize("change", [{"id2label": ["no"]}, {"architectures": 3, "problem_type": []}, {"id2label": None}])
def test_labels_that_are_damaged_are_left_out(change, tmp_path):
    folder = write_folder(tmp_path / "hf", "distilbert", "SequenceClassification")
    values = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**values, **change}))
    huggingface.convert(folder, tmp_path / "converted")
    assert run_folder.trained(tmp_path / "converted").keys() == {"max_seq_length"}


def config_of(kind: str, head: str = "QuestionAnswering") -> BertConfig:
    return BertConfig.from_dict(json.loads(str(ORACLE[f"{kind}/{head}/config"])))


def test_words_cannot_be_predicted_from_projected_embeddings():
    with pytest.raises(ConfigError, match="embedding_size 8, hidden_size 12; pre-train another model"):
        registry.make_head(HeadSpec(2, PRETRAINING)).variables(config_of("electra"))


def test_a_forecast_counts_the_variables():
    """At the start, a step has weights and two moments of each."""
    config = config_of("electra", "SequenceClassification")
    sizes = [np.prod(shape) for shape in encoder_shapes(config).values()]
    assert step_peak.forecast(config, 8, 4).weights == 4 * (sum(sizes) + 2 * 12 + 2)
