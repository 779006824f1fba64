"""Evaluation of many checkpoints on labelled examples, as a call."""

from __future__ import annotations

import dataclasses
import html
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Union

from bert_tf.batch import glue, rows_text
from bert_tf.batch.glue import Glue
from bert_tf.batch.rows import Row
from bert_tf.errors import FlagError
from bert_tf.jobs import evaluate as job
from bert_tf.jobs.batch_settings import JOB
from bert_tf.jobs.evaluate_config import SETTINGS, configured
from bert_tf.library.beam_runner import Arguments, runner
from bert_tf.library.keywords import takes
from bert_tf.tasks.custom import NAME as CUSTOM
from bert_tf.tasks.registry import canonical_name

Names = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]


@dataclasses.dataclass(frozen=True)
class Table:
    """Results of checkpoints, one row for each checkpoint and split.

    Attributes:
      rows: of the table, including those of earlier calls with the same folder.
      failed: rows that say why a checkpoint could not be evaluated.
      path: of the table as a file; results.json beside it has the same content.
    """

    rows: Sequence[Row]
    failed: Sequence[Row]
    path: Path

    @property
    def glue(self) -> Glue | None:
        """The GLUE score from the best checkpoint for each task; None if there are fewer than two tasks."""
        return glue.of(self.rows)

    def __str__(self) -> str:
        """The command's output."""
        return rows_text.for_screen(self._all)

    def _repr_html_(self) -> str:
        return "".join(_table(lines) for lines in rows_text.cells_for_screen(self.rows)) + "".join(
            f"<p>{html.escape(f'{row.checkpoint}: {row.error}')}</p>" for row in self._all if row.error
        )

    @property
    def _all(self) -> list[Row]:
        return [*self.rows, *(row for row in self.failed if row not in self.rows)]


@takes(SETTINGS)
def evaluate(
    checkpoints: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
    *,
    task_name: Names | None = None,
    output_dir: str | os.PathLike[str] | None = None,
    beam: Arguments = False,
    **settings: Any,
) -> Table:
    """Evaluates many checkpoints in one process and keeps existing rows; as `python -m bert_tf evaluate`.

    Args:
      checkpoints: prefixes, folders (their best or newest checkpoint), FOLDER:all for all steps, or patterns.
      task_name: tasks to evaluate on, by their dev splits.
      output_dir: receives results.tsv and results.json.
      beam: arguments of Apache Beam, to predict in a pipeline; True for none.
      **settings: the command's flags, by name.

    Raises:
      BertError: invalid settings or input; an unusable checkpoint becomes a row of `failed` instead.
    """
    config = configured(checkpoints=checkpoints, task_name=task_name, output_dir=output_dir, **settings)
    if settings.get(JOB.name) is None and CUSTOM in (canonical_name(entry.name) for entry in config.job.tasks):
        raise FlagError(
            f"task_name={CUSTOM!r} does not say which file: name it in a job file (job=...),"
            " or give rows: bert_tf.load(checkpoint).evaluate(rows)"
        )
    done = job.evaluate(*config, environment=os.environ, beam=runner(beam))
    return Table(done.rows, done.failed, done.table)


def _table(lines: Sequence[Sequence[str]]) -> str:
    head, *rows = ("".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line) for tag, line in _tagged(lines))
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _tagged(lines: Sequence[Sequence[str]]) -> list[tuple[str, Sequence[str]]]:
    return [("th" if not number else "td", line) for number, line in enumerate(lines)]
