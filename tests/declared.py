"""The commands as they are declared: the flags of each, and a parser of its command lines."""

from __future__ import annotations

import importlib

from bert_tf.__main__ import _MODULES, _OPERATIONS, COMMANDS
from bert_tf.cli import command_line

NO_TABLE = {"benchmark"}  # belongs to a clone


def module_of(name):
    room = "operations" if name in _OPERATIONS else "commands"
    return importlib.import_module(f"bert_tf.{room}.{_MODULES.get(name, name).replace('-', '_')}")


def operations():
    """Returns what each command declares, and each action of a command: "checkpoint diff"."""
    found = {}
    for name in sorted(_OPERATIONS):
        command = module_of(name).COMMAND
        actions = getattr(command, "actions", {"": command})
        found.update({f"{name} {action}".strip(): one for action, one in actions.items()})
    return found


def _modules():
    return {name: list(module_of(name).FLAGS) for name in sorted(COMMANDS.keys() - NO_TABLE - _OPERATIONS)}


def flags():
    return {**{name: list(command_line.flags_of(one)) for name, one in operations().items()}, **_modules()}


def settings():
    """Returns those that a program can give too: none that says how to print."""
    found = {name: command_line.settings_of_command(one) for name, one in operations().items()}
    return {**found, **{name: [row for row in rows if row.name != "verbosity"] for name, rows in _modules().items()}}


def parser(name):
    """Returns a function of a command line, the name first, that raises what the command would say of it."""
    module = module_of(name)
    return (lambda argv: command_line.parse(argv, module.COMMAND)) if name in _OPERATIONS else module.parse
