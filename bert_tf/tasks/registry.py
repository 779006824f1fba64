"""Tasks by the names that people write."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Optional

from bert_tf.errors import FlagError, unknown_name
from bert_tf.head_spec import CHOICE, CONTRASTIVE, SIMILARITY, SPAN, TAGS
from bert_tf.settings import settings_of
from bert_tf.tasks import glue
from bert_tf.tasks import settings as of_tasks
from bert_tf.tasks.base import Task
from bert_tf.tasks.choice import task as choice
from bert_tf.tasks.custom import FILES, SKIP, CustomSettings, CustomTask
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.pretraining import task as pretraining
from bert_tf.tasks.sentence.example import KINDS
from bert_tf.tasks.settings import GROUPS, NAMES, TaskSettings
from bert_tf.tasks.similarity import task as similarity
from bert_tf.tasks.span import task as span
from bert_tf.tasks.tags import task as tags
from bert_tf.tasks.xnli import LANGUAGES, XnliTask

# Other names that files, leaderboards and papers give tasks, folded.
_ALIASES = {
    **dict.fromkeys(("mnlim", "mnlimm", "mnlimatched", "mnlimismatched"), "MNLI"),
    **dict.fromkeys(("diagnostic", "diagnostics"), "AX"),
    **dict.fromkeys(("xnliall", "xnli10"), "XNLI"),
    **{f"xnli{language}": f"XNLI-{language}" for language in LANGUAGES},
}


_registered: dict[str, Task] = {}

_FOLDERS = {similarity.STS_B: "STS-B"}  # of tasks that read the files of another

Labels = Optional[Sequence[str]]  # where a trained model knows them


class _OfSettings(NamedTuple):
    """A task that settings decide on.

    Attributes:
      make: makes it of them.
      takes: their names.
    """

    make: Callable[[TaskSettings, Labels], Task]
    takes: frozenset[str]


def _names(*groups: str) -> frozenset[str]:
    return frozenset(row.name for group in groups for row in settings_of(GROUPS[group]))


_OF_GLUE = frozenset((SKIP,))  # and XNLI
_FILES = frozenset(FILES) | _OF_GLUE
_OF_PAIRS = _names("custom") - {"labels", "label_separator"}
_OF_SPANS = _FILES | _names("span") | {"file_format"}

# Named tasks, and one's own data by `--problem`.
_NAMED: Mapping[str, _OfSettings] = {
    span.SQUAD: _OfSettings(lambda settings, _: span.squad(settings), _OF_SPANS),
    span.SQUAD2: _OfSettings(lambda settings, _: span.squad2(settings), _OF_SPANS),
    tags.CONLL2003: _OfSettings(lambda settings, _: tags.conll2003(settings.custom, settings.tags), _FILES | _names("tags")),
    choice.SWAG: _OfSettings(lambda settings, _: choice.swag(settings.custom), _FILES | {"id_column"}),
    similarity.STS_B: _OfSettings(
        lambda settings, _: dataclasses.replace(similarity.sts_b(), skip_bad_rows=settings.custom.skip_bad_rows), _OF_GLUE
    ),
    pretraining.PretrainingTask.name: _OfSettings(lambda settings, _: pretraining.pretraining(settings), _names("pretraining")),
}
_OWN: Mapping[str, _OfSettings] = {
    **dict.fromkeys(KINDS, _OfSettings(lambda settings, labels: CustomTask(settings.custom, labels), _names("custom"))),
    SPAN: _OfSettings(lambda settings, _: span.own(settings), _OF_SPANS | {"problem", "id_column"}),
    TAGS: _OfSettings(
        lambda settings, labels: tags.own(settings.custom, settings.tags, labels),
        _FILES | {"problem", "labels", "file_format"} | _names("tags"),
    ),
    CHOICE: _OfSettings(lambda settings, _: choice.own(settings.custom), choice.SETTINGS | _FILES),
    SIMILARITY: _OfSettings(lambda settings, _: similarity.PairsTask(settings), _OF_PAIRS | {"highest_score"}),
    CONTRASTIVE: _OfSettings(
        lambda settings, _: similarity.ContrastiveTask(settings), _OF_PAIRS | {"highest_score", "temperature"}
    ),
}


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
    return (*glue.TASKS, "XNLI", "XNLI-en", *_NAMED, CUSTOM, *_registered)


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
    """Returns what the folder of a task's files is called: its canonical name, or that of another task with the same."""
    name, _, _ = task.partition("-")
    return name if name == XnliTask().name else _FOLDERS.get(task, task)


def get_task(name: str, settings: TaskSettings | None = None, labels: Labels = None) -> Task:
    """Returns the task of a name.

    Args:
      name: as people write it, see `canonical_name`.
      settings: of tasks.
      labels: of one's own data, where a trained model knows them.

    Raises:
      FlagError: the name is unknown, or the settings contradict each other.
    """
    canonical, settings = canonical_name(name), settings or TaskSettings()
    decided = _of_settings(canonical, settings.custom.problem)
    if decided is not None:
        return decided.make(settings, labels)
    if canonical in _registered:
        return _registered[canonical]
    skip = settings.custom.skip_bad_rows
    if canonical in glue.TASKS:
        task = glue.TASKS[canonical]
        return dataclasses.replace(task, skip_bad_rows=True) if skip else task
    return XnliTask(canonical.partition("-")[2] or None, skip)


def of_record(record: Mapping[str, Any]) -> Task:
    """Returns the task that a run was trained on, with the settings of its training.

    Args:
      record: see `estimator.run_folder.trained`; it has the name of a task.

    Raises:
      FlagError: there is no such task here.
    """
    return get_task(record["task_name"], of_tasks.of_record(record), record.get("labels"))


def reads_own(kind: str) -> bool:
    """Returns whether the task custom reads what a family of this kind learns."""
    return kind in _OWN


def settings_of_task(name: str, problem: str) -> frozenset[str]:
    """Returns the names of the settings that a task takes.

    Args:
      name: of the task, as `canonical_name` writes it.
      problem: of one's own data.
    """
    decided = _of_settings(name, problem)
    if decided is None:
        return frozenset() if name in _registered else _OF_GLUE
    return decided.takes


def refuse_foreign(name: str, given: Collection[str], problem: str | None) -> None:
    """Checks that settings of tasks are those of one.

    Args:
      name: of the task, as `canonical_name` writes it.
      given: names of settings, of others too.
      problem: of one's own data; None where it is not given.

    Raises:
      FlagError: some are of another task.
    """
    problem = problem or CustomSettings.problem
    takes = settings_of_task(name, problem)
    foreign = [setting for setting in NAMES if setting in given and setting not in takes]
    if not foreign:
        return
    where = f" --problem={problem}" if name == CUSTOM else ""
    owners = [task for task, settings in _NAMED.items() if foreign[0] in settings.takes]
    owners += [CUSTOM] if any(foreign[0] in settings.takes for settings in _OWN.values()) else []
    raise FlagError(f"--{foreign[0]} belongs to --task_name={' or '.join(owners)}; {name}{where} does not take it")


def _of_settings(name: str, problem: str) -> _OfSettings | None:
    return _OWN[problem] if name == CUSTOM else _NAMED.get(name)


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())
