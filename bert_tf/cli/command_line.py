"""Runs a command line as declared by its operation."""

from __future__ import annotations

import codecs
import functools
import os
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

from absl import flags

from bert_tf import settings
from bert_tf.cli.process import HelpAsked, reports_go_to, run_command, setup_logging
from bert_tf.errors import FlagError, unknown_name
from bert_tf.io import documents, files
from bert_tf.operations.command import BEAM, VERBOSITY, Actions, Call, Command, flags_of, settings_of_command, usage, words_of
from bert_tf.settings import Setting, check, left_empty, nearest

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


_OF_ABSL = ("flagfile", "undefok")  # absl reads them itself and ignores empty ones
# Names from the previous version, accepted until the next one.
_RENAMED = {"lean_gradients": "custom_gradients", "skip_unread": "last_layer_cls_only"}
_EARLIER = re.compile(rf"^(--?(?:no)?)({'|'.join(_RENAMED)})(?==|$)")
_EMPTY = re.compile(r"flag --(\w+)=: ")  # start of absl's errors about numbers and switches without a value


Flag = Setting  # one row of the table


def parse_flags(argv: Sequence[str], rows: Sequence[Flag]) -> flags.FlagValues:
    """Parses flags only; `argv` starts with the command.

    Raises FlagError for an unknown, empty or mistyped flag or a positional argument, HelpAsked for --help.
    """
    _refuse_odd_bytes(argv)
    _check_flags_of_absl(argv)
    argv = ["--help" if asks_for_all([word]) else word for word in argv]
    values = _define(rows)
    try:
        rest = values([_EARLIER.sub(lambda match: match[1] + _RENAMED[match[2]], word) for word in argv])[1:]
    except flags.UnrecognizedFlagError as error:
        near = nearest(error.flagname, [row.name for row in rows if row.help])
        tip = f"; did you mean --{near}?" if near else ""
        raise FlagError(f"Unknown command line flag {error.flagname!r}{tip} (--help=all lists all flags)") from error
    except (flags.Error, ValueError) as error:  # ValueError: --nodo_train=1
        empty = _EMPTY.match(str(error))
        raise (
            left_empty(empty[1]) if empty else FlagError(str(error).splitlines()[0] + " (--help=all lists all flags)")
        ) from error
    if values["help"].value:
        raise HelpAsked
    if rest:
        raise FlagError(f"unexpected argument {rest[0]!r}; flags are written --name=value")
    for row in rows:
        check(row, values[row.name].value)
    return values


def asks_for_all(argv: Iterable[str]) -> bool:
    """Whether help is to list all flags."""
    return any(word.lstrip("-") == "help=all" for word in argv if word.startswith("-"))


def by_name(values: flags.FlagValues, rows: Iterable[Flag]) -> dict[str, Any]:
    return {row.name: values[row.name].value for row in rows}


def _check_flags_of_absl(argv: Sequence[str]) -> None:
    """Rejects a flag file that absl could not read to its end."""
    for word, following in zip(argv, [*argv[1:], ""]):
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in _OF_ABSL:
            continue
        value = value if equals else following
        if not value:
            raise left_empty(name)
        why = _why_unread(os.path.expanduser(value)) if name == "flagfile" else None
        if why:
            raise FlagError(f"--{name}={value}: {why}")


def _why_unread(path: str) -> str | None:
    """Why absl cannot read a flag file, None if it can."""
    if why := files.missing(path):
        return why
    try:
        text = documents.read_text(path)
    except OSError as error:
        return files.reason(error)
    except documents.DocumentError as error:
        return str(error)
    if not text.isascii() and sys.getfilesystemencoding() != "utf-8":
        return f"the locale's encoding is {sys.getfilesystemencoding()}; set PYTHONUTF8=1"
    marked = files.read_begin(path, len(codecs.BOM_UTF8)) == codecs.BOM_UTF8
    return "it begins with a byte order mark; save it as UTF-8 without one" if marked else None


def _refuse_odd_bytes(argv: Iterable[str]) -> None:
    """Rejects names that Python and TensorFlow would encode differently and so resolve to different files."""
    for word in argv:
        if any("\udc80" <= letter <= "\udcff" for letter in word) and sys.getfilesystemencoding() == "utf-8":
            raise FlagError(f"{word!r}: not valid UTF-8; rename the file, or write the flag into a --flagfile")
        if not word.isascii() and sys.getfilesystemencoding() != "utf-8":
            name = os.fsencode(word).decode(errors="backslashreplace")
            advice = "set PYTHONUTF8=1 and write the flag into a --flagfile, or rename the file"
            raise FlagError(f"{name}: the locale's encoding is {sys.getfilesystemencoding()}; {advice}")


def read_with_words(argv: Sequence[str], rows: Sequence[Flag]) -> tuple[list[str], flags.FlagValues]:
    """Parses words, such as files, and flags in any order; see `parse_flags`."""
    words = [word for word in argv[1:] if _is_word(word)]
    if "" in words:
        raise FlagError(f"{argv[0]}: a name is empty: did you mean to set a shell variable?")
    return words, parse_flags([argv[0], *(word for word in argv[1:] if not _is_word(word))], rows)


def _is_word(argument: str) -> bool:
    return argument == files.PIPE or not argument.startswith("-")


def action_of(argv: Sequence[str], actions: Collection[str]) -> str:
    """The action named by the first word; raises FlagError if unknown, HelpAsked for help or no word."""
    if len(argv) < 2 or argv[1] in ("--help", "-h", "-help") or asks_for_all(argv[1:2]):
        raise HelpAsked
    if argv[1] not in actions:
        raise FlagError(f"{argv[0]}: {unknown_name('action', argv[1], actions)}")
    return argv[1]


def _define(rows: Iterable[Flag]) -> flags.FlagValues:
    values = flags.FlagValues()
    for row in rows:
        if row.kind is bool:
            flags.DEFINE_boolean(row.name, row.default, row.help, flag_values=values)
        elif row.kind in (str, tuple):
            flags.DEFINE_string(row.name, row.default, row.help, flag_values=values)
        else:
            define = flags.DEFINE_integer if row.kind is int else flags.DEFINE_float
            define(row.name, row.default, row.help, lower_bound=row.lowest, flag_values=values)
    flags.DEFINE_boolean("help", False, "show this help", short_name="h", flag_values=values)
    return values
