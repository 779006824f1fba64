"""The table of an evaluation job: rows, one checkpoint by one split, the best of them, and their files.

results.json is authoritative, results.tsv is derived from it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bert_tf.errors import OutputError
from bert_tf.io import atomic, documents, files, lock
from bert_tf.io.text_table import cell, table
from bert_tf.metrics import values
from bert_tf.tasks.base import DEV
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.glue import TASKS, UNSCORED

JSON_FILE, TSV_FILE = "results.json", "results.tsv"

_DIGITS = 16  # of a claim's name
_BEST = "best"  # key in the file beside a row's fields

Key = tuple[str, str, str]
_FIRST = ("checkpoint", "step", "task", "split")
_AFTER_METRICS = ("loss", "examples", "examples_per_second")
_TEXTS = ("best", "checkpoint", "task", "split")
_INTERVAL = " 95 %"  # suffix of interval columns; their headings show only the suffix
_SHORT = {"best": "", "examples_per_second": "examples/s"}
_GLUE = {name: task for name, task in TASKS.items() if DEV in task.split_names and name != UNSCORED}  # AX has no labels


@dataclasses.dataclass(frozen=True)
class Row:
    """One checkpoint by one split."""

    checkpoint: str  # prefix, or the requested name
    step: int | None  # None if unknown
    task: str
    split: str  # name, or a file
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)  # main metric first
    loss: float | None = None  # mean over examples, in nats; squared error for regression
    examples: int | None = None
    examples_per_second: float | None = None
    # by metric: bounds, as in eval_results.json
    intervals_95: Mapping[str, Sequence[float]] = dataclasses.field(default_factory=dict)
    collapsed: str | None = None  # why the model seems untrained; else None
    error: str | None = None  # why there are no metrics
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # that determine the metrics, or led to the error
    directory: str | None = dataclasses.field(default=None, compare=False)  # see `ResultsTable.directory`

    def measured(self, evaluation: Evaluation, seconds: float) -> Row:
        """The row with metrics; `seconds` is the computing time."""
        return dataclasses.replace(
            self,
            metrics=dict(evaluation.metrics),
            intervals_95={name: list(ends) for name, ends in evaluation.intervals.items()},
            loss=evaluation.loss,
            examples=evaluation.examples,
            examples_per_second=evaluation.examples / seconds,
            collapsed=evaluation.collapsed,
        )

    @property
    def key(self) -> Key:
        return self.checkpoint, self.task, self.split

    def is_of(self, settings: Mapping[str, Any]) -> bool:
        return self.error is None and self.settings == settings

    @property
    def warning(self) -> str | None:
        """Warns about a model that has learned nothing, else None."""
        return f"nothing was learned: {self.collapsed}" if self.collapsed else None

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: the first metric, then the loss."""
        return values.rank(next(iter(self.metrics.values())), self.loss)


def groups(rows: Iterable[Row]) -> list[list[Row]]:
    """Rows by task and split, best first, without error rows."""
    by_split: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.error is None:
            by_split.setdefault((row.task, row.split), []).append(row)
    return [sorted(group, key=lambda row: row.rank, reverse=True) for group in by_split.values()]


def best(rows: Iterable[Row]) -> set[Key]:
    """Keys of the best row of each task and split, including ties."""
    return {row.key for group in groups(rows) for row in group if row.rank == group[0].rank}


def as_tsv(rows: Sequence[Row]) -> str:
    """Header and rows; a missing metric is an empty cell."""
    marked, metrics = best(rows), _metrics(rows)
    ends = [end for metric in metrics for end in _ends(metric)]
    names = [*_FIRST, *metrics, *_AFTER_METRICS, *ends, "collapsed", "best", "error"]
    return "".join(
        "\t".join(line) + "\n" for line in _cells(names, [_values(row, marked) for row in rows], lambda _, number: str(number))
    )


def for_screen(rows: Sequence[Row]) -> str:
    """Rows by task and split, best first and marked, then untrained models, then errors."""
    blocks = [_block(group) for group in groups(rows)]
    warnings = [f"warning: {row.checkpoint}: {row.warning} ({row.task} {row.split})" for row in rows if row.warning]
    errors = [f"error: {row.error} ({row.task} {row.split})" for row in rows if row.error]
    ends = ["".join(f"{cell(line)}\n" for line in lines) for lines in (warnings, errors)]
    return "\n".join(filter(None, [*blocks, *ends]))


