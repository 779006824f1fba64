"""Writes shards of masked rows independently: a shard depends only on its number and the settings."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bert_tf import atomic, documents
from bert_tf.corpus.masking import Masking
from bert_tf.corpus.order import RandomOrder
from bert_tf.corpus.records import framed, serialized
from bert_tf.corpus.rows import Rows
from bert_tf.corpus.store import Int64Array
from bert_tf.corpus.tally import Tally
from bert_tf.errors import FlagError

_BLOCK = 256  # rows


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
        found = self._noted(shard)
        if found is not None:
            return found
        path = self.paths[shard]
        atomic.delete_unfinished(path)
        with atomic.replacing(path) as temporary, temporary.open("wb") as file:
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
        return Tally.of(batch, masked, labels, vocabulary)

    def _note(self, shard: int) -> Path:
        return self.done / f"{shard}.json"

    def _noted(self, shard: int) -> Tally | None:
        """The tally of a complete shard, else None."""
        try:
            note = documents.read_json(self._note(shard))
            return Tally.read(note["tally"]) if os.path.getsize(self.paths[shard]) == note["bytes"] else None
        except (OSError, documents.DocumentError):
            return None


def names(output: str, shards: int) -> tuple[str, ...]:
    """Shards of `--output_file`: out/x.tfrecord if there is one, else out/x-00000-of-00004.tfrecord, ...

    A comma-separated list names the shards itself. Raises FlagError for an empty or duplicate name, or a list of
    another length.
    """
    given = output.split(",")
    if "" in given or len(set(given)) < len(given):
        raise FlagError(f"--output_file={output}: a name is empty, or appears twice")
    for name in given:
        if name.endswith("/") or os.path.isdir(name) or atomic.is_written_into(name):
            raise FlagError(f"--output_file={name}: name a file; it is a folder, a pipe or a device")
    if len(given) > 1:
        if shards not in (1, len(given)):
            raise FlagError(f"--num_shards={shards}: --output_file names {len(given)} files")
        return tuple(given)
    folder, name = os.path.split(output)
    stem, suffix = os.path.splitext(name)
    numbered = [os.path.join(folder, f"{stem}-{number:05d}-of-{shards:05d}{suffix}") for number in range(shards)]
    return tuple(numbered) if shards > 1 else (output,)
