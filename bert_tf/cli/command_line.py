"""Runs a command line as declared by its operation."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bert_tf import settings
from bert_tf.cli.flags import action_of, asks_for_all, by_name, parse_flags, read_with_words
from bert_tf.cli.process import reports_go_to, run_command, setup_logging
from bert_tf.errors import FlagError
from bert_tf.operations.command import BEAM, VERBOSITY, Actions, Call, Command, flags_of, settings_of_command, usage, words_of
from bert_tf.settings import Setting

_REST = "--"  # arguments after it are Beam's


def main(argv: Sequence[str], command: Command | Actions) -> int:
    """Runs a command line, its name first; returns the exit status, see `process.run_command`."""
    return run_command(
        lambda: _run(argv, command),
        help_text=lambda: _help_text(argv, command),
        stopped=command.stopped,
    )


def _help_text(argv: Sequence[str], command: Command | Actions) -> str:
    from bert_tf.cli.help import help_text

    return help_text(argv, command, everything=asks_for_all(argv))


def parse(argv: Sequence[str], command: Command | Actions) -> tuple[Command, Call]:
    """Returns the command, or the action that is named, and its settings; raises FlagError, or HelpAsked."""
    if isinstance(command, Actions):
        action = action_of(argv, command.actions)
        return command.actions[action], _call([f"{argv[0]} {action}", *argv[2:]], command.actions[action])
    return command, _call(argv, command)


def _call(argv: Sequence[str], command: Command) -> Call:
    argv = command.rewrite(argv)
    end = argv.index(_REST) if command.has_beam and _REST in argv else len(argv)
    positional = words_of(command)
    words, parsed = (
        read_with_words(argv[:end], flags_of(command)) if positional else ([], parse_flags(argv[:end], flags_of(command)))
    )
    present = frozenset(name for name in parsed if parsed[name].present)
    flag_values = {row.name: parsed[row.name].value for row in settings_of_command(command) if row.name in present}
    verbosity = parsed[VERBOSITY.name].value if command.log is True else 0
    beam = _beam(argv[end + 1 :], verbosity, asked=parsed[BEAM.name].value) if command.has_beam else None
    values = {**flag_values, **_bound(argv[0], words, positional)}
    call_settings: Any = (
        command.make(**values) if command.make else settings.read_settings(cast(type, command.settings), values)
    )
    return Call(call_settings, by_name(parsed, command.own), verbosity, beam, present, values)


def _refuse_missing(rows: Iterable[Setting], values: Mapping[str, Any]) -> None:
    for row in rows:
        if row.refuse_missing is not None and row.name in values:
            value = values[row.name]
            for name in [value] if isinstance(value, str) else value:
                row.refuse_missing(name)


def _beam(rest: Sequence[str], verbosity: int, *, asked: bool) -> Any:
    if rest and not asked:
        raise FlagError(f"{rest[0]!r} after -- is for Apache Beam; add --beam")
    if not asked:
        return None
    from bert_tf.library.keywords import Beam

    return Beam(tuple(rest), functools.partial(begin_worker, verbosity))


def _bound(name: str, words: Sequence[str], rows: Sequence[Setting]) -> Mapping[str, Any]:
    """Maps settings to the words of a command line; a setting with several values takes the rest."""
    fewest = sum(row.required for row in rows)
    expected = " ".join(map(usage, rows))
    if len(words) < fewest:
        missing = " and ".join(usage(row) for row in rows[len(words) :] if row.required)
        raise FlagError(f"{name}: {missing} missing: python -m bert_tf {name} {expected}; flags are written --name=value")
    if len(words) > len(rows) and not any(row.kind is tuple for row in rows):
        raise FlagError(f"{name}: {len(words)} names given, {expected} expected; flags are written --name=value")
    bound: dict[str, Any] = dict(zip((row.name for row in rows), words))
    if rows and rows[-1].kind is tuple and words:
        bound[rows[-1].name] = list(words[len(rows) - 1 :])
    return bound


def _run(argv: Sequence[str], command: Command | Actions) -> int:
    parsed, call = parse(argv, command)
    if callable(parsed.log):
        setup_logging(*parsed.log(call.settings))
    elif parsed.log:
        setup_logging(call.verbosity)
    if parsed.reports_to is not None:
        reports_go_to(parsed.reports_to(call.settings))
    _refuse_missing(settings_of_command(parsed), call.values)
    return parsed.run(call) or 0


def begin_worker(verbosity: int) -> Mapping[str, str]:
    """Sets up a process started by Beam; returns its environment."""
    setup_logging(verbosity)
    return os.environ
