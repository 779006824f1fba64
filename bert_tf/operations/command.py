"""What an operation tells the command line about itself; flags, names and --help are derived from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bert_tf.settings import Setting


class Call(NamedTuple):
    """A command line that was read."""

    settings: Any  # of the class that the command declares
    own: Mapping[str, Any]  # values of the flags of the command alone
    verbosity: int
    beam: tuple[str, ...] | None  # arguments of Apache Beam; None without --beam


@dataclasses.dataclass(frozen=True)
class Command:
    """One command, or one action of a command."""

    title: str  # first lines of --help
    settings: type  # a dataclass of `settings.setting`; positional ones are words of the command line
    run: Callable[[Call], int | None]  # returns the exit status if it is not 0
    own: tuple[Setting, ...] = ()  # flags that say how to print
    stopped: str = "stopped"  # printed after Ctrl-C
    has_log: bool = True  # has --verbosity
    has_beam: bool = False
    reports_to: Callable[[Any], str] | None = None  # folder of a report of an internal error, by the settings


@dataclasses.dataclass(frozen=True)
class Actions:
    """A command whose first word names an action."""

    title: str
    actions: Mapping[str, Command]
    stopped: str = "stopped"
