"""The flags of the classifier: those that the groups of settings declare, and how its command line is written."""

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
    """Reads a command line.

    Args:
      argv: program name and arguments.

    Raises:
      FlagError: a flag is unknown or has an unusable value.
      HelpAsked: instead of settings.
    """
    return read_command(argv)[0]


def read_command(argv: Sequence[str]) -> tuple[FineTuneConfig, list[str]]:
    """Reads a command line as `parse`; returns also the flags in it that have no effect, since there is no TPU here."""
    given, idle = given_settings(argv, GROUPS)
    return configured(**given), idle


def given_settings(argv: Sequence[str], groups: Mapping[str, Sequence[Flag]]) -> tuple[dict[str, Any], list[str]]:
    """Returns the settings that a command line gives, by name, and the flags in it that have no effect.

    Args:
      argv: program name and arguments.
      groups: the flags that there are, by the title of their group.

    Raises:
      FlagError: a flag is unknown or has an unusable value.
      HelpAsked: instead of settings.
    """
    rows = [row for rows in groups.values() for row in rows]
    values = read(_spelled_out(argv), [*rows, *TPU])
    for name in _ELSEWHERE:
        if values[name].value:
            raise FlagError(f"--{name}: there is no TPU here, only GPUs and the CPU of this machine; leave the flag out")
    given = {row.name: values[row.name].value for row in rows if values[row.name].present}
    return given, [f"--{row.name}" for row in TPU if values[row.name].present]


def _spelled_out(argv: Sequence[str]) -> list[str]:
    """Returns a command line with --fit_memory in the place of --train_batch_size=auto: the batch keeps its size.

    The published README writes --do_lower; other beginnings of names are not read, since they may be mistakes.
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
    """Returns what --help prints."""
    note = "--task_name=XNLI measures each language and their mean; the published script's XNLI is XNLI-zh here."
    return listed("Fine-tunes BERT on a labelled text task: python run_classifier.py --task_name=MRPC", GROUPS, note)


def listed(title: str, groups: Mapping[str, Sequence[Flag]], note: str) -> str:
    """Returns what --help prints of a command that trains.

    Args:
      title: its first line.
      groups: the flags that there are, by the title of their group.
      note: below them.
    """
    lines = [title, ""]
    for group, rows in groups.items():
        lines += [f"{group}:", *map(help_line, rows), ""]
    published = ", ".join(f"--{row.name}" for row in TPU)
    lines += [note, "", "Of the published script, without effect, since there is no TPU here:", f"  {published}", ""]
    return "\n".join(lines)
