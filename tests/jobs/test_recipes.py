"""Hyper-parameters of the default checkpoint."""

from __future__ import annotations

import pytest

from bert_tf.jobs import recipes
from bert_tf.tasks.registry import get_task
from tests import classifier_flags

FAMILY = get_task("MRPC").family


def settings(*arguments: str):
    return classifier_flags.parse(["run_classifier.py", "--task_name=MRPC", *arguments])


@pytest.mark.parametrize("sample_data", [True, False])
def test_another_checkpoint_keeps_the_published_values(sample_data):
    before = settings()
    assert recipes.apply(before, FAMILY, default_checkpoint=False, sample_data=sample_data) == (before, {})


def test_task_data_gets_small_batches_and_bias_correction():
    after, chosen = recipes.apply(settings(), FAMILY, default_checkpoint=True, sample_data=False)
    assert chosen == {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True}
    assert (after.train.num_train_epochs, after.data.max_seq_length) == (3.0, 128)


def test_sample_gets_more_epochs_and_what_keeps_it_from_learning_by_heart():
    after, _ = recipes.apply(settings(), FAMILY, default_checkpoint=True, sample_data=True)
    assert (after.train.num_train_epochs, after.train.train_batch_size) == (6.0, 8)
    assert (after.train.learning_rate, after.data.max_seq_length) == (8e-5, 64)
    assert (after.train.freeze, after.train.label_smoothing) == ("embeddings,0-1", 0.1)
    assert after.train.adam_bias_correction


@pytest.mark.parametrize("sample_data", [True, False])
def test_never_over_a_flag_that_is_given(sample_data):
    before = settings(
        "--learning_rate=5e-5",
        "--num_train_epochs=1",
        "--train_batch_size=4",
        "--max_seq_length=32",
        "--noadam_bias_correction",
        "--freeze=5",
        "--label_smoothing=0.2",
    )
    assert recipes.apply(before, FAMILY, default_checkpoint=True, sample_data=sample_data) == (before, {})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], {"train_batch_size": 12, "adam_bias_correction": True}),
        (["--train_batch_size=32", "--noadam_bias_correction"], {}),
        (["--learning_rate=1e-4", "--train_batch_size=12"], {"adam_bias_correction": True}),
        (["--do_eval"], {}),
    ],
)
def test_what_another_checkpoint_goes_without_is_what_was_left_open_and_differs(flags, expected):
    assert recipes.dropped(settings(*flags)) == expected


def test_no_epochs_where_the_steps_are_given():
    _, chosen = recipes.apply(settings("--num_train_steps=9"), FAMILY, default_checkpoint=True, sample_data=True)
    assert "num_train_epochs" not in chosen


def test_one_given_flag_leaves_the_rest_of_the_recipe():
    after, chosen = recipes.apply(settings("--learning_rate=5e-5"), FAMILY, default_checkpoint=True, sample_data=True)
    assert "learning_rate" not in chosen
    assert (after.train.learning_rate, after.train.num_train_epochs) == (5e-5, 6.0)


@pytest.mark.parametrize(
    ("name", "part"),
    [("max_seq_length", "data"), ("init_checkpoint", "model"), ("seed", "train"), ("eval_batch_size", "inference")],
)
def test_a_value_is_replaced_in_its_group(name, part):
    before = settings()
    after = before.replaced({name: 77})
    assert getattr(getattr(after, part), name) == 77
    assert after.replaced({name: getattr(getattr(before, part), name)}) == before
