"""The table of an evaluation job: results.json is authoritative, results.tsv is derived from it."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from bert_tf.errors import OutputError
from bert_tf.extensions.evaluate.rows import Key, Row, as_tsv, best
from bert_tf.io import atomic, documents, files, lock

JSON_FILE, TSV_FILE = "results.json", "results.tsv"

_DIGITS = 16  # of a claim's name
_BEST = "best"  # key in the file beside a row's fields


class ResultsTable:
    """Rows in a folder, written after each addition; keeps rows of earlier and concurrent jobs."""

    def __init__(self, folder: str | os.PathLike[str], order: Iterable[Key]) -> None:
        """`order` sorts this job's rows, after those of earlier jobs; OutputError if unwritable or damaged."""
        self._folder = atomic.make_folder(folder)
        self._rows = self._stored()
        self._place = {key: index for index, key in enumerate(order)}

    @property
    def rows(self) -> list[Row]:
        return sorted(self._rows.values(), key=lambda row: self._place.get(row.key, -1))

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
        return {row.key: row for row in _read(self._folder / JSON_FILE)}

    def _write(self) -> None:
        for name in (JSON_FILE, TSV_FILE):
            atomic.delete_unfinished(self._folder / name)
        marked = best(self.rows)
        rows = [{**_said(row), **({_BEST: True} if row.key in marked else {})} for row in self.rows]
        atomic.write_text(self._folder / JSON_FILE, documents.to_json({"rows": rows}, indent=1) + "\n")
        atomic.write_text(self._folder / TSV_FILE, as_tsv(self.rows))


def _said(row: Row) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(row).items() if value is not None}


def _read(path: Path) -> list[Row]:
    try:
        return [_whole(_row(values)) for values in documents.parse_json(files.read_text(path))["rows"]]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise OutputError(f"{path}: cannot read the table: {files.reason(error)}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{path}: unreadable table; move it away, or name another --output_dir") from error


def _row(values: Mapping[str, Any]) -> Row:
    fields: dict[str, Any] = {"step": None, **{name: value for name, value in values.items() if name != _BEST}}
    return Row(**fields)


def _whole(row: Row) -> Row:
    ends = [end for low, high in row.intervals_95.values() for end in (low, high)]
    numbers = [*row.metrics.values(), *ends, row.loss, row.examples, row.examples_per_second]
    measured = bool(row.metrics) and all(isinstance(number, (int, float)) for number in numbers)
    has_names = all(isinstance(text, str) for text in (*row.key, row.collapsed or ""))
    if not has_names or not isinstance(row.settings, dict) or not (measured or isinstance(row.error, str)):
        raise ValueError
    return row
