"""What --class_weights and --label_smoothing come to."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from bert_tf.errors import FlagError
from bert_tf.head_spec import MULTI_LABEL, REGRESSION
from bert_tf.jobs.loss_settings import loss_options
from bert_tf.tasks.glue import TASKS
from bert_tf.tasks.sentence.family import SentenceFamily
from tests import classifier_flags
from tests.labelled import labelled

CLASSES = np.array([0, 1, 1, 1], np.int32)


def thing(labels: tuple[str, ...], kind: str) -> SimpleNamespace:
    """What of a task is looked at."""
    return SimpleNamespace(name="things", family=SentenceFamily(labels, kind))


def options(*arguments, task=TASKS["MRPC"], label_ids=CLASSES):
    train = classifier_flags.parse(["x", "--task_name=MRPC", *arguments]).train
    ones = np.ones(len(label_ids), np.int32)
    return loss_options(train, task)(labelled(ones, ones, ones, label_ids))


def test_is_plain_where_nothing_is_asked():
    assert (options().class_weights, options().label_smoothing) == ((), 0.0)


def test_balanced_classes_weigh_the_same_in_total():
    assert options("--class_weights=balanced").class_weights == pytest.approx((4 / (2 * 1), 4 / (2 * 3)))


def test_balanced_labels_weigh_what_applies_as_what_does_not():
    task = thing(("a", "b", "c"), MULTI_LABEL)
    hot = np.array([[1, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 0]], np.float32)
    assert options("--class_weights=balanced", task=task, label_ids=hot).class_weights == pytest.approx((3.0, 1 / 3, 1.0))


def test_weights_may_be_listed():
    assert options("--class_weights=1,2.5", "--label_smoothing=0.1").label_smoothing == 0.1
    assert options("--class_weights=1,2.5").class_weights == (1.0, 2.5)


@pytest.mark.parametrize("given", ["1", "1,2,3", "1,x", "1,-1", "1,0", "1,nan", "1,inf", "balance"])
def test_other_weights_are_refused_and_the_labels_named(given):
    with pytest.raises(FlagError, match=rf"--class_weights={given}: give balanced, or 2 positive numbers .* 0, 1"):
        options(f"--class_weights={given}")


def test_smoothing_leaves_something_of_the_target():
    with pytest.raises(FlagError, match="--label_smoothing=1.0: must be below 1"):
        options("--label_smoothing=1")


@pytest.mark.parametrize("given", ["--class_weights=balanced", "--label_smoothing=0.1"])
def test_a_number_has_no_classes(given):
    with pytest.raises(FlagError, match=f"{given}: things has no classes"):
        options(given, task=thing((), REGRESSION))
