"""What a task is: examples, labels, a head and metrics."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, Union

from bert_tf import files
from bert_tf.tasks.tables import Report, Source, refuse

TRAIN, DEV, TEST = "train", "dev", "test"
PURPOSES = (TRAIN, DEV, TEST)

# Kinds of heads: one of several classes, a number, any of several classes.
CLASSIFICATION, REGRESSION, MULTI_LABEL = "classification", "regression", "multi_label"
KINDS = (CLASSIFICATION, REGRESSION, MULTI_LABEL)

Label = Union[str, float, tuple[str, ...]]  # a name, a number, or names: one type for each kind


@dataclasses.dataclass(frozen=True)
class SentenceExample:
    """One sentence, or a pair, and its label."""

    guid: str  # split and number, as in the published script: "dev-1"; of one's own data the id
    text_a: str
    text_b: str | None = None
    label: Label | None = None  # None where it is to be predicted


@dataclasses.dataclass(frozen=True)
class HeadSpec:
    """What the model puts on top of the encoder: `num_labels` logits for each sequence, a number for regression."""

    num_labels: int
    kind: str = CLASSIFICATION


class Task(Protocol):
    """A thing to be learned.

    A purpose (train, dev, test) has one split or several: MNLI is evaluated on dev_matched and dev_mismatched.
    """

    @property
    def name(self) -> str:
        """Name as people write it, MRPC."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names; the position is the class index. Empty for regression."""

    @property
    def head(self) -> HeadSpec:
        """What the model computes."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of `bert_tf.metrics.METRICS`; the best checkpoint is the best by the first."""

    def splits(self, data_dir: str | os.PathLike[str], purpose: str) -> tuple[str, ...]:
        """Returns the splits of train, dev or test that the folder holds; the first one where it holds none.

        Raises:
          DataError: the task has no split for this purpose, as AX for training.
        """

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns the file of a split, or the folder where it has several, whether it exists or not."""

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[SentenceExample]:
        """Reads a split; the label is None in splits of test.

        Raises:
          DataError: the file is missing or cannot be read; names file and line.
        """

    def stream(self, source: Source, split: str, report: Report = refuse) -> Iterator[SentenceExample]:
        """Reads a file in the layout of a split, in constant memory.

        Args:
          source: a path, or `-` for the standard input.
          split: whose layout it is.
          report: is called for each row that cannot be used, which is then left out.

        Raises:
          DataError: the file is missing or has other columns; whatever `report` raises.
        """

    def published_name(self, split: str) -> str:
        """Returns what the published script calls a split: test for test_matched of MNLI."""

    def submission(self, split: str) -> str | None:
        """Returns the name that GLUE's server knows a split of test by, MNLI-mm; None where it takes none."""


def file_digest(path: str | os.PathLike[str]) -> str:
    """Returns the sha256 of a file's bytes; of a folder, that of the names and digests of what is in it."""
    digest = hashlib.sha256()
    if Path(path).is_dir():
        for file in sorted(Path(path).iterdir()):
            digest.update(f"{file_digest(file)}  {file.name}\n".encode())
        return digest.hexdigest()
    with files.open_plain(path) as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
