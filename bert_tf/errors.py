"""Errors that a user can fix. The commands print their message as one line, without a traceback.

BertError
├── FlagError         a flag, or flags that contradict each other
├── DataError         a file of examples: names file and line
│   ├── EmptyFileError    it has nothing in it
│   └── BadRowsError      rows of it cannot be used: one line for each of the first
├── VocabularyError   a vocabulary file: names file and line
├── ConfigError       a model configuration
├── CheckpointError   pretrained or trained weights
│   └── UnreadableError   the system does not let us read them; they may be whole
├── DeviceError       a device, or devices that cannot be used as asked
├── PreflightError    parts that do not fit each other: one line for each problem
├── OutputError       the output folder: not writable, full, or of another run
└── TrainingError     the loss is no longer a number, or memory is out
    └── LostPeerError   another machine is gone: the same command may succeed
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class BertError(Exception):
    """Base of all errors that end in one line for the user.

    Attributes:
      status: of the process that ends with it.
    """

    status = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """Goes to another process with its message, which some constructors put together."""
        return _remade, (type(self), self.args, vars(self))


def _remade(kind: type[BertError], args: tuple[Any, ...], values: Mapping[str, Any]) -> BertError:
    error = kind.__new__(kind, *args)
    vars(error).update(values)
    return error


class FlagError(BertError):
    """A flag has an unusable value."""


class DataError(BertError):
    """A file of examples cannot be read."""

    def __init__(self, problem: str, path: object, line: int | None = None):
        """Puts the place before the problem.

        Args:
          problem: what is wrong and what to do.
          path: the file.
          line: its line, counted from 1, where one line is to blame.
        """
        place = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}")


class EmptyFileError(DataError):
    """A file has nothing in it."""


class BadRowsError(DataError):
    """Rows of a file cannot be used."""

    def __init__(self, problems: Sequence[str]):
        """Joins all problems, one a line; each names its place."""
        self.problems = tuple(problems)
        Exception.__init__(self, "\n".join(self.problems))


class VocabularyError(DataError):
    """A vocabulary file is damaged or is no BERT vocabulary."""


class ConfigError(BertError):
    """A model configuration is missing, unreadable or inconsistent."""


class CheckpointError(BertError):
    """Weights are missing, damaged or of another model."""


class UnreadableError(CheckpointError):
    """The system does not let us read weights, which may be whole."""


class DeviceError(BertError):
    """A device does not exist, cannot be used as asked, or is set up too late."""


class PreflightError(BertError):
    """Configuration, checkpoint, vocabulary and data do not fit each other."""

    def __init__(self, problems: Sequence[str]):
        """Joins all problems, one a line."""
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class OutputError(BertError):
    """The output folder cannot be used."""


class TrainingError(BertError):
    """Training cannot go on."""


class LostPeerError(TrainingError):
    """Another machine of the job is gone."""

    status = os.EX_TEMPFAIL  # 75: schedulers start the job again


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns a message that lists what is known and names the nearest match.

    Args:
      kind: what the name should be of: task, flag.
      name: that nothing has.
      known: all names that there are.
    """
    names = sorted(known)
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]}?" if near else ""
    return f"unknown {kind} {name!r}{hint} (known: {', '.join(names)})"
