"""Shards of masked rows: TFRecord files of `tf.train.Example` with the published fields, without TensorFlow.

A file is a sequence of: length (8 bytes), its checksum, the example, its checksum (masked CRC-32C, little endian).
An index of offsets gives random access to rows, so that files may be larger than memory.

Shapes: N rows, B rows of a batch, T tokens of a row, S places for masks.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
import mmap
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt
from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from bert_tf.errors import DataError, VocabularyError
from bert_tf.extensions.pretrain.corpus import appending
from bert_tf.extensions.pretrain.corpus.appending import Appending
from bert_tf.extensions.pretrain.corpus.masking import Masked
from bert_tf.extensions.pretrain.corpus.rows import Batch
from bert_tf.features.columns import IntArray
from bert_tf.io import documents as json_documents
from bert_tf.io import encodings, files
from bert_tf.tokenization.vocabulary import Vocabulary

WEIGHTS = "masked_lm_weights"  # floats; all others are integers
_OF_TOKENS = ("input_ids", "input_mask", "segment_ids")
_OF_MASKS = ("masked_lm_positions", "masked_lm_ids", WEIGHTS)
LABELS = "next_sentence_labels"
FIELDS = (*_OF_TOKENS, *_OF_MASKS, LABELS)  # in the published order

Array = npt.NDArray[Any]
INDEX = np.dtype([("file", np.int32), ("offset", np.int64), ("length", np.int32)])  # of an example

_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
_AROUND = _LENGTH.size + 2 * _SUM.size  # bytes of a record that are not its example
_NUMBERED = re.compile(r"-\d{5,}-of-(\d{5,})(?=(\.[^./]*)?$)")
_OFFSETS = "offsets.bin"
_TYPES = {_OFFSETS: INDEX}
_BLOCK = 1 << 16  # rows
_SHOWN = 200  # characters of names in a message


class Read(NamedTuple):
    """Rows of shards."""

    input_ids: IntArray  # [B, T] with masks applied
    input_mask: IntArray  # [B, T]
    segment_ids: IntArray  # [B, T]
    slots: IntArray  # [B] number of masks
    positions: IntArray  # [B, S] 0 beyond the row's slots
    ids: IntArray  # [B, S] original pieces; 0 beyond the row's slots
    next_sentence_labels: IntArray  # [B] 0 if B follows A, 1 if it is random


def serialized(batch: Batch, masked: Masked, next_sentence_labels: IntArray, *, max_predictions: int) -> Iterator[bytes]:
    """Yields rows [B, T], padded to one length per file, as serialized examples with S = `max_predictions`."""
    room = [(0, 0), (0, max_predictions - masked.positions.shape[1])]
    positions, ids = np.pad(masked.positions, room), np.pad(masked.ids, room)
    weights = (np.arange(max_predictions) < masked.slots[:, None]).astype(np.float32)
    columns = masked.input_ids, batch.input_mask, batch.segment_ids, positions, ids, weights, next_sentence_labels[:, None]
    for values in zip(*(column.tolist() for column in columns)):
        example = _example()()
        features = example.features.feature
        for name, value in zip(FIELDS, values):
            (features[name].float_list if name == WEIGHTS else features[name].int64_list).value.extend(value)
        yield example.SerializeToString(deterministic=True)


def framed(example: bytes) -> bytes:
    length = _LENGTH.pack(len(example))
    return b"".join((length, _sum(length), example, _sum(example)))


def _sum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return _SUM.pack(((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


@dataclasses.dataclass(frozen=True)
class Records:
    """Random access to the rows of shards."""

    paths: tuple[str, ...]
    index: npt.NDArray[Any]  # [N] of type `INDEX`; rows of one file are contiguous
    vocabulary: Vocabulary

    @classmethod
    def open(cls, paths: Sequence[str], vocabulary: Vocabulary, *, folder: str | os.PathLike[str]) -> Records:
        """Opens shards; the first time reads each file once to write the row index to `folder`, its only content."""
        for manifest, path in {manifest_of(path): path for path in reversed(paths)}.items():  # which lists all its shards
            _check_fingerprint(manifest, path, vocabulary)
        made = cls(tuple(paths), _index(paths, Path(folder)), vocabulary)
        made.read_rows(np.zeros(1, np.int64))
        return made

    def __len__(self) -> int:
        return len(self.index)

    @functools.cached_property
    def seq_length(self) -> int:
        """T, the length of all rows."""
        return len(self._features(0)["input_ids"].int64_list.value)

    @functools.cached_property
    def max_predictions(self) -> int:
        """S, mask places of all rows."""
        return len(self._features(0)["masked_lm_ids"].int64_list.value)

    def read_rows(self, numbers: npt.NDArray[np.integer[Any]]) -> Read:
        """Reads rows `numbers` [B] in any order."""
        rows = [self._row(int(number)) for number in numbers]
        ids, mask, segments, positions, true_ids, weights, labels = (np.array(column, np.int32) for column in zip(*rows))
        return Read(ids, mask, segments, weights.sum(axis=1, dtype=np.int32), positions, true_ids, labels[:, 0])

    def _row(self, number: int) -> tuple[Array, ...]:
        features = self._features(number)
        sizes = dict.fromkeys(_OF_TOKENS, self.seq_length) | dict.fromkeys(_OF_MASKS, self.max_predictions) | {LABELS: 1}
        row = []
        for name in FIELDS:
            values = (features[name].float_list if name == WEIGHTS else features[name].int64_list).value
            if len(values) != sizes[name]:
                raise self._problem(number, f"{name}: expected length {sizes[name]}, as in the first row, found {len(values)}")
            row.append(np.array(values))
        self._check(number, dict(zip(FIELDS, row)))
        return tuple(row)

    def _check(self, number: int, row: Mapping[str, Array]) -> None:
        """Rejects values that would index beyond a table or be misread."""
        ids, vocabulary = row["input_ids"], self.vocabulary
        largest = max(int(ids.max()), int(row["masked_lm_ids"].max(initial=0)))
        smallest = min(int(ids.min()), int(row["masked_lm_ids"].min(initial=0)))
        if not 0 <= smallest <= largest < len(vocabulary) or ids[0] != vocabulary.cls_id:
            path, of_file = self._location(number)
            raise VocabularyError(
                f"row {of_file + 1} was made with another vocabulary: its piece 1 is {ids[0]}, [CLS] is {vocabulary.cls_id};"
                f" its largest piece is {largest}, the vocabulary has {len(vocabulary)}",
                path,
            )
        mask, segments, positions = row["input_mask"], row["segment_ids"], row["masked_lm_positions"]
        for name in ("input_mask", WEIGHTS):
            if not _is_ones_then_zeros(row[name]):
                raise self._problem(number, f"{name}: expected ones, then zeros")
        real = int(mask.sum())
        if not _is_ones_then_zeros(1 - segments[:real]) or segments[real:].any():
            raise self._problem(number, "segment_ids: expected zeros, then ones, then zeros of padding")
        if row[LABELS][0] not in (0, 1):
            raise self._problem(number, f"{LABELS}: expected 0 or 1, found {row[LABELS][0]}")
        if np.any(positions < 0) or np.any(positions >= real):
            raise self._problem(number, "masked_lm_positions lie in padding")

    def _features(self, number: int) -> Any:
        file, offset, length = self.index[number].tolist()
        data = self._maps[file][offset : offset + length + _SUM.size]
        if data[length:] != _sum(data[:length]):
            raise self._problem(number, "its checksum is wrong; the file is damaged")
        example = _example()()
        try:
            example.ParseFromString(data[:length])
        except message.DecodeError as error:
            raise self._problem(number, f"is not a tf.train.Example: {error}") from error
        features = example.features.feature
        missing = [name for name in FIELDS if name not in features]
        if missing:
            raise self._problem(number, f"has no {missing[0]}; is this pre-training data?")
        return features

    @functools.cached_property
    def _maps(self) -> list[mmap.mmap]:
        return [_mapped(path) for path in self.paths]

    def _location(self, number: int) -> tuple[str, int]:
        """File of a row, and its number in it."""
        file = int(self.index["file"][number])
        return self.paths[file], number - int(np.searchsorted(self.index["file"], file))

    def _problem(self, number: int, problem: str) -> DataError:
        path, of_file = self._location(number)
        return DataError(f"row {of_file + 1}: {problem}", path)


def _is_ones_then_zeros(values: Array) -> bool:
    return bool(np.all((values == 0) | (values == 1)) and np.all(np.diff(values) <= 0))


def is_shard(path: str) -> bool:
    """Whether a file begins as a TFRecord file, with a length and its checksum."""
    if not files.is_plain(path):
        return False
    try:
        with files.open_plain(path) as file:
            head = file.read(_LENGTH.size + _SUM.size)
    except OSError:  # the reader reports why
        return False
    return len(head) == _LENGTH.size + _SUM.size and head[_LENGTH.size :] == _sum(head[: _LENGTH.size])


def shards_of(paths: Sequence[str]) -> tuple[str, ...]:
    """The shards among files, skipping what `pretraining-data` writes beside them; () if all text, DataError if mixed."""
    shards = dict.fromkeys(filter(is_shard, paths))
    beside = set(map(manifest_of, shards))
    others = [path for path in paths if path not in shards and Path(path) not in beside]
    if shards and others:
        raise DataError("is not a TFRecord shard, but other files are; name either text or shards", others[0])
    return tuple(shards)


def manifest_of(path: str) -> Path:
    """Path of the shards' description: out/x.tfrecord.json, also for out/x-00000-of-00004.tfrecord."""
    return Path(f"{_NUMBERED.sub('', path)}.json")


