"""What a command can do the library can, with the same names and defaults."""

from __future__ import annotations

import inspect

import pytest

import bert_tf
from bert_tf.errors import FlagError
from bert_tf.operations import fine_tune
from tests import declared

FLAGS = declared.flags()
# Functions that are not named as their command, or ACTION_COMMAND.
NAMES = {
    "pretraining-data": "make_pretraining_data",
    "predict": "predict_files",
    "encode": "encode_file",
    "checkpoint diff": "diff_checkpoints",
    "checkpoint average": "average_checkpoints",
    "report": "write_report",  # bert_tf.report is the package that makes the page
    **{f"memory {action}": f"memory_{action}" for action in ("plan", "report", "peak", "diff")},
}
WITHOUT_FUNCTION = {
    "export": "is a method of a model: bert_tf.load(...).export(...)",
}
TPU = dict.fromkeys((row.name for row in fine_tune.TPU), "of the published script, without effect")
# Flags without a keyword argument.
WITHOUT_ARGUMENT = {
    "fine-tune": {"task_name": "the argument `task`, which may be an object", **TPU},
    "pretrain": {"seeds": "call it for each", **TPU},
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


def name_of(command):
    return NAMES.get(command) or "_".join(reversed(command.replace("-", "_").split()))


PAIRS = {command: (name_of(command), flags) for command, flags in FLAGS.items() if command not in WITHOUT_FUNCTION}


def arguments(function):
    """Returns the default of each keyword argument."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}


def test_every_command_and_action_is_a_function_or_says_why_not():
    assert {name for name, _ in PAIRS.values()} <= set(bert_tf.__all__)


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
