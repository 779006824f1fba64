"""Training on texts in several windows: what a step computes, and how many there are."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from scipy import special

from bert_tf.config import BertConfig
from bert_tf.estimator.model_fn import Model, compute_outputs
from bert_tf.fields import INPUTS
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.modeling.execution import Execution
from bert_tf.modeling.heads import registry
from bert_tf.modeling.heads.base import LossOptions, part_of_mean
from bert_tf.tasks.base import Limits
from bert_tf.tasks.sentence.family import SentenceFamily
from bert_tf.tasks.sentence.rows import SentenceExample
from bert_tf.tokenization.vocabulary import Vocabulary
from bert_tf.tokenization.wordpiece import WordPieceTokenizer
from bert_tf.training.run import find_loss_options, together
from tests.classifier import mrpc, run
from tests.graphs import evaluate
from tests.integration import families
from tests.integration.families import NEUTRAL, WORDS
from tests.tiny import HALVES, TOKENS, held, random_weights, write_project
from tests.training import reading

tf1 = tf.compat.v1
pytestmark = pytest.mark.versions

CONFIG = BertConfig.tiny(vocab_size=len(TOKENS))
LENGTH = 12  # tokens of a row
TEXTS = [" ".join(np.random.default_rng(words).choice(WORDS, words)) for words in (3, 30, 12, 7, 23)]
FAMILIES = {CLASSIFICATION: SentenceFamily(("0", "1")), REGRESSION: SentenceFamily((), REGRESSION)}
HEADS = {kind: family.head for kind, family in FAMILIES.items()}
LABELS = {CLASSIFICATION: ["1", "0", "0", "1", "1"], REGRESSION: [0.5, -1.0, 2.0, 0.0, 1.5]}


def features_of(kind):
    family, labels = FAMILIES[kind], LABELS[kind]
    examples = [SentenceExample(f"train-{n}", text, None, label) for n, (text, label) in enumerate(zip(TEXTS, labels))]
    tokenizer = WordPieceTokenizer(Vocabulary(TOKENS), lower_case=True)
    return together(family.features(examples, tokenizer, Limits(LENGTH, "windows")), family)


def one_by_one(features, texts, head, kind, weights):
    """Loss of some texts and its gradients by all variables: each window is a batch, what joins them is NumPy's."""
    with tf.Graph().as_default(), tf1.Session() as session:
        inputs = {field.name: tf1.placeholder(tf.int32, [1, None]) for field in INPUTS}
        logits = compute_outputs(Model(CONFIG, HEADS[kind]), head, inputs, Execution(pack_tokens=False))["logits"]
        slopes, variables = tf1.placeholder(tf.float32, [1, None]), tf1.trainable_variables()
        gradients = [tf.convert_to_tensor(value) for value in tf.gradients(logits, variables, slopes)]
        for variable in variables:
            variable.load(weights.get(variable.op.name, np.zeros(variable.shape)), session)
        total, sums = 0.0, [0.0] * len(variables)
        for text in texts:
            rows = features.rows_of(np.array([text]))
            feeds = []
            for row in rows:
                batch = features.batch(np.array([row]), int(features.lengths[row]))
                feeds.append({inputs[name]: batch[name] for name in inputs})
            mean = np.mean([session.run(logits, feed) for feed in feeds], axis=0, dtype=np.float64)
            loss, slope = LOSSES[kind](mean, features.targets["label_ids"][rows[0]])
            total += loss / len(texts)
            parts = [session.run(gradients, {**feed, slopes: slope / (len(rows) * len(texts))}) for feed in feeds]
            sums = [sum(values) for values in zip(sums, *parts)]
        return total, sums


LOSSES = {
    CLASSIFICATION: lambda logits, label: (
        -special.log_softmax(logits)[0, label],
        special.softmax(logits, axis=-1) - np.eye(2)[[label]],
    ),
    REGRESSION: lambda logits, label: ((logits[0, 0] - label) ** 2, 2 * (logits - label)),
}


