"""Names that other libraries give settings."""

from __future__ import annotations

import pytest

from bert_tf.jobs import fine_tune_config
from bert_tf.operations.encode import EncodeSettings
from bert_tf.operations.evaluate import EvaluateSettings
from bert_tf.operations.export import ExportSettings
from bert_tf.operations.predict import PredictSettings
from bert_tf.settings import _NAMED_ELSEWHERE, nearest, settings_of, unknown_setting

OF_TRAINING = {row.name for row in fine_tune_config.SETTINGS}
KNOWN = OF_TRAINING | {row.name for row in settings_of(EncodeSettings, EvaluateSettings, ExportSettings, PredictSettings)}


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
    predicting = {row.name for row in settings_of(PredictSettings)}
    assert nearest("epochs", predicting) is None
    assert nearest("batch_size", predicting) == "predict_batch_size"
    assert "(known: " in unknown_setting("setting", "epochs", predicting)
