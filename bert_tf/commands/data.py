"""The data command: fetches published data sets, and checks what is in a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import flags as absl_flags

from bert_tf import files, home
from bert_tf.commands.classifier_flags import CUSTOM
from bert_tf.commands.ending import ended
from bert_tf.commands.flags import Flag, action_of, help_line, read
from bert_tf.errors import DataError, FlagError
from bert_tf.jobs.fine_tune_config import check_custom
from bert_tf.tasks.custom import NAME as CUSTOM_NAME
from bert_tf.tasks.custom import CustomSettings
from bert_tf.tasks.registry import canonical_name, get_task


class Action(NamedTuple):
    """One thing that the command does: `python -m bert_tf data NAME ARGUMENT [FLAGS]`."""

    argument: str
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[str | None, absl_flags.FlagValues], None]


def main(argv: Sequence[str]) -> int:
    """Runs a command line; returns the exit status, see `ending.ended`."""
    return ended(lambda: _run(argv), help_text=help_text, stopped="stopped; run the same command again")


def help_text() -> str:
    """Returns what --help prints."""
    lines = ["Fetches published data sets and checks data:"]
    for name, action in ACTIONS.items():
        lines += ["", f"python -m bert_tf data {name} {action.argument}: {action.help}", *map(help_line, action.flags)]
    return "\n".join(lines) + "\n"


def _run(argv: Sequence[str]) -> int:
    action, words = ACTIONS[action_of(argv, ACTIONS)], list(argv[2:])
    argument = words.pop(0) if words and not words[0].startswith("-") else None
    if argument == "":
        raise FlagError(f"data: {action.argument} is empty: is a variable of the shell not set?")
    action.run(argument, read(["data", *words], action.flags))
    return 0


def _fetch(task: str | None, values: absl_flags.FlagValues) -> None:
    from bert_tf.commands import fetch

    if task is None:
        raise FlagError("data fetch: name a task, as in data fetch MRPC")
    fetch.fetch(
        task,
        Path(values["data_dir"].value or home.folder(os.environ) / "data"),
        source_dir=Path(values["from"].value) if values["from"].value else None,
        sums=[part.strip().lower() for part in (values["sha256"].value or "").split(",") if part.strip()],
    )


def _check(data_dir: str | None, values: absl_flags.FlagValues) -> None:
    from bert_tf.commands import check

    if not values["task_name"].value and data_dir is None:
        raise FlagError(f"data check: name a folder, or --task_name={CUSTOM_NAME} and its files")
    name = values["task_name"].value or _task_of(Path(data_dir or ""))
    custom = CustomSettings(**{row.name: values[row.name].value for row in CUSTOM})
    check_custom(canonical_name(name), [row.name for row in CUSTOM if values[row.name].present])
    task = get_task(name, custom)
    if task.name != CUSTOM_NAME and data_dir is None:
        raise FlagError(f"data check: name the folder of {task.name}")
    if task.name == CUSTOM_NAME and (data_dir or not (custom.train_file or custom.dev_file or custom.test_file)):
        raise FlagError(f"data check: --task_name={CUSTOM_NAME} takes --train_file, --dev_file, --test_file and no folder")
    why = data_dir and files.missing_folder(data_dir)
    if why:
        raise DataError(why, data_dir)
    check.check(task, data_dir, check.find_ruler(values["vocab_file"].value, os.environ))


def _task_of(folder: Path) -> str:
    """Returns the task that a folder is called after."""
    why = files.missing_folder(folder)
    if why:
        raise DataError(why, folder)
    try:
        return canonical_name(folder.absolute().name)
    except FlagError as error:
        problem = str(error).removeprefix("--task_name: ")
        raise DataError(f"the name of the folder is that of no task, add --task_name: {problem}", folder) from error


ACTIONS: Mapping[str, Action] = {
    "fetch": Action(
        "TASK",
        "puts the files of a task where it reads them; XNLI brings all languages",
        (
            Flag("data_dir", str, None, "gets the folder TASK; else data/ of the project, where the classifier looks"),
            Flag("from", str, None, "folder that has the published files already; nothing is downloaded"),
            Flag("sha256", str, None, "of each published file, with commas; else MRPC's are known, others printed"),
        ),
        _fetch,
    ),
    "check": Action(
        "DIR",
        "counts rows, labels, lengths, duplicates, contradictions, and names each row that cannot be used",
        (
            Flag("task_name", str, None, "whose files they are; else that of the name of the folder"),
            Flag("vocab_file", str, None, "word pieces to count; else $BERT_BASE_DIR/vocab.txt, the default checkpoint's"),
            *CUSTOM,
        ),
        _check,
    ),
}
