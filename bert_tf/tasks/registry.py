"""Registry of tasks by name."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional

from bert_tf import extension
from bert_tf.errors import BertError, FlagError, unknown_name
from bert_tf.extension import Extension, NewTask
from bert_tf.settings import setting_names
from bert_tf.tasks import settings as of_tasks
from bert_tf.tasks.names import GLUE, KINDS, LANGUAGES, XNLI
from bert_tf.tasks.settings import CUSTOM, SKIP, CustomSettings, TaskSettings

if TYPE_CHECKING:  # a task imports its family
    from bert_tf.tasks.base import Task

# Other names of tasks in files, leaderboards and papers, folded.
_ALIASES = {
    **dict.fromkeys(("mnlim", "mnlimm", "mnlimatched", "mnlimismatched"), "MNLI"),
    **dict.fromkeys(("diagnostic", "diagnostics"), "AX"),
    **dict.fromkeys(("xnliall", "xnli10"), "XNLI"),
    **{f"xnli{language}": f"XNLI-{language}" for language in LANGUAGES},
}


_registered: dict[str, Task] = {}

Labels = Optional[Sequence[str]]  # of a trained model, if any


# Makes a task by its name from settings, and the names of those that it takes.
_OfSettings = tuple[Callable[[str, TaskSettings, Labels], "Task"], frozenset[str]]


def _of_own_sentences(task: str, settings: TaskSettings, labels: Labels) -> Task:
    del task
    from bert_tf.tasks.sentence.task import CustomTask

    return CustomTask(settings.custom, labels, needs_ids=settings.needs_ids, texts=settings.texts)


def _of_extension(declared: Extension, new: NewTask) -> _OfSettings:
    def make(task: str, settings: TaskSettings, labels: Labels) -> Task:
        task_object: Task = extension.load(new.make)(task, settings, labels)
        return task_object

    return make, frozenset((*setting_names(declared.of_tasks), *new.takes)).difference(new.without)


_OF_GLUE = frozenset((SKIP,))  # and XNLI


@functools.cache
def _of_extensions() -> Mapping[str, NewTask]:
    """Tasks of extensions by name; raises BertError for a name of the core."""
    tasks = {name: task for entry in extension.installed().values() for name, task in entry.tasks.items()}
    taken = set(map(_folded, (*GLUE, XNLI, *_ALIASES, CUSTOM)))
    for name, task in tasks.items():  # ours come first
        if _folded(name) in taken:
            raise BertError(f"{task.make}: there is a task {name} already; correct or uninstall its package")
        taken.add(_folded(name))
    return tasks


@functools.cache
def _named() -> Mapping[str, _OfSettings]:
    """Tasks with settings, by name."""
    _of_extensions()  # refuses names that are taken
    return {name: _of_extension(entry, task) for entry in extension.installed().values() for name, task in entry.tasks.items()}


@functools.cache
def _own() -> Mapping[str, _OfSettings]:
    """Custom data, by --problem."""
    return {
        **dict.fromkeys(KINDS, (_of_own_sentences, frozenset(setting_names(CustomSettings)))),
        **{
            kind: _of_extension(entry, new.problem)
            for entry in extension.installed().values()
            for kind, new in entry.kinds.items()
            if new.problem
        },
    }


def register(task: Task) -> None:
    """Adds a task under its name; raises `ValueError` if the name is taken."""
    if _folded(task.name) in map(_folded, (*known_names(), *_ALIASES)):
        raise ValueError(f"task {task.name!r} already exists")
    _registered[task.name] = task


def is_registered(name: str) -> bool:
    """Whether this program has registered the task, which other processes then do not know."""
    return canonical_name(name) in _registered


def known_names() -> tuple[str, ...]:
    """Returns the names of all tasks; one XNLI language stands for all."""
    return (*GLUE, XNLI, f"{XNLI}-en", *_named(), CUSTOM, *_registered)


def names_with_labels() -> tuple[str, ...]:
    """Returns the names of the tasks to fine-tune on."""
    return tuple(name for name in known_names() if not _own_command(name))


def refuse_unlabelled(name: str) -> None:
    """Raises FlagError for a task without labels, by its canonical name: only its own command reads it."""
    if _own_command(name):
        raise FlagError(f"--task_name={name} has a command of its own: python -m bert_tf {_own_command(name)}")


def _own_command(name: str) -> str:
    """Empty for tasks with labels."""
    return _of_extensions()[name].command if name in _of_extensions() else ""


def canonical_name(name: str) -> str:
    """Resolves a name by its letters and digits, ignoring case: sst2 is SST-2, xnli-all is XNLI; raises `FlagError`."""
    folded = _folded(name)
    names = {**{_folded(known): known for known in known_names()}, **_ALIASES}
    if folded in names:
        return names[folded]
    if folded.startswith("xnli"):
        raise FlagError(f"--task_name: XNLI has no language {folded[4:]!r}, only {', '.join(LANGUAGES)}")
    raise FlagError(f"--task_name: {unknown_name('task', name, known_names())}")


def folder_name(task: str) -> str:
    """Returns the folder name of a task's files: its canonical name, or that of a task with the same files."""
    name, _, _ = task.partition("-")
    of_extension = _of_extensions().get(task)
    return name if name == XNLI else of_extension.folder or task if of_extension else task


def get_task(name: str, settings: TaskSettings | None = None, labels: Labels = None) -> Task:
    """Returns a task by name; `labels` are those of a trained model on custom data. Raises `FlagError`."""
    canonical, settings = canonical_name(name), settings or TaskSettings()
    decided = _of_settings(canonical, settings.custom.problem)
    if decided is not None:
        return decided[0](canonical, settings, labels)
    if canonical in _registered:
        return _registered[canonical]
    skip = settings.custom.skip_bad_rows
    if canonical in GLUE:
        from bert_tf.tasks import glue

        task = glue.TASKS[canonical]
        return dataclasses.replace(task, skip_bad_rows=True) if skip else task
    from bert_tf.tasks.xnli import XnliTask

    return XnliTask(canonical.partition("-")[2] or None, skip)


def of_record(record: Mapping[str, Any]) -> Task:
    """Restores the task of a run, with its settings, from the record; raises `FlagError` for an unknown task."""
    return get_task(record["task_name"], of_tasks.of_record(record), record.get("labels"))


def reads_own(kind: str) -> bool:
    """Whether the task custom can read data for a family of this kind."""
    return kind in _own()


def settings_of_task(name: str, problem: str) -> frozenset[str]:
    """Settings of a task by its canonical name; `problem` is that of custom data."""
    decided = _of_settings(name, problem)
    if decided is None:
        return frozenset() if name in _registered else _OF_GLUE
    return decided[1]


def reject_unrelated_settings(name: str, names: Collection[str], problem: str | None) -> None:
    """Rejects task settings that belong to another task; others of the `names` are ignored. Raises `FlagError`."""
    problem = problem or CustomSettings.problem
    takes = settings_of_task(name, problem)
    foreign = [setting for setting in of_tasks.all_names() if setting in names and setting not in takes]
    if not foreign:
        return
    where = f" --problem={problem}" if name == CUSTOM else ""
    owners = [task for task, (_, known) in _named().items() if foreign[0] in known]
    owners += [CUSTOM] if any(foreign[0] in known for _, known in _own().values()) else []
    raise FlagError(f"--{foreign[0]} belongs to --task_name={' or '.join(owners)}; {name}{where} does not take it")


def _of_settings(name: str, problem: str) -> _OfSettings | None:
    return _own()[problem] if name == CUSTOM else _named().get(name)


def _folded(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())
