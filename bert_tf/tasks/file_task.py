"""Tasks with one file per split: the one in a setting, else one in a folder."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.errors import DataError, FlagError, unknown_name
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN, Family, Splits
from bert_tf.tasks.settings import CustomSettings

# Reads a file, given the name of its split and a report for bad rows.
Read = Callable[[text_lines.Source, str, tables.Report], Iterator[Any]]


class FileTask(Splits):
    """A family over files; splits are called train, dev and test."""

    def __init__(
        self,
        name: str,
        family: Callable[[], Family],
        read: Read,
        settings: CustomSettings,
        patterns: Mapping[str, Sequence[str]],
    ) -> None:
        """`family` may read the training file.

        `patterns` are glob patterns of each split's file in a folder (last by name wins); empty for tasks without a
        folder. Raises `FlagError` if a training or evaluation file is standard input.
        """
        self.name = name
        self._make_family, self._read, self._patterns = family, read, patterns
        self._files = {TRAIN: settings.train_file, DEV: settings.dev_file, TEST: settings.test_file}
        self._absolute = {split: os.path.abspath(name) if name else "" for split, name in self._files.items()}
        self._skip_bad_rows = settings.skip_bad_rows
        for purpose in (TRAIN, DEV):
            if self._files[purpose] == text_lines.STANDARD_INPUT:
                raise FlagError(f"--{purpose}_file=-: this file is read more than once, so it cannot be a pipe")

    @functools.cached_property
    def family(self) -> Family:
        return self._make_family()

    @property
    def reads_folder(self) -> bool:
        return bool(self._patterns) and not any(self._files.values())

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        if split not in self._files:
            raise DataError(unknown_name("split", split, tuple(self._files)), split)
        file_name = self._files[split]
        if file_name:  # as it was typed, unless the program has changed its directory since then
            absolute = self._absolute[split]
            return Path(file_name if os.path.abspath(file_name) == absolute else absolute)
        if not self.reads_folder:
            apart = "; if there is one file, put every fifth row aside, or train with --folds=5" if split == DEV else ""
            raise FlagError(f"--{split}_file is required with --task_name={self.name}, where files are named{apart}")
        folder, patterns = Path(data_dir), self._patterns[split]
        matches = (sorted(folder.glob(pattern))[-1:] for pattern in patterns)
        return next((paths[0] for paths in matches if paths), folder / patterns[0])

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> list[Any]:
        path = self.file(data_dir, split)
        if not path.exists() and not self._files[split]:
            raise DataError(f"no file {' or '.join(self._patterns[split])} in the folder", data_dir)
        examples = tables.usable(lambda report: self._read(path, split, report), path, skip=self._skip_bad_rows)
        if not examples:
            raise DataError("no examples", path)
        return examples

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        return self._read(source, split, report)
