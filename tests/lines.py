"""Command lines of operations, in this process."""

from typing import Any

from bert_tf import __main__ as front
from bert_tf.cli import command_line
from bert_tf.operations.command import Call


def command(name: str) -> Any:
    return front.operation(name)


def run(name: str, *arguments: object, **flags: object) -> int:
    """Runs a command; `flags` by name."""
    line = [*map(str, arguments), *(f"--{flag}={value}" for flag, value in flags.items())]
    return command_line.main([name, *line], command(name))


def parse(name: str, *arguments: str) -> Call:
    return command_line.parse([name, *arguments], command(name))[1]
