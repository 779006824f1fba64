"""Pre-training rows: which tokens of a store form A and B of each, without copying them.

As published (Devlin et al., 2018; create_pretraining_data.py): sentences are taken until a row is full, a random
number of them is A, and B is what follows or, half of the time, begins at a random sentence of another document;
unused sentences begin the next row. One difference: whether a row is short is drawn per row, not per document,
since otherwise all rows of a book could be short. Without next sentences a row is as many full sentences of one
document as fit (DOC-SENTENCES of Liu et al., 2019).

Random numbers depend on seed, duplicate and document, so neither on workers nor on other documents. Shapes: N rows,
B rows of a batch, T tokens.
"""

from __future__ import annotations

import bisect
import dataclasses
import functools
import hashlib
import itertools
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np
import numpy.typing as npt

from bert_tf.extensions.pretrain.corpus import appending, processes
from bert_tf.extensions.pretrain.corpus.appending import Appending
from bert_tf.extensions.pretrain.corpus.store import Int64Array, TokenStore
from bert_tf.features.columns import IntArray
from bert_tf.io import documents as json_documents
from bert_tf.io.log_form import log

FORMAT = 1
# Where a row's tokens are in the store. B has none without next sentences.
ROW = np.dtype(
    [("a_start", np.int64), ("a_length", np.int32), ("b_start", np.int64), ("b_length", np.int32), ("random_next", np.bool_)]
)
_FILE = "rows.bin"
_TYPES = {_FILE: ROW}
_STRETCH = 1 << 16  # sentences: a longer document is cut into stretches, which are treated as documents
_TASK = 1 << 20  # tokens, about
_DOCUMENTS = 1 << 20  # examined together
_RELEASED_EVERY = 512  # rows: each may read another part of the store
_TRIES = 10  # to draw another document
_FEW, _LOOKED_AT = 20, 10_000  # rows that show the share of random pairs
_NEARLY_ALL = 0.95


@dataclasses.dataclass(frozen=True)
class RowSettings:
    max_seq_length: int = 128  # with [CLS] and [SEP]; at least 5
    short_seq_prob: float = 0.1  # share of rows with a shorter, random length
    next_sentence: bool = True  # whether rows have a B, see the module
    seed: int = 12345
    duplicates: int = 1  # passes over each document, each with other rows


Used = Union[Int64Array, range]  # numbers of documents, rising


class Batch(NamedTuple):
    """Padded rows, each [B, T]: [CLS] A [SEP] B [SEP], or [CLS] A [SEP]."""

    input_ids: IntArray
    input_mask: IntArray
    segment_ids: IntArray


