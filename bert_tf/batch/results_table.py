"""The table of an evaluation job: results.json, which is the truth, results.tsv made of it, and a form for the screen."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf import atomic, documents, files, lock
from bert_tf.errors import OutputError
from bert_tf.text_table import table

JSON_FILE, TSV_FILE = "results.json", "results.tsv"

_FIRST = ("checkpoint", "step", "task", "split")
_AFTER_METRICS = ("loss", "examples", "examples_per_second")
_TEXTS = ("", "checkpoint", "task", "split")
_BEST = "*"

Key = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Row:
    """One checkpoint by one split.

    Attributes:
      checkpoint: its prefix, or the name that was asked for.
      step: of training; None where unknown.
      task: its name.
      split: its name, or a file.
      metrics: the task's, the first one first.
      loss: mean over examples, in nats; squared error of numbers.
      examples: how many there are.
      examples_per_second: how fast they were computed.
      error: why there is nothing to tell.
      settings: what decided on the numbers; of an error, what it was that could not be measured.
    """

    checkpoint: str
    step: int | None
    task: str
    split: str
    metrics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    loss: float | None = None
    examples: int | None = None
    examples_per_second: float | None = None
    error: str | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> Key:
        """What a row is the only one of."""
        return self.checkpoint, self.task, self.split

    @property
    def first_metric(self) -> float:
        """What rows are compared by."""
        return next(iter(self.metrics.values()))


class ResultsTable:
    """The rows in a folder, written whenever one is added; those of earlier jobs stay, and of others that run at the time."""

    def __init__(self, folder: str | os.PathLike[str], order: Iterable[Key]) -> None:
        """Reads what is there.

        Args:
          folder: of the files.
          order: keys of this job's rows as they shall stand, after those of earlier jobs.

        Raises:
          OutputError: the folder cannot be written, or what it holds is damaged.
        """
        self._folder = atomic.make_folder(folder)
        self._rows = self._stored()
        self._place = {key: place for place, key in enumerate(order)}

    @property
    def rows(self) -> list[Row]:
        """All rows in their order."""
        return sorted(self._rows.values(), key=lambda row: self._place.get(row.key, -1))

    def has(self, checkpoint: str, task: str, split: str, settings: Mapping[str, Any]) -> bool:
        """Whether a row is there, without an error and with these settings."""
        row = self._rows.get((checkpoint, task, split))
        return row is not None and row.error is None and row.settings == settings

    def put(self, row: Row) -> bool:
        """Adds a row, or replaces its like; both files are whole at any moment.

        An error replaces numbers only where they are of another checkpoint or of other data.

        Returns:
          Whether the row is in the table.

        Raises:
          OutputError: the files cannot be written.
        """
        with self._shared():
            before = self._rows.get(row.key)
            still_true = before is not None and before.error is None and row.settings.items() <= before.settings.items()
            if row.error is None or not still_true:
                self._rows[row.key] = row
            return self._rows[row.key] is row

    def drop(self, condition: Callable[[Row], bool]) -> int:
        """Deletes the rows that meet a condition; returns how many.

        Raises:
          OutputError: as `put`.
        """
        if not any(map(condition, self.rows)):
            return 0
        with self._shared():
            dropped = [row.key for row in self.rows if condition(row)]
            for key in dropped:
                del self._rows[key]
            return len(dropped)

    def write(self) -> None:
        """Writes both files.

        Raises:
          OutputError: as `put`.
        """
        with self._shared():
            pass

    @contextlib.contextmanager
    def _shared(self) -> Iterator[None]:
        """Takes up what other jobs have written, and writes what the block makes of it before they go on."""
        with lock.taking_turns(self._folder):
            self._rows = self._stored()
            yield
            self._write()

    def _stored(self) -> dict[Key, Row]:
        return {row.key: row for row in _read(self._folder / JSON_FILE)}

    def _write(self) -> None:
        for name in (JSON_FILE, TSV_FILE):
            atomic.delete_unfinished(self._folder / name)
        rows = [{name: value for name, value in dataclasses.asdict(row).items() if value is not None} for row in self.rows]
        atomic.write_text(self._folder / JSON_FILE, documents.to_json({"rows": rows}, indent=1) + "\n")
        atomic.write_text(self._folder / TSV_FILE, as_tsv(self.rows))


def as_tsv(rows: Sequence[Row]) -> str:
    """Returns a header and the rows; a metric that a task has not is an empty cell."""
    return "".join("\t".join(line) + "\n" for line in _cells(rows, _exact, "error"))


def for_screen(rows: Sequence[Row]) -> str:
    """Returns the rows of each task and split by its first metric, the best marked, and then the errors, a line each."""
    good, blocks = [row for row in rows if row.error is None], []
    for group in dict.fromkeys((row.task, row.split) for row in good):
        members = sorted((row for row in good if (row.task, row.split) == group), key=lambda row: -row.first_metric)
        marks = ["", *(_BEST if row.first_metric == members[0].first_metric else "" for row in members)]
        blocks.append(_aligned([[mark, *cells] for mark, cells in zip(marks, _cells(members, _short))]))
    errors = "".join(f"error: {row.error} ({row.task} {row.split})\n" for row in rows if row.error)
    return "\n".join(filter(None, [*blocks, errors]))


def _cells(rows: Sequence[Row], number: Callable[[str, float], str], *last: str) -> list[list[str]]:
    metrics = dict.fromkeys(name for row in rows for name in row.metrics)
    names = [*_FIRST, *metrics, *_AFTER_METRICS, *last]
    values = ({**dataclasses.asdict(row), **row.metrics} for row in rows)
    return [names, *([_cell(name, value.get(name), number) for name in names] for value in values)]


def _cell(name: str, value: Any, number: Callable[[str, float], str]) -> str:
    if value is None:
        return ""
    return number(name, value) if isinstance(value, float) else " ".join(str(value).split("\t"))


def _exact(_: str, number: float) -> str:
    return str(number)


def _short(name: str, number: float) -> str:
    return f"{number:.1f}" if name == "examples_per_second" else f"{number:.4f}"


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Puts the columns one under the other, numbers to the right."""
    head, *rows = lines
    texts = [place for place, name in enumerate(head) if name in _TEXTS]
    return "".join(f"{line}\n" for line in table(head, rows, left=texts))


def _read(path: Path) -> list[Row]:
    try:
        rows = documents.json_value(files.read_text(path))["rows"]
        return [_whole(Row(**{"step": None, **row})) for row in rows]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path}: cannot read the table: {files.reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable table; move it away, or name another --output_dir") from error


def _whole(row: Row) -> Row:
    """Refuses a row with neither numbers nor an error."""
    numbers = [*row.metrics.values(), row.loss, row.examples, row.examples_per_second]
    measured = bool(row.metrics) and all(isinstance(number, (int, float)) for number in numbers)
    named = all(isinstance(text, str) for text in row.key)
    if not named or not isinstance(row.settings, dict) or not (measured or isinstance(row.error, str)):
        raise ValueError
    return row
