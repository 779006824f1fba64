"""Errors that a user can fix. The commands print their message as one line, without a traceback.

BertError
├── FlagError         an invalid flag, or contradictory flags
├── DataError         a file of examples: names file and line
│   ├── UnreadTextError   its drive fails: it may be read later
│   ├── EmptyFileError    it is empty
│   └── BadRowsError      unusable rows: one line for each of the first
├── VocabularyError   a vocabulary file: names file and line
├── ConfigError       a model configuration
├── CheckpointError   pretrained or trained weights
│   └── UnreadableError   access is denied, or a drive fails; the weights may be intact
├── DeviceError       a device that is missing or unusable
├── PreflightError    incompatible parts: one line for each problem
├── OutputError       the output folder: not writable, full, or of another run
└── TrainingError     the loss is not finite, or memory is exhausted
    └── LostPeerError   another machine is gone: repeating the command may succeed
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class BertError(Exception):
    """Base of all errors that are reported to the user as one line.

    Attributes:
      status: exit status of the process.
    """

    status = 2

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the complete message, which some constructors assemble."""
        return _remade, (type(self), self.args, vars(self))


def _remade(kind: type[BertError], args: tuple[Any, ...], values: Mapping[str, Any]) -> BertError:
    error = kind.__new__(kind, *args)
    vars(error).update(values)
    return error


class FlagError(BertError):
    """A flag has an invalid value."""


class DataError(BertError):
    """A file of examples cannot be read."""

    def __init__(self, problem: str, path: object, line: int | None = None):
        location = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{location}: {problem}")


class UnreadTextError(DataError):
    """A drive failed, or did not answer: the file may be read later."""


class EmptyFileError(DataError):
    """A file is empty."""


class BadRowsError(DataError):
    """A file has unusable rows."""

    def __init__(self, problems: Sequence[str]):
        self.problems = tuple(problems)
        Exception.__init__(self, "\n".join(self.problems))


class VocabularyError(DataError):
    """A vocabulary file is damaged or is not a BERT vocabulary."""


class ConfigError(BertError):
    """A model configuration is missing, unreadable or inconsistent."""


class CheckpointError(BertError):
    """Weights are missing, damaged or of another model."""


class UnreadableError(CheckpointError):
    """Access to weights is denied, or their drive fails; they may be intact."""


class DeviceError(BertError):
    """A device does not exist, cannot be used as requested, or is set up too late."""


class PreflightError(BertError):
    """Configuration, checkpoint, vocabulary and data are incompatible."""

    def __init__(self, problems: Sequence[str]):
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


class OutputError(BertError):
    """The output folder cannot be used."""


class TrainingError(BertError):
    """Training cannot continue."""


class LostPeerError(TrainingError):
    """Another machine of the job is gone."""

    status = os.EX_TEMPFAIL  # 75: schedulers start the job again


START_AGAIN = "start all workers again with the same command: training continues from the last checkpoint"


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Returns a message on an unknown name (`kind`: task, flag) with the nearest match and all known names."""
    names = sorted(known)
    folded = {n.lower(): n for n in names}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    hint = f"; did you mean {folded[near[0]]}?" if near else ""
    return f"unknown {kind} {name!r}{hint} (known: {', '.join(names)})"
