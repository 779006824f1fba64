"""The commands as they are declared: the flags of each, and a parser of its command lines."""

from bert_tf.__main__ import COMMANDS, operation
from bert_tf.cli import command_line
from bert_tf.operations import command as declaring

NAMES = sorted(COMMANDS.keys() - {"benchmark"})  # which belongs to a clone


def operations():
    """Returns what each command declares, and each action of a command: "checkpoint diff"."""
    by_name = {}
    for name in NAMES:
        command = operation(name)
        actions = getattr(command, "actions", {"": command})
        by_name.update({f"{name} {action}".strip(): one for action, one in actions.items()})
    return by_name


def flags():
    return {name: list(declaring.flags_of(one)) for name, one in operations().items()}


def settings():
    """Returns those that a program can give too: none that says how to print."""
    beam = declaring.BEAM  # a keyword too
    return {name: [*declaring.settings_of_command(one), *[beam] * one.has_beam] for name, one in operations().items()}


def parser(name):
    """Returns a function of a command line, the name first, that raises what the command would say of it."""
    return lambda argv: command_line.parse(argv, operation(name))
