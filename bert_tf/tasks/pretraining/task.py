"""Pre-training as a task: files from settings, or the bundled sample."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf.errors import DataError
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, TRAIN
from bert_tf.tasks.pretraining.family import NO_LABELS, TASK, PretrainingFamily
from bert_tf.tasks.pretraining.opening import SplitFiles
from bert_tf.tasks.pretraining.settings import PretrainingSettings

if TYPE_CHECKING:
    from bert_tf.tasks.settings import TaskSettings

_IN_FOLDER = ("train.txt", "held_out.txt")
_SECOND = "phase2"


class PretrainingTask:
    """Pre-training on text; a second phase adds a second split for both training and evaluation."""

    name: str = TASK
    named_by = "--input_file"  # its files, where no folder holds them

    def __init__(self, settings: PretrainingSettings) -> None:
        self._settings = settings
        self.family = PretrainingFamily.from_settings(settings)

    @property
    def reads_folder(self) -> bool:
        return self._settings.input_file is None

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        del data_dir
        if purpose not in (TRAIN, DEV):
            raise DataError(f"no split {purpose}: {NO_LABELS}", TASK)
        return (purpose, f"{purpose}_{_SECOND}") if self._settings.phase2_num_train_steps else (purpose,)

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        settings = self._of_folder(data_dir)
        named = settings.input_file if split.startswith(TRAIN) else settings.held_out_file or settings.input_file
        return Path(named or "")

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Any:
        """Returns `SplitFiles`: its rows are made once the tokenizer is known."""
        purpose, _, second = split.partition("_")
        return SplitFiles(split, purpose, self._of_folder(data_dir), second=bool(second))

    def _of_folder(self, data_dir: str | os.PathLike[str]) -> PretrainingSettings:
        """Fills in the files of the folder if the settings name none."""
        if not self.reads_folder:
            return self._settings
        trained, held_out = (os.path.join(data_dir, name) for name in _IN_FOLDER)
        return dataclasses.replace(self._settings, input_file=trained, held_out_file=held_out)

    def stream(self, source: text_lines.Source, split: str, report: tables.Report = tables.refuse) -> Iterator[Any]:
        del split, report
        raise DataError("pre-training reads text and shards as a whole: python -m bert_tf pretrain", source)

    def published_name(self, split: str) -> str:
        return split

    def submission(self, split: str) -> None:
        """None: no server accepts it."""


def pretraining(settings: TaskSettings) -> PretrainingTask:
    return PretrainingTask(settings.pretraining)
