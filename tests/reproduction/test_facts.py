"""What is kept of the published run."""

from __future__ import annotations

import pytest

from bert_tf.checkpoints.names import encoder_shapes
from bert_tf.reproduction.facts import GTX1060, digest
from bert_tf.training.fine_tune_config import configured
from tests import classifier


def test_digest_is_the_sha256_of_tokens_joined_by_blanks():
    # printf 'a 1' | sha256sum
    assert digest(["a", 1]) == "042a5f2e7634c4c80a75691b6b89dfe4e1758558ce99e7346b5297b68fa95d11"


def test_published_figures_agree_with_each_other():
    assert GTX1060.steps == int(GTX1060.examples["train"] / 12 * 3)
    assert round(GTX1060.right / GTX1060.examples["dev"], 6) == round(GTX1060.accuracy, 6)
    for examples, steps in zip(GTX1060.examples_per_second, GTX1060.steps_per_second):
        assert examples == pytest.approx(12 * steps, rel=1e-3)


def test_variables_have_the_names_and_shapes_of_the_encoder():
    shapes = encoder_shapes(GTX1060.config)
    of_encoder = {name: variable for name, variable in GTX1060.variables.items() if variable.from_checkpoint}
    assert {name: variable.shape or shapes[name] for name, variable in of_encoder.items()} == {
        name: shapes[name] for name in of_encoder
    }
    assert set(GTX1060.variables) - set(of_encoder) == {"output_weights", "output_bias"}
    assert len(GTX1060.variables) == 79


def test_legible_spans_are_in_order_and_within_their_line():
    for line in GTX1060.token_lines:
        ends = [0]
        for start, count, _ in line.spans:
            assert start >= ends[-1]
            ends.append(start + count)
        assert ends[-1] <= line.shown
    assert [(line.legible, line.shown) for line in GTX1060.token_lines] == [(24, 24), (47, 52), (60, 64), (60, 60), (24, 24)]


def test_settings_are_those_of_the_published_command():
    settings = configured(task_name="MRPC", **GTX1060.settings)
    published = classifier.parse(GTX1060.command.split()[1:])
    assert published.actions == settings.actions
    for name in ("train_batch_size", "learning_rate", "num_train_epochs"):
        assert getattr(published.train, name) == getattr(settings.train, name)
    assert published.data.max_seq_length == settings.data.max_seq_length
    assert (settings.train.adam_bias_correction, settings.train.warmup_proportion) == (False, 0.1)
