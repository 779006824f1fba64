"""The rows of a split, of shards or of a store, masked as they are drawn; and a row in readable form."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from bert_tf.extensions.pretrain.corpus.masking import Masked, Masking
from bert_tf.extensions.pretrain.corpus.records import Records
from bert_tf.extensions.pretrain.corpus.rows import Batch, Rows
from bert_tf.features.columns import Array, Drawn, Features, IntArray, Numbers
from bert_tf.fields import INPUTS, ROW, SLOT, SLOTS, Field
from bert_tf.tasks.base import OnDisk
from bert_tf.tokenization.vocabulary import Vocabulary

POSITIONS, IDS = Field("masked_lm_positions", SLOT), Field("masked_lm_ids", SLOT)
NEXT_LABELS = Field("next_sentence_labels")
DOCUMENTS = Field("documents", ROW, in_batches=False)  # document of each row; for intervals
FIELDS = (POSITIONS, IDS, NEXT_LABELS)

NEXT, RANDOM = "next", "random"  # relation of the second text to the first


@dataclasses.dataclass(frozen=True)
class PretrainingExample:
    """A row before masking."""

    guid: str
    pieces: tuple[str, ...]  # all of the row, including [CLS] and [SEP], see `Vocabulary.word_piece`
    label: str | None = None  # relation of the second text; None for a single text

    @property
    def texts(self) -> tuple[str, ...]:
        return (text_of(self.pieces)[0],)


def text_of(pieces: Sequence[str]) -> tuple[str, list[tuple[int, int]]]:
    """Joins pieces to a text; also returns the character span (start, end) of each."""
    text, places = "", []
    for piece in pieces:
        text += "" if piece.startswith("##") or not text else " "
        shown = piece[2:] if piece.startswith("##") else piece
        places.append((len(text), len(text) + len(shown)))
        text += shown
    return text, places


class Source(abc.ABC):
    """N rows as `TrainingRows`; each row is a unit."""

    vocabulary: Vocabulary
    digest: str  # of the files and settings the rows are made from
    longest: int  # maximum tokens per row
    pairs: bool  # rows consist of two texts

    @property
    @abc.abstractmethod
    def units(self) -> int:
        """Number of rows, N."""

    @property
    def examples(self) -> int:
        return self.units

    @property
    @abc.abstractmethod
    def unit_lengths(self) -> IntArray:
        """[N] tokens of each row, or an upper bound if unknown."""

    @property
    def batch_fields(self) -> tuple[Field, ...]:
        return (*INPUTS, SLOTS, *FIELDS)

    def rows_of(self, units: Numbers) -> Numbers:
        return units.astype(np.int64)

    @abc.abstractmethod
    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        """Returns drawn rows, see `TrainingRows`."""

    @abc.abstractmethod
    def plain(self, numbers: Numbers) -> Batch:
        """Returns rows without masks, padded."""

    @abc.abstractmethod
    def labels(self, numbers: Numbers) -> IntArray:
        """Returns 0 for rows whose second text follows the first, 1 if it is random."""

    @abc.abstractmethod
    def documents(self, numbers: Numbers) -> Numbers:
        """Returns the document number of each row."""

    def example(self, number: int, split: str) -> PretrainingExample:
        """Returns a row in readable form; `split` is part of its name."""
        numbers = np.array([number])
        plain = self.plain(numbers)
        pieces = tuple(self.vocabulary.word_piece(piece) for piece in plain.input_ids[0][plain.input_mask[0] > 0])
        label = (NEXT, RANDOM)[int(self.labels(numbers)[0])] if self.pairs else None
        return PretrainingExample(f"{split}-{number}", pieces, label)


def features_of(batch: Batch, masked: Masked, labels: IntArray) -> Features:
    """Converts n padded rows of T tokens, plain and masked, with labels [n] (1: random second text) to features."""
    real, places = batch.input_mask > 0, np.arange(masked.positions.shape[1]) < masked.slots[:, None]
    lengths = batch.input_mask.sum(axis=1, dtype=np.int32)
    targets: dict[str, Array] = {
        POSITIONS.name: masked.positions[places],
        IDS.name: masked.ids[places],
        NEXT_LABELS.name: labels.astype(np.int32),
    }
    return Features(
        token_ids=masked.input_ids[real],
        lengths=lengths,
        first_lengths=lengths - batch.segment_ids.sum(axis=1, dtype=np.int32),
        targets=targets,
        fields=FIELDS,
        slots=masked.slots,
        weights=masked.slots,
    )


def with_documents(features: Features, documents: Numbers) -> Features:
    """Adds the documents [n] of the rows as int32 ranks: the numbers themselves may exceed an int32."""
    numbers = np.unique(documents, return_inverse=True)[1]  # those of a large corpus are larger than an int32
    columns = {**features.columns(), DOCUMENTS.name: numbers.astype(np.int32)}
    return Features.from_columns(columns, (*features.fields, DOCUMENTS), truncated=features.truncated)


_TOLD_BY = 8  # rows that tell whether all are pairs


class ShardRows(Source):
    """The same rows in every epoch. Their documents are unknown; each row counts as one."""

    def __init__(self, records: Records, vocabulary: Vocabulary, *, digest: str) -> None:
        self._records = records
        self.vocabulary, self.longest, self.digest = vocabulary, records.seq_length, digest
        self.pairs = bool(records.read_rows(np.arange(min(len(records), _TOLD_BY))).segment_ids.any())

    @property
    def units(self) -> int:
        return len(self._records)

    @functools.cached_property
    def unit_lengths(self) -> IntArray:
        """[N] padded length of the rows in the files."""
        return np.full(self.units, self.longest, np.int32)

    def plain(self, numbers: Numbers) -> Batch:
        read = self._records.read_rows(numbers)
        ids = read.input_ids.copy()
        places = np.arange(read.positions.shape[1]) < read.slots[:, None]
        rows = np.repeat(np.arange(len(numbers)), read.slots)
        ids[rows, read.positions[places]] = read.ids[places]
        return Batch(ids, read.input_mask, read.segment_ids)

    def labels(self, numbers: Numbers) -> IntArray:
        return self._records.read_rows(numbers).next_sentence_labels

    def documents(self, numbers: Numbers) -> Numbers:
        return numbers

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        del epochs
        read = self._records.read_rows(units)
        batch = Batch(read.input_ids, read.input_mask, read.segment_ids)
        masked = Masked(read.input_ids, read.slots, read.positions, read.ids)
        return Drawn(features_of(batch, masked, read.next_sentence_labels), np.arange(len(units)))


class StoredRows(Source):
    """Rows of a store; a mask is a function of seed, epoch and row."""

    def __init__(self, stored: Rows, masking: Masking, *, longest: int, digest: str) -> None:
        self._stored, self._masking = stored, masking
        self.vocabulary, self.longest, self.digest = masking.vocabulary, longest, digest
        self.pairs = bool(len(stored)) and bool(stored.table["b_length"][0])

    @property
    def units(self) -> int:
        return len(self._stored)

    @functools.cached_property
    def unit_lengths(self) -> IntArray:
        return self._stored.lengths()

    def plain(self, numbers: Numbers) -> Batch:
        longest = int(self._stored.lengths(numbers).max(initial=0))
        return self._stored.batch(numbers, longest, cls_id=self.vocabulary.cls_id, sep_id=self.vocabulary.sep_id)

    def labels(self, numbers: Numbers) -> IntArray:
        return self._stored.next_sentence_labels(numbers)

    def documents(self, numbers: Numbers) -> Numbers:
        """For a pair, the document of its first text."""
        store = self._stored.store
        first_tokens = store.sentence_starts[store.document_starts[:-1]]
        document_numbers: Numbers = np.searchsorted(first_tokens, self._stored.table["a_start"][numbers], side="right") - 1
        return document_numbers

    def drawn(self, units: Numbers, epochs: Numbers) -> Drawn:
        plain = self.plain(units)
        most = min(self._masking.max_predictions_per_seq, plain.input_ids.shape[1])
        slots, input_ids = np.zeros(len(units), np.int32), plain.input_ids.copy()
        positions, ids = (np.zeros([len(units), most], np.int32) for _ in range(2))
        for epoch in np.unique(epochs).tolist():
            of_epoch = epochs == epoch
            masked = self._masking(plain.input_ids[of_epoch], plain.input_mask[of_epoch], rows=units[of_epoch], epoch=epoch)
            input_ids[of_epoch], slots[of_epoch] = masked.input_ids, masked.slots
            width = masked.positions.shape[1]
            positions[of_epoch, :width], ids[of_epoch, :width] = masked.positions, masked.ids
        features = features_of(plain, Masked(input_ids, slots, positions, ids), self.labels(units))
        return Drawn(features, np.arange(len(units)))


class TextRows(OnDisk):
    """Rows of a split; for evaluation at most a given number, spread evenly over all."""

    def __init__(
        self, make: Callable[[], Source], vocabulary: Vocabulary, split: str, longest: int, most: int | None = None
    ) -> None:
        """Makes nothing yet. `longest`: maximum tokens per row; `most`: number of rows to take, None for all."""
        self._make, self._split, self._most = make, split, most
        self._longest, self.vocabulary = longest, vocabulary

    @functools.cached_property
    def rows(self) -> Source:
        return self._make()

    @property
    def longest(self) -> int:
        return self._longest

    @property
    def digest(self) -> str:
        return self.rows.digest

    @functools.cached_property
    def _numbers(self) -> Numbers | range:
        count = self.rows.units
        if self._most is None or count <= self._most:
            return range(count)
        return np.linspace(0, count - 1, self._most).astype(np.int64)

    def features(self) -> Features:
        """Returns the rows with the masks of the first epoch."""
        numbers = np.asarray(self._numbers, np.int64)
        fixed = self.rows.drawn(numbers, np.zeros(len(numbers), np.int64)).features
        return with_documents(fixed, self.rows.documents(numbers))

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> PretrainingExample: ...

    @overload
    def __getitem__(self, index: slice) -> list[PretrainingExample]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        return self.rows.example(int(self._numbers[index]), self._split)
