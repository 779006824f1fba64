"""Flags of the pretrain command, and their defaults."""

from __future__ import annotations

import sys

import pytest

from bert_tf.corpus import sentences
from bert_tf.errors import FlagError
from bert_tf.jobs import pretrain_config, recipes
from bert_tf.jobs.pretrain_config import configured
from bert_tf.operations import pretrain
from bert_tf.tasks.pretraining.family import PretrainingFamily
from tests import classifier, classifier_flags

PUBLISHED = {  # google-research/bert run_pretraining.py; without what a file, a TPU or a share of steps stands for
    "bert_config_file": None,
    "input_file": None,
    "output_dir": None,
    "init_checkpoint": None,
    "max_seq_length": 128,
    "max_predictions_per_seq": 20,
    "do_train": False,
    "do_eval": False,
    "train_batch_size": 32,
    "learning_rate": 5e-5,
    "num_train_steps": 100_000,
    "save_checkpoints_steps": 1000,
    "max_eval_steps": 100,
}
ROWS = {row.name: row for row in pretrain_config.SETTINGS}


def test_published_flags_have_the_published_defaults():
    assert {name: ROWS[name].default for name in PUBLISHED} == PUBLISHED


def test_the_rate_rises_in_the_published_number_of_steps():
    train = configured().train
    assert (train.num_train_steps, train.warmup_proportion) == (100_000, 0.1)
    assert configured(num_warmup_steps=5).train.num_warmup_steps == 5
    actions = configured().actions
    assert (actions.do_train, actions.do_eval, actions.do_predict) == (True, True, False)


def test_flags_of_a_tpu_change_nothing():
    argv = ["pretrain", "--iterations_per_loop=1000", "--num_tpu_cores=8", "--use_tpu=false", "--nodo_train", "--do_eval"]
    config, idle = classifier_flags.read_command(argv, pretrain.COMMAND)
    assert (config.actions.do_train, config.actions.do_eval) == (False, True)
    assert idle == ["--use_tpu", "--num_tpu_cores", "--iterations_per_loop"]


def test_help_lists_the_flags_of_text_and_of_training(capsys):
    assert classifier.pretraining(["pretrain", "--help"]) == 0
    text = capsys.readouterr().out
    for name in ("input_file", "held_out_documents", "phase2_num_train_steps", "optimizer", "memory_trace_step"):
        assert f"--{name}" in text
    for name in ("do_predict", "class_weights", "task_name", "submission_zip"):
        assert f"--{name}" not in text.replace(f"--[no]{name}", f"--{name}")


def test_epochs_take_the_place_of_steps_also_on_the_sample():
    config = configured(num_train_epochs=2.0)
    assert config.train.num_train_steps is None
    settings, chosen = recipes.apply(config, PretrainingFamily(), default_checkpoint=True, sample_data=True)
    assert "num_train_steps" not in chosen
    assert settings.train.num_train_epochs == 2.0
    _, chosen = recipes.apply(configured(), PretrainingFamily(), default_checkpoint=True, sample_data=False)
    assert chosen == {"adam_bias_correction": True}


@pytest.mark.parametrize("given", [{"input_format": "book"}, {"input_file": "x.txt,y.jsonl"}, {"held_out_file": "y.jsonl.gz"}])
def test_a_package_that_raw_text_needs_is_missed_before_anything_is_loaded(given, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    sentences._segment.cache_clear()
    assert configured(input_file="x.txt")
    with pytest.raises(FlagError, match="pip install 'sentencex"):
        configured(**{"input_file": "x.txt", **given})


def test_the_classifier_names_the_command():
    with pytest.raises(FlagError, match="text without labels has a command of its own, python -m bert_tf pretrain"):
        classifier_flags.parse(["run_classifier.py", "--task_name=pretraining"])


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"held_out_documents": 3}, "belong to --input_file"),
        ({"num_warmup_steps": 3, "warmup_proportion": 0.1}, "both say how the rate rises"),
        ({"num_train_epochs": 3, "num_train_steps": 2}, "both say how long to train"),
    ],
)
def test_settings_that_contradict_each_other(given, expected):
    with pytest.raises(FlagError, match=expected):
        configured(**given)
