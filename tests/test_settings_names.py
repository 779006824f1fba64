"""Names that other libraries give settings."""

from __future__ import annotations

import pytest

from bert_tf.jobs import encode_config, evaluate_config, export_config, fine_tune_config, predict_config
from bert_tf.settings import _NAMED_ELSEWHERE, nearest, unknown_setting

OF_TRAINING = {row.name for row in fine_tune_config.SETTINGS}
KNOWN = {
    name.name
    for rows in (fine_tune_config.SETTINGS, predict_config.SETTINGS, evaluate_config.SETTINGS, encode_config.SETTINGS)
    for name in rows
} | {row.name for row in export_config.SETTINGS}


def test_each_name_of_the_table_leads_to_a_setting():
    assert set(_NAMED_ELSEWHERE) <= KNOWN


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("epochs", "num_train_epochs"),  # Keras
        ("lr", "learning_rate"),
        ("batch_size", "train_batch_size"),
        ("seq_len", "max_seq_length"),
        ("warmup_ratio", "warmup_proportion"),  # transformers
        ("save_total_limit", "keep_checkpoint_max"),
        ("lr_scheduler_type", "learning_rate_schedule"),
        ("fp16", "precision"),
        ("accumulate_grad_batches", "gradient_accumulation_steps"),  # Lightning
        ("learning-rate", "learning_rate"),
    ],
)
def test_settings_are_found_by_the_names_of_other_libraries(name, ours):
    assert nearest(name, OF_TRAINING) == ours
    assert unknown_setting("setting", name, OF_TRAINING) == f"unknown setting {name!r}; did you mean {ours}?"


def test_what_a_command_does_not_take_is_not_proposed():
    predicting = {row.name for row in predict_config.SETTINGS}
    assert nearest("epochs", predicting) is None
    assert nearest("batch_size", predicting) == "predict_batch_size"
    assert "(known: " in unknown_setting("setting", "epochs", predicting)
