"""What a task is: examples, labels, a head and metrics."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

TRAIN, DEV, TEST = "train", "dev", "test"
SPLITS = (TRAIN, DEV, TEST)


@dataclasses.dataclass(frozen=True)
class SentenceExample:
    """One sentence, or a pair, and its label."""

    guid: str  # split and number, counted as the published script counts: "dev-1"
    text_a: str
    text_b: str | None = None
    label: str | None = None  # None where it is to be predicted


@dataclasses.dataclass(frozen=True)
class HeadSpec:
    """What the model puts on top of the encoder: `num_labels` logits for each sequence."""

    num_labels: int


class Task(Protocol):
    """A thing to be learned."""

    @property
    def name(self) -> str:
        """Name as people write it, MRPC."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names; the position is the class index."""

    @property
    def head(self) -> HeadSpec:
        """What the model computes."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of `bert_tf.metrics.METRICS`."""

    def file(self, data_dir: str | os.PathLike[str], split: str) -> Path:
        """Returns the file of a split, whether it exists or not."""

    def examples(self, data_dir: str | os.PathLike[str], split: str) -> Sequence[SentenceExample]:
        """Reads a split.

        Raises:
          DataError: the file is missing or cannot be read; names file and line.
        """


def file_digest(path: str | os.PathLike[str]) -> str:
    """Returns the sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