@dataclasses.dataclass(frozen=True)
class Rows:
    """Rows of a store."""

    store: TokenStore
    table: npt.NDArray[Any]  # [N] `ROW`, memory map; by duplicate, then by document
    folder: Path

    @classmethod
    def _opened(cls, store: TokenStore, folder: Path) -> Rows:
        (table,) = appending.mapped(folder, _TYPES)
        return cls(store, table, folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles as the folder's name."""
        return Rows._opened, (self.store, self.folder)

    def __len__(self) -> int:
        return len(self.table)

    def release(self) -> None:
        appending.release(self.table)
        self.store.release()

    def lengths(self, numbers: npt.NDArray[np.integer[Any]] | slice = slice(None)) -> IntArray:  # noqa: B008  (immutable)
        """Tokens of rows, including [CLS] and [SEP]."""
        rows = self.table[numbers]
        lengths: IntArray = rows["a_length"] + rows["b_length"] + np.int32(2) + (rows["b_length"] > 0)
        return lengths

    def next_sentence_labels(self, numbers: npt.NDArray[np.integer[Any]] | slice = slice(None)) -> IntArray:  # noqa: B008
        """0 if B follows A or there is no B, 1 if B is random."""
        return self.table["random_next"][numbers].astype(np.int32)

    def batch(self, numbers: npt.NDArray[np.integer[Any]], tokens: int, *, cls_id: int, sep_id: int) -> Batch:
        """Rows `numbers` [B], padded with 0 as published to `tokens` (T, at least the longest)."""
        rows = self.table[numbers]
        a, b = rows["a_length"][:, None], rows["b_length"][:, None]
        position = np.arange(tokens, dtype=np.int32)  # [T]
        in_a = (position >= 1) & (position <= a)  # [B, T]
        in_b = (position >= a + 2) & (position < a + 2 + b)
        last = np.where(b > 0, a + b + 2, a + 1)
        where = np.where(in_a, rows["a_start"][:, None] + position - 1, rows["b_start"][:, None] + position - a - 2)
        real = position <= last
        ids = np.where(in_a | in_b, self.store.ids[np.where(in_a | in_b, where, 0)], np.where(real, sep_id, 0))
        ids[:, 0] = cls_id
        segments = (position >= a + 2) & real
        return Batch(ids.astype(np.int32), real.astype(np.int32), segments.astype(np.int32))


class Task(NamedTuple):
    """Documents whose rows are made together: one stretch of a long one, or several short ones."""

    duplicate: int  # from 0
    first: int  # index of the first document among those in use
    end: int  # exclusive
    stretch: int  # of a long document, from 0


def build(
    folder: str | os.PathLike[str],
    store: TokenStore,
    settings: RowSettings,
    *,
    documents: Int64Array | None = None,
    workers: int | None = None,
) -> Rows:
    """Makes the rows of a store, reusing or completing those that exist for the same settings.

    `folder` holds nothing else, and other rows in it are replaced. `documents` are ascending document numbers, which
    random Bs come from too; None uses all. `workers` (None: one per core) does not affect the rows. Raises OutputError.
    """
    path = Path(folder)
    used: Used = range(store.documents) if documents is None else np.asarray(documents, np.int64)
    of_documents = None if documents is None else hashlib.sha256(np.asarray(used).tobytes()).hexdigest()
    identity = json_documents.to_json([FORMAT, _STRETCH, _TASK, store.key, dataclasses.asdict(settings), of_documents])
    key = hashlib.sha256(identity.encode()).hexdigest()
    record = appending.record(path)
    if record is None or record["key"] != key:
        make = functools.partial(rows_of, store=store, settings=settings, used=used)
        with Appending(path, key, _TYPES, {"done": 0}) as writer:
            left = itertools.islice(tasks(store, settings, used), writer.state["done"], None)
            for rows in processes.mapped(make, left, workers=workers or processes.cores(), unit="block of rows"):
                writer.append({_FILE: rows}, done=writer.state["done"] + 1)
            writer.finish(vocabulary=store.vocabulary)
    return Rows._opened(store, path)


def warn_of_random(rows: Rows) -> None:
    """Warns if hardly any B follows its A, as of documents of one sentence each: there is nothing to tell apart."""
    looked_at = rows.table[:_LOOKED_AT]
    if len(looked_at) >= _FEW and looked_at["b_length"].any() and looked_at["random_next"].mean() > _NEARLY_ALL:
        text = "hardly any text of a pair follows the other: documents have few sentences; add --nsp=false, or join documents"
        log.warning(text)


def tasks(store: TokenStore, settings: RowSettings, used: Used) -> Iterator[Task]:
    """Yields tasks in row order; `used` [D] are document numbers."""
    for duplicate, begin in itertools.product(range(settings.duplicates), range(0, len(used), _DOCUMENTS)):
        documents = np.asarray(used[begin : begin + _DOCUMENTS])
        starts, stops = store.document_starts[documents], store.document_starts[documents + 1]
        sentences, ends = stops - starts, np.cumsum(store.sentence_starts[stops] - store.sentence_starts[starts])
        store.release()
        borders = [0, *(np.flatnonzero(np.diff(ends // _TASK)) + 1).tolist(), len(documents)]
        for first, end in zip(borders, borders[1:]):
            stretches = -(-int(sentences[first:end].max(initial=0)) // _STRETCH)
            yield from (Task(duplicate, begin + first, begin + end, stretch) for stretch in range(stretches))


def rows_of(task: Task, store: TokenStore, settings: RowSettings, used: Used) -> npt.NDArray[Any]:
    """Rows of a task, [n] `ROW`; `used` [D] are document numbers."""
    make = _pairs if settings.next_sentence else _full
    rows: list[tuple[int, int, int, int, bool]] = []
    for index in range(task.first, task.end):
        document = int(used[index])
        first, end = store.document_starts[document : document + 2].tolist()
        first += task.stretch * _STRETCH
        if first < end:
            starts = store.sentence_starts[first : min(first + _STRETCH, end) + 1].tolist()
            source = _Source(store, used, index, _draws(settings.seed, task.duplicate, document, task.stretch))
            for row in make(starts, settings, source):
                rows.append(row)
                if len(rows) % _RELEASED_EVERY == 0:
                    store.release()
    return np.array(rows, ROW)


class _Source(NamedTuple):
    """What a document's rows are made of besides its own sentences."""

    store: TokenStore
    used: Used
    position: int
    draws: random.Random

    def other(self, tokens: int) -> tuple[int, int]:
        """A range of `tokens` from a random sentence, of another document if possible; shorter if that document ends."""
        for _ in range(_TRIES):
            index = _below(self.draws, len(self.used))
            if index != self.position:
                break
        first, end = self.store.document_starts[self.used[index] :][:2].tolist()
        sentence = first + _below(self.draws, end - first)
        starts = self.store.sentence_starts[sentence : min(end, sentence + max(tokens, 1)) + 1]  # none is empty
        enough = min(int(np.searchsorted(starts, starts[0] + max(tokens, 1))), len(starts) - 1)
        return int(starts[0]), int(starts[enough])


def _draws(*numbers: int) -> random.Random:
    digest = hashlib.blake2b(",".join(map(str, numbers)).encode(), digest_size=16)
    return random.Random(int.from_bytes(digest.digest(), "little"))  # noqa: S311  (no secret)


def _below(draws: random.Random, count: int) -> int:
    return int(draws.random() * count)  # only `random` is the same in every version of Python


def _target(draws: random.Random, most: int, settings: RowSettings) -> int:
    """Length of the next row without [CLS] and [SEP]."""
    return 2 + _below(draws, most - 1) if draws.random() < settings.short_seq_prob else most


def _pairs(starts: list[int], settings: RowSettings, source: _Source) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yields rows with next sentences; `starts` are the first tokens of the document's sentences, and its end."""
    most, draws, first, last = settings.max_seq_length - 3, source.draws, 0, len(starts) - 1
    while first < last:
        target = _target(draws, most, settings)
        end = min(bisect.bisect_left(starts, starts[first] + target, first + 1), last)
        middle = first + 1 + (_below(draws, end - first - 1) if end - first > 1 else 0)
        a = starts[first], starts[middle]
        is_random = middle == end or draws.random() < 0.5
        b = source.other(target - (a[1] - a[0])) if is_random else (starts[middle], starts[end])
        yield (*_truncated(a, b, most, draws), is_random)
        first = middle if is_random else end


def _truncated(a: tuple[int, int], b: tuple[int, int], most: int, draws: random.Random) -> tuple[int, int, int, int]:
    """Start and length of A and B after dropping tokens of the longer one, each from a random end."""
    lengths = a[1] - a[0], b[1] - b[0]
    surplus = max(sum(lengths) - most, 0)
    of_longer = min(surplus, abs(lengths[0] - lengths[1]))
    each, odd = divmod(surplus - of_longer, 2)
    too_much = each, each + odd  # of equal lengths, B loses the odd token
    too_much = (each + of_longer, each + odd) if lengths[0] > lengths[1] else (each, each + odd + of_longer)
    # A toss of a coin for each token to drop: heads are dropped from the start.
    heads = [bin(draws.getrandbits(count)).count("1") for count in too_much]
    return a[0] + heads[0], lengths[0] - too_much[0], b[0] + heads[1], lengths[1] - too_much[1]


def _full(starts: list[int], settings: RowSettings, source: _Source) -> Iterator[tuple[int, int, int, int, bool]]:
    """Yields rows without next sentences; a sentence longer than a row continues in the next."""
    token, end = starts[0], starts[-1]
    while token < end:
        target = _target(source.draws, settings.max_seq_length - 2, settings)
        border = starts[bisect.bisect_right(starts, token + target) - 1]
        stop = border if border > token else token + target
        yield token, stop - token, 0, 0, False
        token = stop