def missing(paths: Sequence[str]) -> str | None:
    """The first missing file of the sets whose shards are among files, by their numbers; None if all are there."""
    sets = {(path[: match.start()], match[1], path[match.end() :]) for path in paths if (match := _NUMBERED.search(path))}
    every = (f"{stem}-{number:05d}-of-{count}{end}" for stem, count, end in sorted(sets) for number in range(int(count)))
    return next((path for path in every if not os.path.exists(path)), None)


def _check_fingerprint(manifest: Path, path: str, vocabulary: Vocabulary) -> None:
    """Rejects a shard of another vocabulary if it is recorded; the published script does not record it."""
    try:
        content = json_documents.read_json(manifest)
    except FileNotFoundError:
        return
    except (OSError, json_documents.DocumentError) as error:
        raise DataError(f"cannot be read: {error}; delete it, if the shards are whole", manifest) from error
    fingerprint = content.get("vocabulary") if isinstance(content, dict) else None  # none in a file of the user's own
    if isinstance(fingerprint, str) and fingerprint != vocabulary.fingerprint:
        raise VocabularyError(f"it was made with another vocabulary, {fingerprint[:12]}... in {manifest}; name that one", path)


def _index(paths: Sequence[str], folder: Path) -> npt.NDArray[Any]:
    """Location of each row of the files; cached in `folder`."""
    state = []
    for path in paths:
        try:
            files.check_plain(path)
        except OSError as error:
            raise DataError(f"cannot read the file: {files.reason(error)}", path) from error
        state.append([os.path.abspath(path), os.stat(path).st_size, os.stat(path).st_mtime_ns])
    key = hashlib.sha256(json_documents.to_json(state).encode()).hexdigest()
    record = appending.record(folder)
    if record is None or record["key"] != key:
        with Appending(folder, key, _TYPES, {}, goes_on=False) as writer:
            for file, path in enumerate(paths):
                places = _places(path)
                while block := list(itertools.islice(places, _BLOCK)):
                    writer.append({_OFFSETS: np.array([(file, *location) for location in block], INDEX)})
            if not writer.sizes[_OFFSETS]:
                raise DataError("there are no rows", ", ".join(paths)[:_SHOWN])
            writer.finish()
    (index,) = appending.mapped(folder, _TYPES)
    return index


