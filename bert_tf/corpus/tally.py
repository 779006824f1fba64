"""Statistics of shards, counted while they are written."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from bert_tf.corpus.masking import Masked
from bert_tf.corpus.rows import Batch
from bert_tf.features.columns import IntArray
from bert_tf.tokenization.vocabulary import Vocabulary

_QUANTILES = 0.1, 0.5, 0.9


@dataclasses.dataclass(frozen=True)
class Tally:
    """Counts of rows."""

    rows: int
    tokens: int  # with [CLS] and [SEP], without padding
    unknown: int  # [UNK] among these, before masking
    masks: int  # places to predict
    as_mask: int  # of these, shown as [MASK]
    as_they_were: int  # of these, left unchanged
    random_next: int  # rows whose B does not follow A
    lengths: tuple[int, ...]  # [T + 1] rows by number of tokens

    @classmethod
    def of(cls, batch: Batch, masked: Masked, random_next: IntArray, vocabulary: Vocabulary) -> Tally:
        """Counts a batch [B, T]; `random_next` is [B]."""
        lengths = batch.input_mask.sum(axis=1)
        real = np.arange(masked.positions.shape[1]) < masked.slots[:, None]
        seen = np.take_along_axis(masked.input_ids, masked.positions, axis=1)[real]
        return cls(
            rows=len(lengths),
            tokens=int(lengths.sum()),
            unknown=int(((batch.input_ids == vocabulary.unk_id) & (batch.input_mask > 0)).sum()),
            masks=int(masked.slots.sum()),
            as_mask=int((seen == vocabulary.mask_id).sum()),
            as_they_were=int((seen == masked.ids[real]).sum()),
            random_next=int(random_next.sum()),
            lengths=tuple(np.bincount(lengths, minlength=batch.input_ids.shape[1] + 1).tolist()),
        )

    @classmethod
    def sum(cls, tallies: Iterable[Tally]) -> Tally:
        found = list(tallies)
        columns = {name: [getattr(one, name) for one in found] for name in _NAMES}
        lengths = tuple(map(sum, zip(*columns.pop("lengths"))))
        return cls(**{name: sum(values) for name, values in columns.items()}, lengths=lengths)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Tally:
        """Inverse of `dataclasses.asdict`, after JSON."""
        return cls(**{**values, "lengths": tuple(values["lengths"])})

    def lines(self, *, next_sentence: bool) -> Iterator[str]:
        places = np.searchsorted(np.cumsum(self.lengths), [share * self.rows for share in _QUANTILES])
        quantiles = ", ".join(f"{share:.0%} have up to {place}" for share, place in zip(_QUANTILES, places))
        drawn = self.masks - self.as_mask - self.as_they_were
        yield f"tokens a row   {self.tokens / self.rows:.1f} on average; {quantiles}"
        yield f"[UNK]          {self.unknown / self.tokens:.2%} of tokens"
        yield (
            f"masked         {self.masks / self.tokens:.1%} of tokens: {self.as_mask / self.masks:.1%} [MASK],"
            f" {self.as_they_were / self.masks:.1%} as they were, {drawn / self.masks:.1%} another piece"
        )
        if next_sentence:
            yield f"next           {1 - self.random_next / self.rows:.1%} of the pairs follow each other, the others are random"


_NAMES = tuple(field.name for field in dataclasses.fields(Tally))
