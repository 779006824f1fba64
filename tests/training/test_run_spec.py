"""Recipes: hyper-parameters of the default checkpoint."""

import pytest

from bert_tf.tasks.registry import get_task
from bert_tf.training import run_spec
from tests.classifier import mrpc, with_recipe

FAMILY = get_task("MRPC").family
ALL_GIVEN = (
    "--learning_rate=5e-5 --num_train_epochs=1 --train_batch_size=4 --max_seq_length=32 --noadam_bias_correction --freeze=5"
    " --label_smoothing=0.2"
)


@pytest.mark.parametrize(("flags", "default"), [("", False), (ALL_GIVEN, True)])
@pytest.mark.parametrize("sample_data", [True, False])
def test_nothing_changes_for_another_checkpoint_or_over_flags(flags, default, sample_data):
    before = mrpc(*flags.split())
    assert with_recipe(before, FAMILY, default_checkpoint=default, sample_data=sample_data) == (before, {})


@pytest.mark.parametrize(
    ("flags", "sample", "expected"),
    [
        ("", False, {"learning_rate": 5e-5, "train_batch_size": 12, "adam_bias_correction": True}),
        (
            "--learning_rate=5e-5",
            True,
            {
                "num_train_epochs": 6.0, "train_batch_size": 8, "max_seq_length": 64, "freeze": "embeddings,0-1",
                "label_smoothing": 0.1, "adam_bias_correction": True,
            },
        ),
        ("--num_train_steps=9 --max_seq_length=9 --freeze=1", True, {
            "learning_rate": 8e-5, "train_batch_size": 8, "label_smoothing": 0.1, "adam_bias_correction": True
        }),
    ],
)  # fmt: skip
def test_the_default_checkpoint_fills_in_what_no_flag_decides(flags, sample, expected):
    before = mrpc(*flags.split())
    after, chosen = with_recipe(before, FAMILY, default_checkpoint=True, sample_data=sample)
    assert chosen == expected
    assert after == before.replaced(expected)


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
    assert run_spec.dropped_recipe(mrpc(*flags), run_spec.Recipe({})) == expected


@pytest.mark.parametrize(
    ("name", "part"),
    [("max_seq_length", "data"), ("init_checkpoint", "model"), ("seed", "train"), ("eval_batch_size", "inference")],
)
def test_a_value_is_replaced_in_its_group(name, part):
    before = mrpc()
    after = before.replaced({name: 77})
    assert getattr(getattr(after, part), name) == 77
    assert after.replaced({name: getattr(getattr(before, part), name)}) == before
