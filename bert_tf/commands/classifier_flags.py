"""Flags and command-line syntax of the classifier, from the groups of settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bert_tf.cli.flags import Flag, help_line, read
from bert_tf.errors import FlagError
from bert_tf.jobs import fine_tune_config
from bert_tf.jobs.fine_tune_config import FineTuneConfig, configured
from bert_tf.runtime.settings import DeviceSettings
from bert_tf.settings import settings_of
from bert_tf.tasks.custom import NAME as CUSTOM_NAME
from bert_tf.tasks.custom import CustomSettings

AUTO = "auto"
DEVICES, CUSTOM = tuple(settings_of(DeviceSettings)), tuple(settings_of(CustomSettings))

_ABBREVIATED = re.compile(r"^(--?(?:no)?)do_lower(?==|$)")

# Of the published script, for command lines that were written for it.
TPU = (
    Flag("use_tpu", bool, False, ""),
    Flag("tpu_name", str, None, "", may_be_empty=True),
    Flag("tpu_zone", str, None, "", may_be_empty=True),
    Flag("gcp_project", str, None, "", may_be_empty=True),
    Flag("master", str, None, "", may_be_empty=True),
    Flag("num_tpu_cores", int, 8, ""),
    Flag("iterations_per_loop", int, 1000, ""),
)
_ELSEWHERE = ("use_tpu", "master")  # what would compute somewhere else than here; --tpu_name is read with the first alone

_TITLES = {
    "data": "Task and data",
    "custom": f"Your own data (--task_name={CUSTOM_NAME})",
    "span": "Extractive question answering (--task_name=SQuAD, SQuAD2)",
    "tags": "Tags (--task_name=CoNLL2003)",
    "similarity": "Vectors (--task_name=custom --problem=similarity or contrastive)",
    "model": "Model",
    "actions": "What to do (train and evaluate where none is given)",
    "train": "Training",
    "inference": "Evaluation and prediction",
    "speed": "Speed (exact, so on; the last four change order or numbers)",
    "devices": "Devices and distribution (docs/commands.md: which flags for my machine)",
    "output": "Output",
}
GROUPS: dict[str, tuple[Flag, ...]] = {
    _TITLES[group]: tuple(settings_of(kind)) for group, kind in fine_tune_config.GROUPS.items()
}


def parse(argv: Sequence[str]) -> FineTuneConfig:
    return read_command(argv)[0]


def read_command(argv: Sequence[str]) -> tuple[FineTuneConfig, list[str]]:
    """As `parse`; also returns the flags without effect, since there is no TPU here."""
    given, idle = given_settings(argv, GROUPS)
    return configured(**given), idle


def given_settings(argv: Sequence[str], groups: Mapping[str, Sequence[Flag]]) -> tuple[dict[str, Any], list[str]]:
    """Explicit settings by name, and the flags without effect; raises FlagError or HelpAsked.

    `groups` maps the title of a group to its flags.
    """
    rows = [row for rows in groups.values() for row in rows]
    values = read(_spelled_out(argv), [*rows, *TPU])
    for name in _ELSEWHERE:
        if values[name].value:
            raise FlagError(f"--{name}: there is no TPU here, only GPUs and the CPU of this machine; leave the flag out")
    given = {row.name: values[row.name].value for row in rows if values[row.name].present}
    return given, [f"--{row.name}" for row in TPU if values[row.name].present]


def _spelled_out(argv: Sequence[str]) -> list[str]:
    """Replaces --train_batch_size=auto with --fit_memory, which keeps the batch size, and expands --do_lower.

    The published README writes --do_lower; other abbreviations are rejected, since they may be mistakes.
    """
    words = [_ABBREVIATED.sub(r"\1do_lower_case", word) for word in argv]
    for place, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if name != "train_batch_size" or not word.startswith("-"):
            continue
        if equals and value == AUTO:
            words[place] = "--fit_memory"
        elif not equals and words[place + 1 : place + 2] == [AUTO]:
            words[place : place + 2] = ["--fit_memory"]
    return words


def help_text() -> str:
    note = "--task_name=XNLI measures each language and their mean; the published script's XNLI is XNLI-zh here."
    return listed("Fine-tunes BERT on a labelled text task: python run_classifier.py --task_name=MRPC", GROUPS, note)


def listed(title: str, groups: Mapping[str, Sequence[Flag]], note: str) -> str:
    lines = [title, ""]
    for group, rows in groups.items():
        lines += [f"{group}:", *map(help_line, rows), ""]
    published = ", ".join(f"--{row.name}" for row in TPU)
    lines += [note, "", "Of the published script, without effect, since there is no TPU here:", f"  {published}", ""]
    return "\n".join(lines)
