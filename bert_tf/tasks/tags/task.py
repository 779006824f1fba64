"""Token classification tasks: CoNLL-2003, and custom data."""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence

from bert_tf.errors import DataError, FlagError
from bert_tf.tasks import tables, text_lines
from bert_tf.tasks.base import DEV, TEST, TRAIN
from bert_tf.tasks.custom import NAME as OWN
from bert_tf.tasks.custom import CustomSettings, listed_labels
from bert_tf.tasks.file_task import FileTask
from bert_tf.tasks.tables import JSONL, TSV
from bert_tf.tasks.tags import schemes
from bert_tf.tasks.tags.example import TagExample
from bert_tf.tasks.tags.family import TagFamily
from bert_tf.tasks.tags.reader import TagReader
from bert_tf.tasks.tags.settings import TagSettings

CONLL2003 = "CoNLL2003"
_OF_CONLL2003 = schemes.labels_of(f"B-{name}" for name in ("LOC", "MISC", "ORG", "PER"))
_PATTERNS = {  # names of the shared task, then those that others gave its files
    TRAIN: ("eng.train", "train.txt", "train.conll", "train.jsonl"),
    DEV: ("eng.testa", "valid.txt", "dev.txt", "dev.conll", "dev.jsonl"),
    TEST: ("eng.testb", "test.txt", "test.conll", "test.jsonl"),
}


def conll2003(custom: CustomSettings, settings: TagSettings) -> FileTask:
    """CoNLL-2003 (Tjong Kim Sang and De Meulder, 2003): persons, places, organizations and others."""
    return _Files(custom, settings, _OF_CONLL2003).task(CONLL2003, _PATTERNS)


def own(custom: CustomSettings, settings: TagSettings, labels: Sequence[str] | None) -> FileTask:
    """Custom data; labels come from a trained model, else from the settings, else from the training file."""
    given = listed_labels(custom)
    if labels and given and set(given) != set(labels):
        raise FlagError(f"--labels={custom.labels}: the model was trained to tell {', '.join(labels)}")
    return _Files(custom, settings, tuple(labels or _in_iob2(given))).task(OWN, {})


def _in_iob2(labels: Sequence[str]) -> tuple[str, ...]:
    """Returns the IOB2 tags for the types in listed tags; plain tags unchanged."""
    listed = tuple(labels)
    return schemes.labels_of(listed) if schemes.are_of_entities(listed) and schemes.OUTSIDE in listed else listed


@dataclasses.dataclass(frozen=True)
class _Files:
    """The files of a task, and their tags."""

    custom: CustomSettings
    settings: TagSettings
    given: tuple[str, ...]  # tags; those of the training file where there are none

    def task(self, name: str, patterns: Mapping[str, Sequence[str]]) -> FileTask:
        for column in ("word_column", "tag_column"):
            if getattr(self.settings, column) == 0:
                raise FlagError(f"--{column}=0: columns are counted from 1, from the end with -1")
        if self.custom.file_format not in (None, TSV, JSONL):
            raise FlagError(f"--file_format={self.custom.file_format}: words and tags are in columns (tsv) or in {JSONL}")
        return FileTask(
            name, lambda: TagFamily(self.labels, self.settings.constrained_decoding), self.read, self.custom, patterns
        )

    @property
    def reader(self) -> TagReader:
        settings = self.settings
        return TagReader(settings.word_column, settings.tag_column, settings.raw_text, self.custom.file_format)

    def read(self, source: text_lines.Source, split: str, report: tables.Report) -> Iterator[TagExample]:
        return self.reader.read(source, split, report, lambda: self.labels)

    @property
    def labels(self) -> tuple[str, ...]:
        return self.given or self._found

    @functools.cached_property
    def _found(self) -> tuple[str, ...]:
        """Tags of the training file: entities in IOB2; plain tags most frequent first.

        Includes those that occur only in the dev file: a rare part of speech there is not an error. Raises `DataError` for
        too few tags, `FlagError` without listed tags or a training file.
        """
        path = self.custom.train_file
        if not path:
            raise FlagError("--labels=O,B-X,I-X is required where no --train_file shows which tags there are")
        counts = collections.Counter(tag for tags in self.reader.tags(path) for tag in tags)
        if len(counts) < 2:
            list(self.reader.tags(path, tables.refuse))  # says why no row can be used
            there = f"every word has the tag {next(iter(counts))!r}" if counts else "no word has a tag"
            raise DataError(f"{there}; there is nothing to tell apart", path)
        of_dev = self.reader.tags(self.custom.dev_file) if self.custom.dev_file else ()
        return schemes.labels_of_counts(counts, (tag for tags in of_dev for tag in tags))