def _mapped(path: str) -> mmap.mmap:
    try:
        with files.open_plain(path) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise DataError(f"cannot read the file: {files.reason(error)}", path) from error


def _places(path: str) -> Iterator[tuple[int, int]]:
    """Yields offset and length of each example; raises DataError if the file is truncated or no TFRecord file."""
    if not os.path.getsize(path):
        return
    with _mapped(path) as data:
        at = 0
        for number in itertools.count(1):
            if at == len(data):
                return
            head = data[at : at + _LENGTH.size + _SUM.size]
            whole = len(head) == _LENGTH.size + _SUM.size
            if whole and head[_LENGTH.size :] != _sum(head[: _LENGTH.size]):
                is_gzip = head.startswith(encodings.GZIP)
                what = "it is compressed; unpack it, as with gunzip" if is_gzip else "is it a TFRecord file?"
                raise DataError(f"row {number} does not begin at byte {at}; {what}", path)
            length = _LENGTH.unpack(head[: _LENGTH.size])[0] if whole else 0
            if not whole or at + length + _AROUND > len(data):
                raise DataError(f"cut off in row {number}, which begins at byte {at}; write it again", path)
            yield at + len(head), length
            at += length + _AROUND


@functools.cache
def _example() -> Any:
    """Message class compatible with `tf.train.Example`: feature names to lists of bytes, floats or integers."""
    file = descriptor_pb2.FileDescriptorProto(name="bert_tf/example.proto", package="bert_tf", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    lists = (("BytesList", kinds.TYPE_BYTES), ("FloatList", kinds.TYPE_FLOAT), ("Int64List", kinds.TYPE_INT64))
    for name, kind in lists:
        file.message_type.add(name=name).field.add(name="value", number=1, type=kind, label=kinds.LABEL_REPEATED)
    feature = file.message_type.add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, (field, kind) in enumerate((("bytes", "BytesList"), ("float", "FloatList"), ("int64", "Int64List")), 1):
        _add(feature, f"{field}_list", number, f".bert_tf.{kind}", oneof_index=0)
    features = file.message_type.add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    _add(entry, "value", 2, ".bert_tf.Feature")
    _add(features, "feature", 1, ".bert_tf.Features.FeatureEntry", label=kinds.LABEL_REPEATED)
    _add(file.message_type.add(name="Example"), "features", 1, ".bert_tf.Features")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("bert_tf.Example"))


def _add(to: Any, name: str, number: int, message_type: str, **options: Any) -> None:
    kinds = descriptor_pb2.FieldDescriptorProto
    options = {"label": kinds.LABEL_OPTIONAL, **options}
    to.field.add(name=name, number=number, type=kinds.TYPE_MESSAGE, type_name=message_type, **options)
