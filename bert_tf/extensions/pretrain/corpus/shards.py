"""Shards of masked rows and their statistics; a shard depends only on its number and the settings."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from bert_tf.errors import FlagError
from bert_tf.extensions.pretrain.corpus.masking import Bits, Masked, Masking, splitmix64
from bert_tf.extensions.pretrain.corpus.records import framed, serialized
from bert_tf.extensions.pretrain.corpus.rows import Batch, Rows
from bert_tf.extensions.pretrain.corpus.store import Int64Array
from bert_tf.features.columns import IntArray
from bert_tf.io import atomic, documents
from bert_tf.tokenization.vocabulary import Vocabulary

_ROUNDS = 4  # of a Feistel network: enough to look like a random order
_QUANTILES = 0.1, 0.5, 0.9
_BLOCK = 256  # rows


@dataclasses.dataclass(frozen=True)
class RandomOrder:
    """A permutation of 0, 1, ..., size - 1.

    A Feistel network permutes numbers of twice as many bits as needed for a half; a result outside the range goes
    through again until it is inside (cycle walking).
    """

    size: int
    seed: int

    def __call__(self, places: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Row numbers at indices `places` [n] of the permutation."""
        numbers = self._once(places.astype(np.uint64))
        while (outside := numbers >= self.size).any():
            numbers[outside] = self._once(numbers[outside])
        return numbers.astype(np.int64)

    @functools.cached_property
    def _half(self) -> int:
        return max(1, ((self.size - 1).bit_length() + 1) // 2)

    def _once(self, numbers: Bits) -> Bits:
        bits, mask = np.uint64(self._half), np.uint64((1 << self._half) - 1)
        left, right = numbers >> bits, numbers & mask
        for turn in range(_ROUNDS):
            key = splitmix64(np.array([(self.seed * _ROUNDS + turn) & (1 << 64) - 1], np.uint64))
            left, right = right, left ^ (splitmix64(right ^ key) & mask)
        return (left << bits) | right


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
    def of_batch(cls, batch: Batch, masked: Masked, random_next: IntArray, vocabulary: Vocabulary) -> Tally:
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
        summands = list(tallies)
        columns = {
            name: [getattr(tally, name) for tally in summands] for name in (field.name for field in dataclasses.fields(cls))
        }
        lengths = tuple(map(sum, zip(*columns.pop("lengths"))))
        return cls(**{name: sum(values) for name, values in columns.items()}, lengths=lengths)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Tally:
        """Inverse of `dataclasses.asdict`, after JSON."""
        return cls(**{**values, "lengths": tuple(values["lengths"])})

    def lines(self, *, next_sentence: bool) -> Iterator[str]:
        places = np.searchsorted(np.cumsum(self.lengths), [share * self.rows for share in _QUANTILES])
        quantiles = ", ".join(f"{share:.0%} have up to {length}" for share, length in zip(_QUANTILES, places))
        drawn = self.masks - self.as_mask - self.as_they_were
        yield f"tokens a row   {self.tokens / self.rows:.1f} on average; {quantiles}"
        yield f"[UNK]          {self.unknown / self.tokens:.2%} of tokens"
        yield (
            f"masked         {self.masks / self.tokens:.1%} of tokens: {self.as_mask / self.masks:.1%} [MASK],"
            f" {self.as_they_were / self.masks:.1%} as they were, {drawn / self.masks:.1%} another piece"
        )
        if next_sentence:
            yield f"next           {1 - self.random_next / self.rows:.1%} of the pairs follow each other, the others are random"


@dataclasses.dataclass(frozen=True)
class ShardPlan:
    """Assigns rows to shards: those at indices s, s + S, s + 2 S, ... of a random order to shard s of S."""

    rows: Rows
    masking: Masking
    seq_length: int  # padded length of rows
    paths: tuple[str, ...]
    done: Path  # folder of records of complete shards

    def write(self, shard: int) -> Tally:
        """Writes a shard unless it is complete; raises OutputError."""
        noted = self._noted(shard)
        if noted is not None:
            return noted
        path = self.paths[shard]
        atomic.delete_unfinished(path)
        with atomic.replacing(path, follows=False) as temporary, temporary.open("wb") as file:
            tally = Tally.sum([self._write_block(file, numbers) for numbers in self._blocks(shard)])
            file.flush()
            os.fsync(file.fileno())
        note = {"bytes": os.path.getsize(path), "tally": dataclasses.asdict(tally)}
        atomic.write_text(self._note(shard), documents.to_json(note))
        return tally

    def _blocks(self, shard: int) -> Iterator[Int64Array]:
        order, step = RandomOrder(len(self.rows), self.masking.seed), len(self.paths)
        for first in range(shard, len(self.rows), step * _BLOCK):
            yield order(np.arange(first, min(first + step * _BLOCK, len(self.rows)), step))

    def _write_block(self, file: BinaryIO, numbers: Int64Array) -> Tally:
        vocabulary = self.masking.vocabulary
        batch = self.rows.batch(numbers, self.seq_length, cls_id=vocabulary.cls_id, sep_id=vocabulary.sep_id)
        masked = self.masking(batch.input_ids, batch.input_mask, rows=numbers)
        labels = self.rows.next_sentence_labels(numbers)
        examples = serialized(batch, masked, labels, max_predictions=self.masking.max_predictions_per_seq)
        file.writelines(map(framed, examples))
        self.rows.release()
        return Tally.of_batch(batch, masked, labels, vocabulary)

    def _note(self, shard: int) -> Path:
        return self.done / f"{shard}.json"

    def _noted(self, shard: int) -> Tally | None:
        """The tally of a complete shard, else None, as if the note is damaged."""
        try:
            note = documents.read_json(self._note(shard))
            return Tally.from_values(note["tally"]) if os.path.getsize(self.paths[shard]) == note["bytes"] else None
        except (OSError, ValueError, KeyError, TypeError):
            return None


def names(output: str, shards: int) -> tuple[str, ...]:
    """Shards of `--output_file`: out/x.tfrecord if there is one, else out/x-00000-of-00004.tfrecord, ...

    A comma-separated list names the shards itself. Raises FlagError for an empty or duplicate name, or a list of
    another length.
    """
    paths = output.split(",")
    if "" in paths or len(set(paths)) < len(paths):
        raise FlagError(f"--output_file={output}: a name is empty, or appears twice")
    for name in paths:
        if name.endswith("/") or os.path.isdir(name) or atomic.is_written_into(name):
            raise FlagError(f"--output_file={name}: name a file; it is a folder, a pipe or a device")
    if len(paths) > 1:
        if shards not in (1, len(paths)):
            raise FlagError(f"--num_shards={shards}: --output_file names {len(paths)} files")
        return tuple(paths)
    folder, name = os.path.split(output)
    stem, suffix = os.path.splitext(name)
    numbered = [os.path.join(folder, f"{stem}-{number:05d}-of-{shards:05d}{suffix}") for number in range(shards)]
    return tuple(numbered) if shards > 1 else (output,)
