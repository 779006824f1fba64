"""Help of a command: a sentence, an example, the flags to start with, and the names of the others; or all flags in groups."""

from __future__ import annotations

import re
import shutil
import textwrap
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bert_tf.cli.command_line import Flag
from bert_tf.operations.command import Actions, Command, own_flags, sections_of_command, usage, words_of

PROGRAM = "python -m bert_tf"

_WIDEST, _NARROWEST, _NOT_A_TERMINAL = 100, 60, 80  # columns
_WIDEST_NAME = 25  # of a flag; what a longer one does begins to the right of the others
_GENERAL = "General"  # title of flags without a group
_NONE: Mapping[str, str] = types.MappingProxyType({})


def help_text(words: Sequence[str], command: Command | Actions, *, everything: bool = False) -> str:
    """Help of a command, by the words that name it: of its actions, if the second word names none."""
    if isinstance(command, Command):
        return _joined(_of_command(words[0], command, everything=everything))
    if words[1:2] and words[1] in command.actions:
        return _joined(_of_command(" ".join(words[:2]), command.actions[words[1]], everything=everything))
    of_each = (_of_command(f"{words[0]} {name}", action, everything=True) for name, action in command.actions.items())
    return _joined([*filled(command.title), "", *(_all(of_each) if everything else _of_actions(words[0], command))])


def flag_lines(rows: Iterable[Flag], defaults: Mapping[str, str] = _NONE) -> Iterator[str]:
    """Flags, or words of the command line, with their choices and defaults."""
    spelled = {_spelled(row): row for row in rows}
    indent = min(_WIDEST_NAME, max(map(len, spelled), default=0)) + 4
    for spelling, row in spelled.items():
        yield from filled(f"  {spelling:<{indent - 3}} {row.help}{_default(row, defaults)}", " " * indent)


def _spelled(row: Flag) -> str:
    return usage(row) if row.positional else f"--[no]{row.name}" if row.kind is bool else f"--{row.name}"


def filled(text: str, indent: str = "") -> list[str]:
    """The lines of a text in the terminal's width; `indent` is that of the later lines of each of its lines."""
    fill = textwrap.TextWrapper(width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return [part for line in text.split("\n") for part in fill.wrap(line) or [""]]


def example_lines(line: str) -> list[str]:
    """A command line, continued as a shell reads it; no flag is torn from its value."""
    rows: list[str] = []
    for part in re.split(r" (?=--)", line):
        if rows and len(rows[-1]) + len(part) + 3 <= width():
            rows[-1] += f" {part}"
        else:
            rows.append(f"    {part}" if rows else f"  {part}")
    return [*(f"{row} \\" for row in rows[:-1]), rows[-1]]


def width() -> int:
    columns = shutil.get_terminal_size((_NOT_A_TERMINAL, 0)).columns
    return max(_NARROWEST, min(_WIDEST, columns))


def _of_command(name: str, command: Command, *, everything: bool) -> Iterator[str]:
    yield from filled(f"{command.title[0].upper()}{command.title[1:].rstrip('.')}.")
    yield ""
    yield from example_lines(command.example)
    groups = _groups(command)
    rows = {row.name: row for row in words_of(command)}
    short = bool(command.first) and not everything
    if short:
        every = {row.name: row for of_group in groups.values() for row in of_group}
        rows.update((first, every[first]) for first in command.first if first in every)
    elif len(groups) == 1:
        rows.update((row.name, row) for row in groups.pop(_GENERAL))
    if rows:
        yield ""
        yield from flag_lines(rows.values(), command.defaults())
    rest = {title: [row for row in of_group if row.name not in rows] for title, of_group in groups.items()}
    rest = {title: of_group for title, of_group in rest.items() if of_group}
    yield from _names(name, rest) if short else _in_groups(rest, command.defaults())
    for note in (command.recipe, "" if short else command.note):
        if note:
            yield ""
            yield from filled(note)


def _names(name: str, groups: Mapping[str, Sequence[Flag]]) -> Iterator[str]:
    yield ""
    count = sum(map(len, groups.values()))
    yield from filled(f"{count} more flags, all of them by {PROGRAM} {name} --help=all", "    ")
    titles = {title: title.partition(" (")[0] for title in groups}
    longest = max(map(len, titles.values())) + 2
    for title, of_group in groups.items():
        names = ", ".join(row.name for row in of_group)
        yield f"  {titles[title]:<{longest}}" + textwrap.shorten(names, width() - longest - 2, placeholder=" ...")


def _in_groups(groups: Mapping[str, Sequence[Flag]], defaults: Mapping[str, str]) -> Iterator[str]:
    for title, of_group in groups.items():
        yield ""
        yield from filled(f"{title}:")
        yield from flag_lines(of_group, defaults)


def _of_actions(name: str, command: Actions) -> Iterator[str]:
    for name_of_action, action in command.actions.items():
        yield from filled(f"{name} {name_of_action} {action.title}", "    ")
        yield from example_lines(action.example)
        yield ""
    yield from filled(f"The flags of an action: {PROGRAM} {name} {next(iter(command.actions))} --help", "    ")


def _all(of_each: Iterable[Iterable[str]]) -> Iterator[str]:
    for number, lines in enumerate(of_each):
        if number:
            yield ""
        yield from lines


def _groups(command: Command) -> dict[str, list[Flag]]:
    """Flags by title, without those that --help leaves out."""
    groups = {
        title: [row for row in rows if row.help and not row.positional] for title, rows in sections_of_command(command).items()
    }
    groups = {_GENERAL: [*groups.pop("", []), *(row for row in own_flags(command) if row.help)], **groups}
    return {title: of_group for title, of_group in groups.items() if of_group}


def _default(row: Flag, defaults: Mapping[str, str]) -> str:
    if row.required:
        return " (required)"
    value = "" if row.default is None else re.sub(r"e-0", "e-", str(row.default)).lower()
    values = ", else ".join(filter(None, (defaults.get(row.name), value)))
    return f" (default: {values})" if values else ""


def _joined(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