@pytest.mark.parametrize("packs", [True, False])
@pytest.mark.parametrize("kind", FAMILIES)
def test_the_gradient_of_a_step_is_that_of_the_mean_of_windows_computed_one_by_one(kind, packs):
    family, features = FAMILIES[kind], features_of(kind)
    assert features.unit_rows.tolist() == [1, 5, 2, 1, 4]
    head, texts = registry.make_head(family.head), np.array([1, 3, 2, 4])

    def of_step():
        rows = features.rows_of(texts)
        batch = {name: tf.constant(column) for name, column in features.batch(rows, LENGTH).items()}
        execution = Execution(pack_tokens=packs, custom_gradients=packs)
        outputs = compute_outputs(Model(CONFIG, family.head), head, batch, execution)
        loss = part_of_mean(head.losses(outputs, batch, LossOptions()), tf.constant(features.weight(rows)))
        return loss, [tf.convert_to_tensor(value) for value in tf.gradients(loss, tf1.trainable_variables())]

    of_head = np.random.default_rng(1).normal(size=[family.head.num_labels, CONFIG.hidden_size]).astype(np.float32)
    weights = {**random_weights(CONFIG), "output_weights": of_head}
    loss, gradients = evaluate(of_step, weights)
    expected_loss, expected = one_by_one(features, texts, head, kind, weights)
    assert loss == pytest.approx(expected_loss, rel=1e-5)
    for gradient, value in zip(gradients, expected):
        np.testing.assert_allclose(gradient, value, rtol=1e-4, atol=1e-6)


LENGTHS = (30, 8, 20, 4, 25, 35, 5, 6, 40, 9, 12, 16)  # words of texts


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    """Flags of a run without dropout on twelve texts, of one to five windows each."""
    folder = tmp_path_factory.mktemp("long")
    project, random = write_project(folder / "project", layers=1), np.random.default_rng(3)
    rows = [
        {"text": " ".join([HALVES[number % 2][0], *random.choice(NEUTRAL, words)]), "label": number % 2}
        for number, words in enumerate(LENGTHS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    own = {f"{split}_file": folder / "rows.jsonl" for split in ("train", "dev")}
    own |= {"task_name": "custom", "problem": CLASSIFICATION, "long_text": "windows", "max_seq_length": LENGTH}
    own |= {"bert_config_file": families.without_dropout(folder, project), "train_batch_size": 6, "log_every_n_steps": 1}

    def flags(output_dir, **more):
        given = project.flags(output_dir, **{**own, **more})
        return [flag for flag in given if not flag.startswith("--data_dir=")]

    return flags


def test_a_batch_is_texts_and_its_loss_is_that_of_the_evaluation(flags, tmp_path, caplog):
    ways = {"do_train": True, "do_eval": True, "train_batch_size": len(LENGTHS), "learning_rate": 0.0, "num_train_epochs": 2}
    assert run(*flags(tmp_path / "out", **ways)) == 0
    measured = reading.results(tmp_path / "out")
    assert measured["global_step"] == 2
    assert reading.record(tmp_path / "out")["training"]["trains_on"] == "windows"
    assert families.losses(tmp_path / "out") == pytest.approx([measured["eval_loss"]] * 2, rel=1e-5)
    (counts,) = {line.split(",")[0] for line in caplog.messages if line.startswith("train: ")}
    assert counts == "train: 12 examples in 40 rows"


def test_parts_of_a_batch_are_the_same_training(flags, tmp_path):
    ways = {"do_train": True, "num_train_epochs": 2, "group_by_length": True}
    for name, way in (("plain", {}), ("parts", {"gradient_accumulation_steps": 4})):
        assert run(*flags(tmp_path / name, **ways, **way)) == 0
    plain, parts = (held(tmp_path / name / "model.ckpt-4") for name in ("plain", "parts"))
    for name, value in plain.items():
        np.testing.assert_allclose(parts[name], value, rtol=1e-3, atol=2e-6)


def test_weights_of_classes_count_texts():
    """Of classes with six and seven windows."""
    task = SimpleNamespace(name="custom", family=FAMILIES[CLASSIFICATION])
    options = find_loss_options(mrpc("--class_weights=balanced").train, task)(features_of(CLASSIFICATION))
    assert options.class_weights == pytest.approx((5 / (2 * 2), 5 / (2 * 3)))
