"""Many checkpoints by labelled examples, as a call."""

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
    """What checkpoints reach, a row for each and each split.

    Attributes:
      rows: of the table, those of earlier calls with the same folder among them.
      failed: rows that say why a checkpoint could not be evaluated.
      path: of the table as a file; results.json beside it has the same.
    """

    rows: Sequence[Row]
    failed: Sequence[Row]
    path: Path

    @property
    def glue(self) -> Glue | None:
        """GLUE's score of the best checkpoint for each task; None where fewer than two tasks are there."""
        return glue.of(self.rows)

    def __str__(self) -> str:
        """What the command prints."""
        return rows_text.for_screen(self._all)

    def _repr_html_(self) -> str:
        """Returns a table for notebooks."""
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
    """Evaluates many checkpoints in one process; does what `python -m bert_tf evaluate` does. Rows that are there stay.

    Args:
      checkpoints: prefixes, folders for their best or newest, FOLDER:all for all steps, or patterns.
      task_name: the tasks whose dev splits to evaluate on.
      output_dir: gets results.tsv and results.json.
      beam: arguments of Apache Beam, whose pipeline predicts; True for none.
      **settings: those of the command, by the names of its flags.

    Raises:
      BertError: something that the caller can fix, other than a checkpoint.
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
