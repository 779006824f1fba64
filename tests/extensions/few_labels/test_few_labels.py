"""Few labels: recipe, loss and what they are for."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from bert_tf.errors import FlagError
from bert_tf.extensions.few_labels import part
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.modeling.heads import sentence as heads
from bert_tf.modeling.heads.base import LossOptions
from bert_tf.tasks.registry import get_task
from bert_tf.tasks.sentence.family import SentenceFamily
from tests import classifier
from tests.classifier import mrpc, with_recipe
from tests.graphs import evaluate

FAMILY = get_task("MRPC").family
LETTERS = SimpleNamespace(name="things", family=SentenceFamily(("a", "b", "c"), MULTI_LABEL))
LOGITS = np.random.default_rng(0).normal(0, 2, [4, 3]).astype(np.float32)
CLASSES = np.array([0, 2, 1, 2])
RECIPE = {
    "contrastive_weight": 0.9, "reinit_layers": 1, "adam_bias_correction": True, "num_train_steps": 100, "train_batch_size": 16,
    "learning_rate": 5e-5,
}  # fmt: skip


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("sample_data", [True, False])
def test_few_labels_are_trained_on_by_a_recipe_of_their_own(default, sample_data):
    before = mrpc("--few_labels", "--learning_rate=1e-4", "--num_train_epochs=9")
    _, chosen = with_recipe(before, FAMILY, default_checkpoint=default, sample_data=sample_data)
    assert chosen == {name: RECIPE[name] for name in RECIPE if name not in ("learning_rate", "num_train_steps")}
    assert with_recipe(mrpc("--few_labels"), FAMILY, default_checkpoint=default, sample_data=True)[1] == RECIPE


def test_another_recipe_is_followed_too_where_they_agree():
    origins = {"default_checkpoint": True, "sample_data": False}
    with pytest.raises(FlagError, match=r"recipes of few_labels and lora differ: give --learning_rate \(5e-05 or 0.001\)$"):
        with_recipe(mrpc("--few_labels", "--lora_rank=8"), FAMILY, **origins)
    _, chosen = with_recipe(mrpc("--few_labels", "--lora_rank=8", "--learning_rate=1e-3"), FAMILY, **origins)
    assert chosen == {name: RECIPE[name] for name in RECIPE if name != "learning_rate"}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--contrastive_weight=0.1", "--contrastive_weight=0.1: not for things, whose kind is"),
        ("--few_labels --contrastive_weight=0.9", "--few_labels: not for things, whose kind is"),
    ],
)
def test_is_for_classes(flags, message):
    part = mrpc(*flags.split()).parts()["few_labels"]
    with pytest.raises(FlagError, match=f"^{message}"):
        part.check(SimpleNamespace(task=LETTERS))


@pytest.mark.parametrize(
    "flags", [{"few_labels": True, "train_batch_size": 16, "gradient_accumulation_steps": 16}, {"contrastive_weight": 0.5}]
)
def test_parts_of_a_batch_with_one_text_have_nothing_to_compare(project, tmp_path, capsys, flags):
    assert classifier.run(*project.flags(tmp_path, **{"train_batch_size": 1, **flags}, do_train=True)) == 2
    assert "leaves single examples, but the loss compares examples; use at least" in capsys.readouterr().err


def test_the_contrastive_loss_tells_class_mates_from_other_rows():
    """Rows 0 and 2 are alike, 1 is at a right angle to both, and 3 is alone in its class."""
    vectors, classes = [[2.0, 0.0], [0.0, 1.0], [3.0, 0.0], [-1.0, 0.0]], [0, 0, 0, 1]
    losses = evaluate(lambda: part.supervised_contrastive_loss(tf.constant(vectors), tf.constant(classes), temperature=0.5))
    e = math.exp
    of_first = math.log(e(2) + e(0) + e(-2)) - (2 + 0) / 2  # cosines 1 and 0 to its mates, -1 to the other
    of_second = math.log(3 * e(0))
    np.testing.assert_allclose(losses, [of_first, of_second, of_first, 0.0], rtol=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.25])
def test_the_contrastive_weight_is_a_share_of_the_loss(share):
    def losses():
        outputs = {"logits": tf.constant(LOGITS), "pooled": tf.constant(LOGITS)}
        contrasted = part.ContrastedHead(heads.ClassificationHead(3), share=share)
        return (
            contrasted.losses(outputs, {"label_ids": tf.constant(CLASSES)}, LossOptions()),
            heads.classification_loss(outputs["logits"], tf.constant(CLASSES)),
            part.supervised_contrastive_loss(outputs["pooled"], tf.constant(CLASSES)),
        )

    loss, of_classes, contrastive = evaluate(losses)
    np.testing.assert_allclose(loss, (1 - share) * of_classes + share * contrastive, rtol=1e-6)


def test_windows_of_a_text_are_one_text():
    """Three texts, the second in two windows."""
    groups, rows = [0, 1, 1, 2], np.array([1, 2, 1])

    def losses():
        outputs = {"logits": tf.constant(LOGITS), "pooled": tf.constant(LOGITS)}
        features = {"label_ids": tf.constant([0, 2, 2, 0]), "groups": tf.constant(groups)}
        return part.ContrastedHead(heads.ClassificationHead(3), share=0.25).losses(outputs, features, LossOptions())

    means = np.stack([LOGITS[0], LOGITS[1:3].mean(axis=0), LOGITS[3]])
    expected = evaluate(
        lambda: (
            0.75 * heads.classification_loss(tf.constant(means), tf.constant([0, 2, 0]))
            + 0.25 * part.supervised_contrastive_loss(tf.constant(means), tf.constant([0, 2, 0]))
        )
    )
    np.testing.assert_allclose(evaluate(losses), (expected / rows)[groups], rtol=1e-5)
