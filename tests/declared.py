"""The commands as they are declared: the flags of each, and a parser of its command lines."""

from __future__ import annotations

import importlib

from bert_tf.__main__ import _MODULES, _OPERATIONS, COMMANDS
from bert_tf.cli import command_line

NO_TABLE = {"benchmark"}  # belongs to a clone


def module_of(name):
    room = "operations" if name in _OPERATIONS else "commands"
    return importlib.import_module(f"bert_tf.{room}.{_MODULES.get(name, name).replace('-', '_')}")


def flags():
    """Returns the flags of each command, and of each action of a command: "checkpoint diff"."""
    tables = {}
    for name in sorted(COMMANDS.keys() - NO_TABLE):
        module = module_of(name)
        if name in _OPERATIONS:
            actions = getattr(module.COMMAND, "actions", {"": module.COMMAND})
            of_actions = {action: command_line.flags_of(one) for action, one in actions.items()}
        elif hasattr(module, "ACTIONS"):
            of_actions = {action: row.flags for action, row in module.ACTIONS.items()}
        else:
            of_actions = {"": (*module.FLAGS, *getattr(module, "DEVICES", ()))}
        tables.update({f"{name} {action}".strip(): list(rows) for action, rows in of_actions.items()})
    if "memory" not in _OPERATIONS:
        tables["memory plan"] = list(importlib.import_module("bert_tf.commands.memory_plan").FLAGS)
    return tables


def parser(name):
    """Returns a function of a command line, the name first, that raises what the command would say of it."""
    module = module_of(name)
    return (lambda argv: command_line.parse(argv, module.COMMAND)) if name in _OPERATIONS else module.parse
