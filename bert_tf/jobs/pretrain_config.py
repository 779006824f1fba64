"""Settings of pre-training: those of training, with the defaults of the published run_pretraining.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bert_tf.corpus import sentences
from bert_tf.errors import FlagError
from bert_tf.jobs.fine_tune_config import PRETRAIN, FineTuneConfig, made
from bert_tf.jobs.settings import (
    ActionSettings,
    DataSettings,
    InferenceSettings,
    ModelSettings,
    OutputSettings,
    SpeedSettings,
    TrainSettings,
)
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import Setting, named, settings_of
from bert_tf.tasks.pretraining.family import TASK
from bert_tf.tasks.pretraining.settings import LISTS, PretrainingSettings

# What is of labels, or of what is predicted.
_OF_LABELS = {
    "task_name",
    "long_text",
    "do_predict",
    "class_weights",
    "label_smoothing",
    "predict_batch_size",
    "submission_zip",
}
_HELP = {
    "data_dir": "folder with train.txt and held_out.txt, without --input_file",
    "max_seq_length": "maximum row length in word pieces",
    "do_eval": "evaluate on held-out documents",
    "init_checkpoint": "checkpoint or folder to start from; default: $BERT_BASE_DIR or the default checkpoint",
    "bert_config_file": "model configuration; with --vocab_file and without a checkpoint: train from scratch",
    "train_batch_size": "rows per step",
    "num_train_epochs": "passes over the rows, instead of --num_train_steps",
    "num_train_steps": "training steps; with two phases, those of the first",
    "eval_every_n_steps": "steps between evaluations on held-out documents; the best checkpoint is kept; 0: off",
    "output_dir": "folder for checkpoints and results; default: out/pretraining",
}
_DEFAULTS: Mapping[str, Any] = {"num_train_steps": 100_000}  # published; the rate rises in a tenth of them


def _rows(*kinds: type) -> tuple[Setting, ...]:
    rows = (row for row in settings_of(*kinds) if row.name not in _OF_LABELS)
    changed = (row._replace(help=_HELP.get(row.name, row.help), default=_DEFAULTS.get(row.name, row.default)) for row in rows)
    return tuple(row._replace(default=None) if row.name == "num_train_epochs" else row for row in changed)


SECTIONS: Mapping[str, tuple[Setting, ...]] = {
    "Text": _rows(PretrainingSettings, DataSettings),
    "Model": _rows(ModelSettings),
    "What to do (default: train and evaluate)": _rows(ActionSettings),
    "Training": _rows(TrainSettings, InferenceSettings),
    "Speed": _rows(SpeedSettings),
    "Devices and distribution": _rows(DeviceSettings),
    "Output": _rows(OutputSettings),
}
SETTINGS = tuple(row for rows in SECTIONS.values() for row in rows)


def configured(**values: Any) -> FineTuneConfig:
    given = named(SETTINGS, values)
    by_epochs = "num_train_epochs" in given
    defaults = {} if by_epochs else {name: value for name, value in _DEFAULTS.items() if name not in given}
    config = made(given, TASK, PRETRAIN, {"task_name": TASK, **defaults})
    _check(config)
    return config


def _check(config: FineTuneConfig) -> None:
    given, own = config.given, config.of_task.pretraining
    if "held_out_file" in given and "held_out_documents" in given:
        raise FlagError("--held_out_file and --held_out_documents exclude each other: held out is what the file has")
    if "input_file" not in given and given & {"held_out_file", "held_out_documents"}:
        raise FlagError("--held_out_file and --held_out_documents belong to --input_file: name the text to learn from")
    phase2 = sorted(name for name in given if name.startswith("phase2_") and name != "phase2_num_train_steps")
    if phase2 and not own.phase2_num_train_steps:
        raise FlagError(f"--{phase2[0]} belongs to a second phase: say how long it is, --phase2_num_train_steps=N")
    named = ",".join(getattr(own, name) for name in LISTS if getattr(own, name))
    if own.corpus(tuple(named.split(","))).is_cut:
        sentences.version()  # a package that is missing is said before TensorFlow is loaded
    if own.phase2_num_train_steps and "num_train_epochs" in given:
        raise FlagError("--num_train_epochs: two phases are given in steps, --num_train_steps and --phase2_num_train_steps")
