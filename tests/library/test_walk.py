"""What a command can do the library can, with the same names and defaults."""

from __future__ import annotations

import inspect
import keyword

import pytest

import bert_tf
from bert_tf.errors import FlagError
from tests import declared

WITHOUT_FUNCTION = {"export"}  # a method of a model: bert_tf.load(...).export(...)
COMMANDS = {name: rows for name, rows in declared.settings().items() if name not in WITHOUT_FUNCTION}
WITHOUT_ARGUMENT = {"fine-tune": {"task_name"}, "pretrain": {"seeds"}}  # `task` may be an object; call it for each
WITHOUT_FLAG = {"fine-tune": {"task"}, "data fetch": {"source_dir"}, "vocabulary extend": {"corpus"}}  # two are --from


def function_of(command):
    """Returns the function whose first line names the command."""
    every = [getattr(bert_tf, name) for name in bert_tf.__all__]
    words = f"`python -m bert_tf {command}`"
    (found,) = (one for one in every if inspect.isfunction(one) and words in one.__doc__.partition("\n")[0])
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_keywords_and_their_defaults_are_those_of_the_settings(command):
    parameters = inspect.signature(function_of(command)).parameters.values()
    found = {one.name: one.default for one in parameters if one.default is not inspect.Parameter.empty}
    rows = [row for row in COMMANDS[command] if not keyword.iskeyword(row.name)]
    without = WITHOUT_ARGUMENT.get(command, set()) | {row.name for row in rows if row.positional}
    expected = {row.name: row.default for row in rows if row.name not in without}
    own = WITHOUT_FLAG.get(command, set()) | {row.name for row in rows if row.positional}
    assert {name: default for name, default in found.items() if name not in own} == expected


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"report", "data fetch"}))
def test_an_unknown_setting_is_refused(command):
    function = function_of(command)
    words = [p for p in inspect.signature(function).parameters.values() if p.default is inspect.Parameter.empty]
    words = [p for p in words if p.kind is not p.VAR_KEYWORD]
    with pytest.raises(FlagError, match="unknown setting 'no_such_setting'"):
        function(*("x" for _ in words), no_such_setting=1)
