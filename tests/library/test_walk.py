"""What a command can do the library can, with the same names and defaults."""

from __future__ import annotations

import importlib
import inspect

import pytest

import bert_tf
from bert_tf.__main__ import _MODULES, _OPERATIONS, COMMANDS
from bert_tf.cli.command_line import flags_of
from bert_tf.commands import (
    checkpoint,
    classifier_flags,
    data,
    devices,
    encode,
    evaluate,
    fill_mask,
    memory,
    memory_plan,
    predict,
    pretraining_data,
    profile,
    report,
    reproduce,
    serve,
    vocabulary,
)
from bert_tf.errors import FlagError
from bert_tf.jobs import pretrain_config
from bert_tf.operations import search

CLASSIFIER = [row for rows in classifier_flags.GROUPS.values() for row in rows]

# Of each command, or of each of its actions, the function, and the flags.
PAIRS = {
    "fine-tune": ("fine_tune", CLASSIFIER),
    "pretrain": ("pretrain", [row for rows in pretrain_config.GROUPS.values() for row in rows]),
    "pretraining-data": ("make_pretraining_data", pretraining_data.FLAGS),
    "evaluate": ("evaluate", evaluate.FLAGS),
    "predict": ("predict_files", predict.FLAGS),
    "encode": ("encode_file", encode.FLAGS),
    "fill-mask": ("fill_mask", fill_mask.FLAGS),
    "search": ("search", flags_of(search.COMMAND)),
    **{
        f"checkpoint {action}": (f"{action}_checkpoint{'s' * (action in ('diff', 'average'))}", row.flags)
        for action, row in checkpoint.ACTIONS.items()
    },
    "serve": ("serve", serve.FLAGS),
    **{f"vocabulary {action}": (f"{action}_vocabulary", row.flags) for action, row in vocabulary.ACTIONS.items()},
    "data fetch": ("fetch_data", data.ACTIONS["fetch"].flags),
    "data check": ("check_data", data.ACTIONS["check"].flags),
    "devices": ("devices", (*devices.FLAGS, *devices.DEVICES)),
    "memory plan": ("memory_plan", memory_plan.FLAGS),
    "memory report": ("memory_report", memory.ACTIONS["report"].flags),
    "memory peak": ("memory_peak", memory.ACTIONS["peak"].flags),
    "memory diff": ("memory_diff", memory.ACTIONS["diff"].flags),
    "report": ("write_report", report.FLAGS),  # bert_tf.report is the package that makes the page
    "profile": ("profile", profile.FLAGS),
    "reproduce": ("reproduce", reproduce.FLAGS),
}
WITHOUT_FUNCTION = {
    "export": "is a method of a model: bert_tf.load(...).export(...)",
    "benchmark": "belongs to a clone: it is not installed with the package",
}
# Flags without a keyword argument.
WITHOUT_ARGUMENT = {
    "fine-tune": {"task_name": "the argument `task`, which may be an object"},
    "pretrain": {"seeds": "call it for each"},
    "pretraining-data": {"verbosity": "of the log of a command"},
    "evaluate": {"verbosity": "of the log of a command"},
    "predict": {"verbosity": "of the log of a command"},
    "encode": {"verbosity": "of the log of a command"},
    "fill-mask": {"verbosity": "of the log of a command"},
    "search": {"verbosity": "of the log of a command", "json": "the form of what is printed; the value has all of it"},
    "checkpoint inspect": {"format": "the form of what is printed; the value has all of it"},
    "checkpoint diff": {
        "format": "the form of what is printed; the value has all of it",
        "top": "how many are printed; the value has all",
    },
    **{
        f"checkpoint {action}": {"verbosity": "of the log of a command"} for action in ("average", "strip", "convert", "rename")
    },
    "serve": {"verbosity": "of the log of a command"},
    "vocabulary make": {"verbosity": "of the log of a command"},
    "vocabulary extend": {
        "verbosity": "of the log of a command",
        "from": "a word of Python's: the argument is corpus",
    },
    "vocabulary show": {"verbosity": "of the log of a command"},
    "data fetch": {"from": "a word of Python's: the argument is source_dir"},
    "devices": {"json": "the form of what is printed; the value has all of it"},
    "memory plan": {"json": "the form of what is printed"},
    "memory report": {"json": "the form of what is printed"},
    "memory peak": {"json": "the form of what is printed"},
    "memory diff": {"json": "the form of what is printed"},
    "profile": {"table": "which of the tables is printed; the value has all", "format": "the form of what is printed"},
}
# Keyword arguments without a flag.
WITHOUT_FLAG = {"data fetch": {"source_dir"}, "vocabulary extend": {"checkpoint", "corpus"}}


def actions():
    """Yields each command, those with actions once for each."""
    for command in COMMANDS:
        for action in actions_of(_MODULES.get(command, command).replace("-", "_")):
            yield f"{command} {action}" if action else command
    yield f"memory {memory.PLAN}"


def actions_of(module):
    if module in _OPERATIONS:
        return getattr(importlib.import_module(f"bert_tf.operations.{module}").COMMAND, "actions", {None: None})
    return getattr(importlib.import_module(f"bert_tf.commands.{module}"), "ACTIONS", {None: None})


def arguments(function):
    """Returns the default of each keyword argument."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def test_every_command_and_action_is_a_function_or_says_why_not():
    assert set(actions()) == PAIRS.keys() | WITHOUT_FUNCTION.keys()


@pytest.mark.parametrize("command", PAIRS)
def test_names_and_defaults_are_those_of_the_flags(command):
    name, flags = PAIRS[command]
    found = arguments(getattr(bert_tf, name))
    expected = {row.name: row.default for row in flags if row.name not in WITHOUT_ARGUMENT.get(command, {})}
    own = {"fine-tune": {"task"}, "data check": {"data_dir"}}.get(command, set()) | WITHOUT_FLAG.get(command, set())
    assert {name: default for name, default in found.items() if name not in own} == expected


@pytest.mark.parametrize("command", WITHOUT_ARGUMENT)
def test_what_is_left_out_is_a_flag(command):
    assert WITHOUT_ARGUMENT[command].keys() <= {row.name for row in PAIRS[command][1]}


@pytest.mark.parametrize("command", sorted(PAIRS.keys() - {"report", "data fetch"}))
def test_an_unknown_setting_is_refused(command):
    function = getattr(bert_tf, PAIRS[command][0])
    words = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
    with pytest.raises(FlagError, match="unknown setting 'no_such_setting'"):
        function(*("x" for _ in words), no_such_setting=1)