def cells_for_screen(rows: Sequence[Row]) -> list[list[list[str]]]:
    """Header and rows by task and split, best first and marked, without error rows."""
    return [_lines(group)[1] for group in groups(rows)]


def _block(rows: Sequence[Row]) -> str:
    names, (head, *cells) = _lines(rows)
    texts = [index for index, name in enumerate(names) if name in _TEXTS]
    return "".join(f"{line}\n" for line in table(head, cells, left=texts))


def _lines(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Column names (intervals beside metrics), and header and rows as cells."""
    marked = best(rows)
    metrics = [name for metric in _metrics(rows) for name in (metric, metric + _INTERVAL)]
    names = ["best", *_FIRST, *metrics, *_AFTER_METRICS]
    _, *cells = _cells(names, [_values(row, marked) for row in rows], _short)
    head = [_INTERVAL.strip() if name.endswith(_INTERVAL) else _SHORT.get(name, name) for name in names]
    return names, [head, *cells]


def _metrics(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.metrics))


def _ends(metric: str) -> tuple[str, str]:
    return f"{metric}_95_low", f"{metric}_95_high"


def _values(row: Row, marked: Collection[Key]) -> dict[str, Any]:
    values = {**dataclasses.asdict(row), **row.metrics, "best": "*" if row.key in marked else None}
    for metric, interval in row.intervals_95.items():
        values.update(zip(_ends(metric), interval))
        values[metric + _INTERVAL] = " to ".join(f"{end:.3f}" for end in interval)
    return values


def _cells(names: Sequence[str], lines: Iterable[Mapping[str, Any]], number: Callable[[str, float], str]) -> list[list[str]]:
    return [list(names), *([_cell(name, line.get(name), number) for name in names] for line in lines)]


def _cell(name: str, value: Any, number: Callable[[str, float], str]) -> str:
    if value is None:
        return ""
    return number(name, value) if isinstance(value, float) else cell(str(value))


def _short(name: str, number: float) -> str:
    return f"{number:.1f}" if name == "examples_per_second" else f"{number:.4f}"


class Glue(NamedTuple):
    """Score in percent, and the checkpoint used for each task."""

    score: float
    checkpoints: dict[str, str]

    def __str__(self) -> str:
        """One line with the number of tasks, since only scores over the same tasks are comparable."""
        best = ", ".join(f"{task} ({checkpoint})" for task, checkpoint in self.checkpoints.items())
        return f"GLUE score {self.score:.1f} over {len(self.checkpoints)} of {len(_GLUE)} tasks: {best}"


def glue_score(results: Mapping[str, Mapping[str, float]]) -> float:
    """GLUE's score (Wang et al., 2018) from metrics by task: the mean over tasks of the mean of their metrics, in percent.

    MNLI's accuracy is the mean of both splits. Many publications leave out WNLI.
    """
    means = [np.mean([metrics[name] for name in TASKS[task].scored]) for task, metrics in results.items()]
    return 100.0 * float(np.mean(means))


def glue_of(rows: Iterable[Row]) -> Glue | None:
    """Score of each task's best checkpoint by its first metric (ties: lower loss), without WNLI, as that of `sweep`.

    None unless two tasks have all dev splits.
    """
    measured: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        if row.task in _GLUE and row.error is None and row.split in _GLUE[row.task].split_names[DEV]:
            measured.setdefault(row.task, {}).setdefault(row.checkpoint, []).append(row)
    checkpoints, best = {}, {}
    for task in filter(measured.__contains__, _GLUE):
        complete = {name: splits for name, splits in measured[task].items() if len(splits) == len(_GLUE[task].split_names[DEV])}
        if complete:
            checkpoints[task] = max(complete, key=lambda name: _rank(complete[name]))
            best[task] = _mean(task, complete[checkpoints[task]])
    return Glue(glue_score(best), checkpoints) if len(best) > 1 else None


def _mean(task: str, splits: list[Row]) -> dict[str, float]:
    return {name: float(np.mean([row.metrics[name] for row in splits])) for name in _GLUE[task].scored}


def _rank(splits: list[Row]) -> tuple[float, float]:
    losses = [row.loss for row in splits if row.loss is not None]
    first = float(np.mean([row.rank[0] for row in splits]))
    return values.rank(first, float(np.mean(losses)) if losses else None)


class ResultsTable:
    """Rows in a folder, written after each addition; keeps rows of earlier and concurrent jobs."""

    def __init__(self, folder: str | os.PathLike[str], order: Iterable[Key]) -> None:
        """`order` sorts this job's rows, after those of earlier jobs; OutputError if unwritable or damaged."""
        self._folder = atomic.make_folder(folder)
        self._rows = self._stored()
        self._place = {key: index for index, key in enumerate(order)}

    @property
    def path(self) -> Path:
        return self._folder / JSON_FILE

    @property
    def rows(self) -> list[Row]:
        return sorted(self._rows.values(), key=lambda row: self._place.get(row.key, -1))

    def directory(self, row: Row) -> str | None:
        """Working directory of a relative checkpoint; rows have it as seen from the table, so that both can be moved."""
        return None if row.directory is None else os.path.realpath(self._folder / row.directory)

    def is_from_here(self, row: Row) -> bool:
        return self.directory(row) in (None, os.path.realpath(os.getcwd()))

    def claiming(self, key: Key, *, wait: bool = False) -> AbstractContextManager[str | None]:
        name = hashlib.sha256("\0".join(key).encode(errors="backslashreplace")).hexdigest()[:_DIGITS]
        return lock.claiming(self._folder / f"row-{name}", wait=wait)

    def stored(self, key: Key) -> Row | None:
        """The row as currently on disk; None if absent."""
        self._rows = self._stored()
        return self._rows.get(key)

    def put(self, row: Row) -> bool:
        """Adds or replaces a row; returns whether it is in the table. Both files are complete at any moment.

        An error replaces metrics only if they belong to another checkpoint or other data.
        """
        if not os.path.isabs(row.checkpoint) and not files.has_scheme(row.checkpoint):
            row = dataclasses.replace(row, directory=os.path.relpath(os.getcwd(), os.path.realpath(self._folder)))
        with self._shared():
            before = self._rows.get(row.key)
            still_true = before is not None and before.error is None and row.settings.items() <= before.settings.items()
            if row.error is None or not still_true:
                self._rows[row.key] = row
            return self._rows[row.key] is row

    def drop(self, condition: Callable[[Row], bool]) -> int:
        if not any(map(condition, self.rows)):
            return 0
        with self._shared():
            dropped = [row.key for row in self.rows if condition(row)]
            for key in dropped:
                del self._rows[key]
            return len(dropped)

    def write(self) -> None:
        with self._shared():
            pass

    @contextlib.contextmanager
    def _shared(self) -> Iterator[None]:
        """Loads the rows of other jobs, and writes the block's changes before those go on."""
        with lock.taking_turns(self._folder):
            self._rows = self._stored()
            yield
            self._write()

    def _stored(self) -> dict[Key, Row]:
        return {row.key: row for row in _read(self.path)}

    def _write(self) -> None:
        for name in (JSON_FILE, TSV_FILE):
            atomic.delete_unfinished(self._folder / name)
        marked = best(self.rows)
        fields = ({**dataclasses.asdict(row), _BEST: True if row.key in marked else None} for row in self.rows)
        rows = [{name: value for name, value in row.items() if value is not None} for row in fields]
        atomic.write_text(self._folder / JSON_FILE, documents.to_json({"rows": rows}, indent=1) + "\n")
        atomic.write_text(self._folder / TSV_FILE, as_tsv(self.rows))


def _read(path: Path) -> list[Row]:
    try:
        return list(map(_row, documents.parse_json(files.read_text(path), has_paths=True)["rows"]))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path}: cannot read the table: {files.reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable table; move it away, or name another --output_dir") from error


def _row(stored: Mapping[str, Any]) -> Row:
    """Raises ValueError or another error for what is no row."""
    fields: dict[str, Any] = {"step": None, **{name: value for name, value in stored.items() if name != _BEST}}
    row = Row(**fields)
    ends = [end for low, high in row.intervals_95.values() for end in (low, high)]
    numbers = [*row.metrics.values(), *ends, row.loss, row.examples, row.examples_per_second]
    measured = bool(row.metrics) and all(isinstance(number, (int, float)) for number in numbers)
    has_names = all(isinstance(text, str) for text in (*row.key, row.collapsed or ""))
    if not has_names or not isinstance(row.settings, dict) or not (measured or isinstance(row.error, str)):
        raise ValueError
    return row
