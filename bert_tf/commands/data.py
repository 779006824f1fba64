"""The data command: downloads published data sets and checks data folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from absl import flags as absl_flags

from bert_tf import log_form
from bert_tf.cli.ending import run_command
from bert_tf.cli.flags import Flag, action_of, help_line, read
from bert_tf.commands.batch_flags import given
from bert_tf.errors import FlagError, PreflightError
from bert_tf.jobs import check_data, fetch


class Action(NamedTuple):
    """`python -m bert_tf data NAME ARGUMENT [FLAGS]`."""

    argument: str
    help: str
    flags: tuple[Flag, ...]
    run: Callable[[str | None, absl_flags.FlagValues], None]


def main(argv: Sequence[str]) -> int:
    return run_command(lambda: _run(argv), help_text=help_text, stopped="stopped; run the same command again")


def help_text() -> str:
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
    if task is None:
        raise FlagError("data fetch: name a task, as in data fetch MRPC")
    log_form.set_up(log_form.SHORT, 0)
    fetch.fetch(
        task,
        Path(values["data_dir"].value or fetch.default_folder(os.environ)),
        source_dir=Path(values["from"].value) if values["from"].value else None,
        sums=fetch.sums_of(values["sha256"].value),
        say=print,
    )


def _check(data_dir: str | None, values: absl_flags.FlagValues) -> None:
    config = check_data.configured(data_dir, **given(values, check_data.SETTINGS))
    found = check_data.check(config.task, config.data_dir, check_data.find_ruler(config.vocab_file, os.environ))
    print(found)
    if found.problems:
        raise PreflightError(list(found.problems))


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
        check_data.SETTINGS,
        _check,
    ),
}
