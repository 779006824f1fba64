"""Pretrain: trains on unlabelled text, with the defaults of the published run_pretraining.py."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bert_tf.errors import FlagError
from bert_tf.extensions.pretrain import COMMAND as NAME
from bert_tf.extensions.pretrain import TASK
from bert_tf.extensions.pretrain.settings import LISTS, PretrainingSettings
from bert_tf.library.fine_tuning import train
from bert_tf.library.keywords import takes
from bert_tf.operations import fine_tune
from bert_tf.settings import Setting, named
from bert_tf.training import run_spec
from bert_tf.training.run_spec import DRIVERS, Program, RunSpec, made

# The settings of training, with the defaults of run_pretraining.py, but none on labels.
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
_DEFAULTS: Mapping[str, Any] = {"num_train_steps": 100_000}  # published; a tenth of them is warm-up
# Titles of sections, and the beginnings of those of fine-tuning whose settings they list.
_TITLES: Mapping[str, tuple[str, ...]] = {
    "Text": (PretrainingSettings.TITLE, "Task and data"),
    "Model": ("Model",),
    "What to do (default: train and evaluate)": ("What to do",),
    "Training": ("Training", "Evaluation and prediction"),
    "Speed": ("Speed",),
    "Devices and distribution": ("Devices",),
    "Output": ("Output",),
}


def _rows(beginnings: tuple[str, ...]) -> Iterator[Setting]:
    every = run_spec.sections(NAME).items()
    listed = (row for beginning in beginnings for title, rows in every if title.startswith(beginning) for row in rows)
    for row in listed:
        if not row.of_labels:
            default = None if row.name == "num_train_epochs" else _DEFAULTS.get(row.name, row.default)
            yield row._replace(help=_HELP.get(row.name, row.help), default=default)


SECTIONS = {title: tuple(_rows(beginnings)) for title, beginnings in _TITLES.items()}
SETTINGS = tuple(row for rows in SECTIONS.values() for row in rows)
PRETRAIN = Program(
    NAME,
    frozenset(row.name for row in SETTINGS),
    {"adam_bias_correction": True},
    frozenset(("eval_every_n_steps", "learning_rate", "max_seq_length", "num_train_steps", "train_batch_size")),
)


@takes(row for row in SETTINGS if row.name not in DRIVERS)
def pretrain(
    input_file: str | os.PathLike[str] | None = None, *, output_dir: str | os.PathLike[str] | None = None, **settings: Any
) -> Path:
    """Trains on unlabelled text and evaluates on held-out documents; as `python -m bert_tf pretrain`.

    The folder receives the command's files, `report.html` included. Repeating the call resumes a stopped training.

        folder = bert_tf.pretrain("texts/*.txt", output_dir="out/mine", num_train_steps=10_000)
        model = bert_tf.fine_tune("MRPC", init_checkpoint=folder)

    Args:
      input_file: text files or shards, comma-separated or as patterns; by default the bundled sample.
      output_dir: for checkpoints and results; by default out/pretraining.
      **settings: the command's flags, by name.

    Returns:
      The folder of the run, which `init_checkpoint` accepts.

    Raises:
      BertError: invalid settings or input, such as an unknown setting; the message is one line.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    return train(configured(**{**settings, "input_file": input_file, "output_dir": output_dir})).output_dir


def configured(**values: Any) -> RunSpec:
    settings = named(SETTINGS, values)
    by_epochs = "num_train_epochs" in settings
    defaults = {} if by_epochs else {name: value for name, value in _DEFAULTS.items() if name not in settings}
    config = made(settings, TASK, PRETRAIN, {"task_name": TASK, **defaults})
    _check(config)
    return config


def _check(config: RunSpec) -> None:
    explicit, pretraining = config.given, config.of_task.extensions.pretrain
    if "held_out_file" in explicit and "held_out_documents" in explicit:
        raise FlagError("--held_out_file and --held_out_documents exclude each other: the file is what is held out")
    if "input_file" not in explicit and explicit & {"held_out_file", "held_out_documents"}:
        raise FlagError("--held_out_file and --held_out_documents belong to --input_file: name the text to learn from")
    phase2 = sorted(name for name in explicit if name.startswith("phase2_") and name != "phase2_num_train_steps")
    if phase2 and not pretraining.phase2_num_train_steps:
        raise FlagError(f"--{phase2[0]} belongs to a second phase: set its length with --phase2_num_train_steps=N")
    files = ",".join(getattr(pretraining, name) for name in LISTS if getattr(pretraining, name))
    if pretraining.corpus(tuple(files.split(","))).is_cut:
        from bert_tf.extensions.pretrain.corpus import sentences

        sentences.version()  # reports a missing package before TensorFlow is loaded
    if pretraining.phase2_num_train_steps and "num_train_epochs" in explicit:
        raise FlagError("--num_train_epochs: two phases are given in steps, --num_train_steps and --phase2_num_train_steps")


COMMAND = fine_tune.command(
    PRETRAIN,
    "Pre-trains on unlabelled text: masked words, next sentences (docs/pretraining.md).",
    "python -m bert_tf pretrain --input_file='texts/*.txt' --output_dir=out/mine",
    "input_file init_checkpoint num_train_steps max_seq_length output_dir",
    "Rows, masks and their order depend only on the seeds: the same command continues where it stopped, to the same bits.",
    SECTIONS,
    configured,
)
