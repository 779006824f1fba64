"""Keeps TensorFlow's own messages out of the user's log."""

from __future__ import annotations

import logging
import os
import re
import warnings

from bert_tf import home
from bert_tf.runtime import early_output

_SAID_BETTER = re.compile(r"Initialize variable ")  # of each, where the list of variables says it
_OURS = re.compile(rf"[/\\](tensorflow|tensorflow_estimator|keras)[/\\]|{re.escape(str(home.PACKAGE) + os.sep)}")
_DEPRECATED = re.compile(r"From .* deprecated", re.DOTALL)  # the Estimator is, at each of its calls


def quiet_before_import() -> None:
    """Silences C++ messages; only effective before TensorFlow's import. A variable set by the user stays."""
    os.environ.setdefault(early_output.LEVEL, "3")


def quiet_python() -> None:
    """Silences Python messages except errors and warnings that a user can act on."""
    _hear_tensorflow(logging.WARNING, _Without(_DEPRECATED))


def quiet_for_programs() -> None:
    """Silences messages about this package's and TensorFlow's own calls, not about the program's."""
    quiet_before_import()
    _hear_tensorflow(None, _OfOthers())


def hear_python() -> None:
    _hear_tensorflow(logging.NOTSET, _Without(_SAID_BETTER))


def _hear_tensorflow(level: int | None, heard: logging.Filter) -> None:
    logging.getLogger("h5py").setLevel(logging.ERROR)
    logger = logging.getLogger("tensorflow")
    if level is not None:
        logger.setLevel(level)
    for earlier in [found for found in logger.filters if isinstance(found, (_Without, _OfOthers))]:
        logger.removeFilter(earlier)
    logger.addFilter(heard)
    warnings.filterwarnings("ignore", module=r"(tensorflow|tensorflow_estimator|keras|absl)(\.|$)")


class _Without(logging.Filter):
    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._pattern = pattern

    def filter(self, record: logging.LogRecord) -> bool:
        return not self._pattern.match(record.getMessage())


class _OfOthers(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        if _DEPRECATED.match(message):
            return not _OURS.search(message.partition(" is deprecated")[0])
        return record.levelno >= logging.WARNING or not _OURS.search(record.pathname)
