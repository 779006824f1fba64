"""An operation's declaration for the command line; flags, names and --help are derived from it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import extension
from bert_tf.io import log_form
from bert_tf.settings import Setting, sections_of

STOPPED = 130  # exit status after a signal
BEAM = Setting("beam", bool, False, "run as an Apache Beam pipeline; arguments after -- go to Beam: -- --runner=DirectRunner")
VERBOSITY = Setting("verbosity", int, 0, "-1: warnings, 0: log, 1: TensorFlow's messages too")


class Call(NamedTuple):
    """A parsed command line."""

    settings: Any  # of the class that the command declares
    own: Mapping[str, Any]  # values of the command's `own` flags
    verbosity: int
    beam: Any  # `library.keywords.Beam`; None without --beam
    given: frozenset[str] = frozenset()  # flags given on the command line
    values: Mapping[str, Any] = {}  # of settings given on the command line, by name


@dataclasses.dataclass(frozen=True)
class Command:
    """One command, or one action of a command."""

    title: str  # one sentence
    settings: type | None  # a dataclass of `settings.setting`; positional ones are words of the command line
    run: Callable[[Call], int | None]  # returns the exit status if it is not 0
    example: str  # a command line that works
    first: tuple[str, ...] = ()  # flags that most people need, which --help explains; without them, all
    sections: Mapping[str, Sequence[Setting]] = dataclasses.field(default_factory=dict)  # flags outside `settings`, by title
    make: Callable[..., Any] | None = None  # from flags by name to the settings, with `sections`
    own: tuple[Setting, ...] = ()  # flags that say how to print
    note: str = ""  # last lines of --help=all
    defaults: Callable[[], Mapping[str, str]] = dict  # in words, before those of the settings
    recipe: str = ""  # what --help says of them
    rewrite: Callable[[Sequence[str]], list[str]] = list  # replaces other spellings of flags in a command line
    stopped: str = "stopped"  # printed after Ctrl-C
    # True: --verbosity sets it; False: no log; a function: verbosity and form, by the settings
    log: bool | Callable[[Any], tuple[int, str]] = True
    pipeline: str = ""  # name by which an extension runs it on Beam
    reports_to: Callable[[Any], str | os.PathLike[str]] | None = None  # folder for internal errors

    @property
    def has_beam(self) -> bool:
        return self.pipeline in extension.named("pipelines")


@dataclasses.dataclass(frozen=True)
class Actions:
    """A command whose first word names an action."""

    title: str
    actions: Mapping[str, Command]
    stopped: str = "stopped"


def flags_of(command: Command) -> tuple[Setting, ...]:
    rows = (row for row in settings_of_command(command) if not row.positional)
    return (*rows, *own_flags(command))


def settings_of_command(command: Command) -> list[Setting]:
    return [row for rows in sections_of_command(command).values() for row in rows]


def sections_of_command(command: Command) -> Mapping[str, Sequence[Setting]]:
    """Its settings by title."""
    return command.sections if command.settings is None else sections_of(command.settings)


def words_of(command: Command) -> list[Setting]:
    """Settings that are words of the command line."""
    return [row for row in settings_of_command(command) if row.positional]


def own_flags(command: Command) -> list[Setting]:
    """Flags that are no settings."""
    rows = list(command.own)
    if command.has_beam:
        rows.append(BEAM)
    if command.log is True:
        rows.append(VERBOSITY)
    return rows


def usage(row: Setting) -> str:
    """A word of the command line as --help writes it."""
    name = row.name.upper()
    if row.kind is tuple:
        name = f"{name if name.endswith('US') else name.removesuffix('S')} ..."
    return name if row.required else f"[{name}]"


def checkpoint_first(argv: Sequence[str]) -> list[str]:
    """Reads COMMAND FOLDER as COMMAND --checkpoint=FOLDER."""
    name, *rest = argv
    return [name, f"--checkpoint={rest[0]}", *rest[1:]] if rest and not rest[0].startswith("-") else list(argv)


def warnings_only(_: object) -> tuple[int, str]:
    """The log of a command that prints a report."""
    return -1, log_form.SHORT
