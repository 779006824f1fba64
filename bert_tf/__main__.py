"""The command line: python -m bert_tf COMMAND, or bert-tf COMMAND if the package is installed."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import itertools
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bert_tf import extension, home
from bert_tf.errors import BertError, unknown_name
from bert_tf.runtime import noise, quick_import

if TYPE_CHECKING:
    from bert_tf.operations.command import Actions, Command

# Commands of the core by group, each a module of `bert_tf.operations`, with its line in --help.
_OF_CORE: Mapping[str, Mapping[str, str]] = {
    "Train, evaluate, predict": {
        "fine-tune": "fine-tunes, evaluates and predicts; the same as run_classifier.py",
        "predict": "predicts files or pipes of any length with a trained model",
    },
    "Use elsewhere": {},  # all extensions', as those of the next groups
    "Data and machine": {},
    "Look at runs": {},
    "Compare": {
        "benchmark": "compares speed and memory with other libraries",
    },
}
_FIRST = {
    "Try it on the bundled sample, and open out/mrpc/report.html": "fine-tune --task_name=MRPC",
    "Train on your own CSV with the columns text and label": "fine-tune --task_name=custom --train_file=train.csv"
    " --dev_file=dev.csv --text_a=text --label_column=label --output_dir=out/mine",
    "Predict with it": "predict --checkpoint=out/mine --input=new.csv --output=predictions.csv",
}  # what to do first
_ALIASES = {"classifier": "fine-tune"}  # the name of the published script
_COMPUTE = frozenset({"fine-tune", "predict"})  # all use TensorFlow
_OF_EXTENSIONS = extension.commands()
_EVERY: Mapping[str, Mapping[str, str]] = {
    group: {
        **_OF_CORE.get(group, {}),
        **{name: command.line for name, command in _OF_EXTENSIONS.items() if command.group == group},
    }
    for group in dict.fromkeys((*_OF_CORE, *(command.group for command in _OF_EXTENSIONS.values() if command.group)))
}
GROUPS = {group: commands for group, commands in _EVERY.items() if commands}
COMMANDS = {name: line for group in GROUPS.values() for name, line in group.items()}

_OF_THE_LOG = ("help", "verbosity", "log_form", "flagfile")  # in flags that set, or may set, what is printed
_HELP = ("--help", "--help=all", "-h", "-help", "help")


def help_text() -> str:
    from bert_tf.cli.help import example_lines, filled

    lines = [f"usage: {_program()} COMMAND [FLAGS]", ""]
    for purpose, line in _FIRST.items():
        lines += [f"{purpose}:", *example_lines(f"{_program()} {line}"), ""]
    width = max(map(len, COMMANDS)) + 4
    for group, commands in GROUPS.items():
        rows = (filled(f"  {name:<{width - 2}}{line}", " " * width) for name, line in commands.items())
        lines += [f"{group}:", *itertools.chain.from_iterable(rows), ""]
    return "\n".join([*lines, f"{_program()} COMMAND --help explains a command, --help=all all its flags."]) + "\n"


def _program() -> str:
    name = Path(sys.argv[0]).name
    return name if name == "bert-tf" else "python -m bert_tf"


def main(argv: list[str]) -> int:
    """Runs a command; returns its exit status, 2 if it is missing or unknown."""
    _refuse_misplaced()
    word = argv[1] if len(argv) > 1 else None
    name = _ALIASES.get(str(word), word)
    if name in _HELP:
        sys.stdout.write(help_text())
        return 0
    if name not in COMMANDS:
        _refuse_incomplete(str(name))
        sys.stderr.write(help_text() if name is None else f"error: {unknown_name('command', name, COMMANDS)}\n")
        return 2
    of_extension = _OF_EXTENSIONS.get(name)
    computes = (of_extension.computes if of_extension else name in _COMPUTE) and not any(map(_names_other_format, argv))
    if computes and not any(word in argument for argument in argv for word in _OF_THE_LOG):
        noise.quiet_before_import()  # the default of these commands
        quick_import.load_ahead()
    if name == "benchmark":
        return _benchmark(argv[1:])
    from bert_tf.cli import command_line

    return command_line.main(argv[1:], operation(name))


def _names_other_format(argument: str) -> bool:
    """Whether an argument, as FOLDER or --checkpoint=FOLDER, names a model without a checkpoint."""
    from bert_tf.checkpoints import model_formats

    with contextlib.suppress(BertError, OSError):  # it is said later
        return model_formats.file_of(argument.rpartition("=")[2]) is not None
    return False


def operation(name: str) -> Command | Actions:
    """The declaration of a command, from its module in `bert_tf.operations`, or of an extension."""
    is_core = any(name in commands for commands in _OF_CORE.values())
    module = f"bert_tf.operations.{name.replace('-', '_')}"
    declared: Command | Actions = extension.load(f"{module}:COMMAND" if is_core else _OF_EXTENSIONS[name].declaration)
    more = {key.partition(" ")[2]: entry for key, entry in _OF_EXTENSIONS.items() if key.startswith(f"{name} ")}
    if not more:
        return declared
    if not hasattr(declared, "actions"):
        raise BertError(f"an extension adds {name} {min(more)}, but {name} has no actions; correct or uninstall its package")
    added = {key: extension.load(entry.declaration) for key, entry in more.items()}
    actions = cast("Actions", declared)
    return dataclasses.replace(actions, actions={**actions.actions, **added})


def _refuse_misplaced() -> None:
    """Raises BertError for a command of an extension that a command of the core is."""
    extension.refuse_broken()
    core = {name for commands in _OF_CORE.values() for name in commands}
    for name in _OF_EXTENSIONS:
        if name in core:
            raise BertError(f"an extension names its command {name}, which there is already; correct or uninstall its package")


def _refuse_incomplete(name: str) -> None:
    """Raises BertError for a command of which there is nothing but actions that extensions add."""
    for action in _OF_EXTENSIONS:
        if action.partition(" ")[0] == name:
            raise BertError(f"the command {name} is missing, to which an extension adds {action} (docs/extensions.md)")


def _benchmark(argv: list[str]) -> int:
    """Runs the benchmark, which lies beside the package in a clone."""
    project = home.clone()
    if project is None:
        raise BertError("the benchmark is not installed with the package: clone the project, and run this command there")
    sys.path.insert(0, str(project))
    return int(importlib.import_module("benchmarks.command_line").main(argv))


def run(argv: list[str]) -> int:
    """Runs `main` as a whole process: errors during imports are one line, too."""
    try:
        from bert_tf.io import streams

        streams.make_safe()
        from bert_tf.cli.process import run_command

        return run_command(lambda: main(argv), help_text=str, stopped="stopped")
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130


def console() -> int:
    """The installed script bert-tf."""
    return run(sys.argv)


if __name__ == "__main__":
    sys.exit(run(sys.argv))
