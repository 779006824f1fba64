"""Runs a command line as declared by its operation."""

from __future__ import annotations

import functools
import os
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from bert_tf import settings
from bert_tf.cli.beginning import setup_logging
from bert_tf.cli.ending import run_command
from bert_tf.cli.failure import reports_go_to
from bert_tf.cli.flags import WIDTH, Flag, action_of, by_name, help_line, read, read_with_words
from bert_tf.errors import FlagError
from bert_tf.operations.command import Actions, Call, Command
from bert_tf.settings import Setting, settings_of

BEAM = Flag("beam", bool, False, "run as an Apache Beam pipeline; arguments after -- go to Beam: -- --runner=DirectRunner")
VERBOSITY = Flag("verbosity", int, 0, "-1: warnings, 0: log, 1: TensorFlow's messages too")
_REST = "--"  # arguments after it are Beam's


def main(argv: Sequence[str], command: Command | Actions) -> int:
    """Runs a command line, its name first; returns the exit status, see `ending.run_command`."""
    return run_command(lambda: _run(argv, command), help_text=lambda: help_text(argv[0], command), stopped=command.stopped)


def help_text(name: str, command: Command | Actions) -> str:
    if isinstance(command, Command):
        return _help_of(command)
    lines = [command.title]
    for action, one in command.actions.items():
        usage = " ".join(("python -m bert_tf", name, action, *map(_usage, _words(one))))
        head = textwrap.fill(f"{usage}: {one.title}", WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        lines += ["", head, *map(help_line, flags_of(one))]
    return "\n".join(lines) + "\n"


def _help_of(command: Command) -> str:
    lines = [command.title, ""]
    sections = {title: [row for row in rows if not row.positional] for title, rows in command.sections.items()}
    for title, rows in sections.items():
        lines += [f"{title}:", *map(help_line, rows), ""]
    rest = flags_of(command)[sum(map(len, sections.values())) :]
    lines += [help_line(row) for row in rest if row.help]
    return "\n".join([*lines, *[command.note] * bool(command.note)]) + "\n"


def flags_of(command: Command) -> tuple[Flag, ...]:
    rows = (row for row in settings_of_command(command) if not row.positional)
    return (*rows, *command.own, *[BEAM] * command.has_beam, *[VERBOSITY] * (command.log is True))


def settings_of_command(command: Command) -> list[Setting]:
    if command.settings is not None:
        return list(settings_of(command.settings))
    return [row for rows in command.sections.values() for row in rows]


def parse(argv: Sequence[str], command: Command | Actions) -> tuple[Command, Call]:
    """Returns the command, or the action that is named, and its settings; raises FlagError, or HelpAsked."""
    if isinstance(command, Actions):
        action = action_of(argv, command.actions)
        return command.actions[action], _call([f"{argv[0]} {action}", *argv[2:]], command.actions[action])
    return command, _call(argv, command)


def _call(argv: Sequence[str], command: Command) -> Call:
    argv = command.rewrite(argv)
    end = argv.index(_REST) if command.has_beam and _REST in argv else len(argv)
    positional = _words(command)
    words, parsed = read_with_words(argv[:end], flags_of(command)) if positional else ([], read(argv[:end], flags_of(command)))
    present = frozenset(name for name in parsed if parsed[name].present)
    given = {row.name: parsed[row.name].value for row in settings_of_command(command) if row.name in present}
    verbosity = parsed[VERBOSITY.name].value if command.log is True else 0
    beam = _beam(argv[end + 1 :], verbosity, asked=parsed[BEAM.name].value) if command.has_beam else None
    values = {**given, **_bound(argv[0], words, positional)}
    made: Any = command.make(**values) if command.make else settings.read(cast(type, command.settings), values)
    return Call(made, by_name(parsed, command.own), verbosity, beam, present, values)


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
    from bert_tf.training.beam_job import Beam

    return Beam(tuple(rest), functools.partial(begin_worker, verbosity))


def _words(command: Command) -> list[Setting]:
    return [row for row in settings_of_command(command) if row.positional]


def _usage(row: Setting) -> str:
    name = row.name.upper()
    if row.kind is tuple:
        name = f"{name if name.endswith('US') else name.removesuffix('S')} ..."
    return name if row.required else f"[{name}]"


def _bound(name: str, words: Sequence[str], rows: Sequence[Setting]) -> Mapping[str, Any]:
    """Maps settings to the words of a command line; a setting with several values takes the rest."""
    fewest = sum(row.required for row in rows)
    usage = " ".join(map(_usage, rows))
    if len(words) < fewest:
        missing = " and ".join(_usage(row) for row in rows[len(words) :] if row.required)
        raise FlagError(f"{name}: {missing} missing: python -m bert_tf {name} {usage}; flags are written --name=value")
    if len(words) > len(rows) and not any(row.kind is tuple for row in rows):
        raise FlagError(f"{name}: {len(words)} names given, {usage} expected; flags are written --name=value")
    bound: dict[str, Any] = dict(zip((row.name for row in rows), words))
    if rows and rows[-1].kind is tuple and words:
        bound[rows[-1].name] = list(words[len(rows) - 1 :])
    return bound


def _run(argv: Sequence[str], command: Command | Actions) -> int:
    one, call = parse(argv, command)
    if callable(one.log):
        setup_logging(*one.log(call.settings))
    elif one.log:
        setup_logging(call.verbosity)
    if one.reports_to is not None:
        reports_go_to(one.reports_to(call.settings))
    _refuse_missing(settings_of_command(one), call.values)
    return one.run(call) or 0


def begin_worker(verbosity: int) -> Mapping[str, str]:
    """Sets up a process started by Beam; returns its environment."""
    setup_logging(verbosity)
    return os.environ
