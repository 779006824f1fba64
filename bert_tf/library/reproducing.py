"""Repeating a published run, as a call."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bert_tf import log_form
from bert_tf.jobs import reproduce as job
from bert_tf.jobs.fine_tune import TURN
from bert_tf.jobs.reproduce_config import SETTINGS, configured
from bert_tf.library.keywords import seeds_text, takes
from bert_tf.profiling.timing.wall_clock import WALL
from bert_tf.reproduction import report
from bert_tf.reproduction.report import Report
from bert_tf.reproduction.verdicts import Row
from bert_tf.runtime import noise


@dataclasses.dataclass(frozen=True)
class Reproduction:
    """A published run and its repetition here, side by side.

    Attributes:
      folder: holds reproduction.md and .json, log.txt, and the run of each seed.
      report: the whole comparison.
    """

    folder: Path
    report: Report

    @property
    def rows(self) -> Sequence[Row]:
        """Rows of the comparison: `what`, `published`, `measured`, `verdict`, `reason`."""
        return self.report.rows

    @property
    def is_outside(self) -> bool:
        """Whether a comparable value lies outside the published range."""
        return self.report.is_outside

    def __str__(self) -> str:
        """The command's output."""
        return report.to_markdown(self.report)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@takes(SETTINGS)
def reproduce(run: str, *, seeds: str | Iterable[int] = "1", **settings: Any) -> Reproduction:
    """Repeats a published run and compares; as `python -m bert_tf reproduce`, but its log goes only to log.txt.

        bert_tf.reproduce("gtx1060", seeds=range(1, 6)).rows

    Args:
      run: its name, such as gtx1060.
      seeds: to train with, as "1-5" or a list; the published run is a single draw.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input.
      KeyboardInterrupt: Ctrl-C; a checkpoint was saved first.
    """
    config = configured(run, seeds=seeds_text(seeds), **settings)
    with TURN, _published_log():
        WALL.restart()
        done = job.reproduce(config, environment=os.environ)
    if done.report is None:
        raise KeyboardInterrupt("training was stopped; the same call continues from the last checkpoint")
    return Reproduction(Path(config.folder), done.report)


@contextlib.contextmanager
def _published_log() -> Iterator[None]:
    """Lets the job log in the published form, for the comparison, without extra lines in the program's handlers."""
    root, of_tensorflow = logging.getLogger(), logging.getLogger("tensorflow")
    loggers = (log_form.log, of_tensorflow, log_form.short, log_form.published)
    before = [(one, one.level, one.disabled, one.handlers[:], one.filters[:]) for one in loggers]
    handlers, least = root.handlers[:], max(root.level, logging.WARNING)

    def heard(record: logging.LogRecord) -> bool:
        return record.levelno >= least

    log_form.choose(log_form.PUBLISHED)
    noise.hear_python()
    of_tensorflow.handlers = []
    for logger in loggers:
        logger.setLevel(logging.INFO)
    for handler in handlers:
        handler.addFilter(heard)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(heard)
        for logger, level, disabled, of_logger, filters in before:
            logger.setLevel(level)
            logger.disabled, logger.handlers, logger.filters = disabled, of_logger, filters
