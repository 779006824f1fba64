"""Reproduce: repeats a published run and compares the results."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import FlagError, unknown_name
from bert_tf.extensions.reproduce.facts import RUNS, Published
from bert_tf.io import log_form
from bert_tf.io.text_table import Printed
from bert_tf.library.keywords import takes
from bert_tf.operations.command import STOPPED, Call, Command
from bert_tf.profiling.wall_clock import TURN, WALL
from bert_tf.runtime import noise
from bert_tf.seeds import seed_numbers, seeds_text
from bert_tf.settings import read_settings, setting

if TYPE_CHECKING:  # lazy import of TensorFlow: --help stays fast
    from bert_tf.extensions.reproduce.report import Report
    from bert_tf.extensions.reproduce.verdicts import Row


@dataclasses.dataclass(frozen=True)
class ReproduceSettings:
    run: str | None = setting(None, "published run", positional=True)
    seeds: str = setting("1", "seeds to train: 1-5, or 1,3,7-9; the published run is one draw")
    output_dir: str | None = setting(
        None, "folder for reproduction.md, .json and each seed's run; default: out/RUN", written=True
    )
    bert_base_dir: str | None = setting(None, "folder of the checkpoint; default: $BERT_BASE_DIR or the default checkpoint")
    glue_dir: str | None = setting(None, "folder with MRPC; default: $GLUE_DIR, data/ or the sample")
    gpu_memory_limit_mb: int | None = setting(
        None, "GPU memory for tensors in MiB; default: as published, if the GPU has more", lowest=1
    )
    published_layout: bool = setting(False, "compute like the published script, padding included")
    num_train_steps: int | None = setting(
        None, "train for fewer steps as a trial; rows that depend on the number of steps are not compared", lowest=1
    )

    def __post_init__(self) -> None:
        if self.run is None:
            raise FlagError(f"name the run to reproduce: {', '.join(RUNS)}")
        if self.run not in RUNS:
            raise FlagError(unknown_name("run", self.run, RUNS))
        seed_numbers(self.seeds)

    @property
    def published(self) -> Published:
        return RUNS[str(self.run)]

    @property
    def folder(self) -> Path:
        return Path(self.output_dir or f"out/{self.published.name}")


@dataclasses.dataclass(frozen=True)
class Reproduction(Printed):
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
        from bert_tf.extensions.reproduce import report

        return report.to_markdown(self.report)


@takes(ReproduceSettings)
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
    extension.needed("series", "reproduce")
    from bert_tf.extensions.reproduce import run as work

    chosen = read_settings(ReproduceSettings, {"run": run, "seeds": seeds_text(seeds), **settings})
    with TURN, _published_log():
        WALL.restart()
        report = work.reproduce(chosen, environment=os.environ)
    if report is None:
        raise KeyboardInterrupt("training was stopped; the same call continues from the last checkpoint")
    return Reproduction(chosen.folder, report)


@contextlib.contextmanager
def _published_log() -> Iterator[None]:
    """Lets the job log in the published form, for the comparison, without extra lines in the program's handlers."""
    root, of_tensorflow = logging.getLogger(), logging.getLogger("tensorflow")
    loggers = (log_form.log, of_tensorflow, log_form.short, log_form.published)
    before = [(logger, logger.level, logger.disabled, logger.handlers[:], logger.filters[:]) for logger in loggers]
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


def _print(call: Call) -> int:
    extension.needed("series", "reproduce")
    from bert_tf.extensions.reproduce import run as work

    report = work.reproduce(call.settings, environment=os.environ)
    if report is None:
        return STOPPED
    print(Reproduction(call.settings.folder, report), end="")
    return 1 if report.is_outside else 0


COMMAND = Command(
    f"Repeats a published run ({', '.join(RUNS)}) and compares its figures with yours (docs/reproduce.md).",
    ReproduceSettings,
    _print,
    example="python -m bert_tf reproduce gtx1060 --seeds=1-5",
    stopped="stopped at once; the same command continues from the last checkpoint",
    log=lambda _: (0, log_form.PUBLISHED),
    reports_to=lambda settings: settings.folder,
)
