"""Keeps what TensorFlow says about itself out of a user's log."""

from __future__ import annotations

import logging
import os
import re
import warnings

# Of each variable, where the list of variables says it; and numbers that are a mean over batches, not over examples.
_SAID_BETTER = re.compile(r"Initialize variable |Saving dict for global step ")
_DEPRECATED = re.compile(r"From .* deprecated", re.DOTALL)  # the Estimator is, at each of its calls


def quiet_before_import() -> None:
    """Silences the C++ side; takes effect only before TensorFlow is imported. A variable set by the user stays."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def quiet_python() -> None:
    """Silences the Python side, but for warnings that a user can act on, and errors."""
    _hear_tensorflow(logging.WARNING, without=_DEPRECATED)


def hear_python() -> None:
    """Lets the log of the Estimator through, deprecations included, as it is in the log of the published script."""
    _hear_tensorflow(logging.NOTSET, without=_SAID_BETTER)


def _hear_tensorflow(level: int, *, without: re.Pattern[str]) -> None:
    logging.getLogger("h5py").setLevel(logging.ERROR)
    logger = logging.getLogger("tensorflow")
    logger.setLevel(level)
    for earlier in [found for found in logger.filters if isinstance(found, _Without)]:
        logger.removeFilter(earlier)
    logger.addFilter(_Without(without))
    warnings.filterwarnings("ignore", module=r"(tensorflow|tensorflow_estimator|keras|absl)(\.|$)")


class _Without(logging.Filter):
    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__()
        self._pattern = pattern

    def filter(self, record: logging.LogRecord) -> bool:
        return not self._pattern.match(record.getMessage())
