"""Tasks by the names that people write."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bert_tf.errors import FlagError, unknown_name
from bert_tf.tasks import glue
from bert_tf.tasks.base import Task
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.custom import CustomSettings, CustomTask
from bert_tf.tasks.xnli import LANGUAGES, XnliTask

# Other names that files, leaderboards and papers give tasks, folded.
_ALIASES = {
    **dict.fromkeys(("mnlim", "mnlimm", "mnlimatched", "mnlimismatched"), "MNLI"),
    **dict.fromkeys(("diagnostic", "diagnostics"), "AX"),
    **dict.fromkeys(("xnliall", "xnli10"), "XNLI"),
    **{f"xnli{language}": f"XNLI-{language}" for language in LANGUAGES},
}


_registered: dict[str, Task] = {}


def register(task: Task) -> None:
    """Adds a task under its name.

    Raises:
      ValueError: the name is that of another task.
    """
    if _folded(task.name) in map(_folded, (*known_names(), *_ALIASES)):
        raise ValueError(f"there is a task {task.name!r} already")
    _registered[task.name] = task


def known_names() -> tuple[str, ...]:
    """Returns the names of all tasks; one language of XNLI stands for all."""
    return (*glue.TASKS, "XNLI", "XNLI-en", CUSTOM, *_registered)


def canonical_name(name: str) -> str:
    """Returns the name that a task goes by; only letters and digits matter, in any case: sst2 is SST-2, xnli-all is XNLI.

    Raises:
      FlagError: the name is unknown; the message names the nearest known one, or the languages of XNLI.
    """
    folded = _folded(name)
    names = {**{_folded(known): known for known in known_names()}, **_ALIASES}
    if folded in names:
        return names[folded]
    if folded.startswith("xnli"):
        raise FlagError(f"--task_name: XNLI has no language {folded[4:]!r}, only {', '.join(LANGUAGES)}")
    raise FlagError(f"--task_name: {unknown_name('task', name, known_names())}")


def folder_name(task: str) -> str:
    """Returns what the folder of a task's files is called: its canonical name, XNLI for every language."""
    name, _, _ = task.partition("-")
    return name if name == XnliTask().name else task


def get_task(name: str, custom: CustomSettings | None = None, labels: Sequence[str] | None = None) -> Task:
    """Returns the task of a name.

    Args:
      name: as people write it, see `canonical_name`.
      custom: what the task custom needs.
      labels: of the task custom, where a trained model knows them.

    Raises:
      FlagError: the name is unknown, or the settings of the task custom contradict each other.
    """
    canonical = canonical_name(name)
    if canonical == CUSTOM:
        return CustomTask(custom or CustomSettings(), labels)
    named = {**glue.TASKS, **_registered}
    if canonical in named:
        return named[canonical]
    return XnliTask(canonical.partition("-")[2] or None)


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())
