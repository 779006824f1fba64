"""An operation's declaration for the command line; flags, names and --help are derived from it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bert_tf import extension
from bert_tf.io import log_form
from bert_tf.settings import Setting

STOPPED = 130  # exit status after a signal


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


def checkpoint_first(argv: Sequence[str]) -> list[str]:
    """Reads COMMAND FOLDER as COMMAND --checkpoint=FOLDER."""
    name, *rest = argv
    return [name, f"--checkpoint={rest[0]}", *rest[1:]] if rest and not rest[0].startswith("-") else list(argv)


def warnings_only(_: object) -> tuple[int, str]:
    """The log of a command that prints a report."""
    return -1, log_form.SHORT
