"""Reads the file of a SentencePiece model (spm.model, spiece.model): pieces, their scores, and the table of its normalizer.

The file is one message in the wire format of protocol buffers, which is read here: the package of SentencePiece is a large
dependency for three fields, and protobuf needs a schema that changes with its version. Field numbers are those of
sentencepiece_model.proto (google/sentencepiece, src/). Fields that are not needed are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Union

from bert_tf.errors import VocabularyError
from bert_tf.io import files

UNIGRAM = 1  # of the types of models
NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4  # of the types of pieces

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3  # fields of the file
_TEXT, _SCORE, _TYPE = 1, 2, 3  # of a piece
_MODEL_TYPE, _UNK_ID = 3, 40  # of the trainer
_CHARSMAP = 2  # of the normalizer
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_WIDTHS = {_FIXED64: 8, _FIXED32: 4}
_MOST_PIECES = 4_000_000

Value = Union[int, bytes]


class Piece(NamedTuple):
    text: str
    score: float
    type: int


class SentencePieceModel(NamedTuple):
    type: int
    pieces: tuple[Piece, ...]
    unk_id: int
    charsmap: bytes  # empty if texts stay as they are


class _DamagedError(ValueError):
    pass


def read_model(path: Path) -> SentencePieceModel:
    """Raises VocabularyError for a file that cannot be read, is damaged, or is no Unigram model."""
    try:
        model = _model(files.read_bytes(path))
    except OSError as error:
        raise VocabularyError(f"cannot read the tokenizer: {files.reason(error)}", path) from error
    except (_DamagedError, UnicodeDecodeError) as error:
        raise VocabularyError(f"not a SentencePiece model: {error}; fetch it again", path) from error
    if model.type != UNIGRAM:
        remedy = "save its tokenizer.json with transformers (AutoTokenizer, save_pretrained)"
        raise VocabularyError(f"its model is of type {model.type}, and only Unigram ({UNIGRAM}) is read; {remedy}", path)
    return model


def _model(data: bytes) -> SentencePieceModel:
    pieces: list[Piece] = []
    model_type, unk_id, charsmap = UNIGRAM, 0, b""
    for number, value in _fields(data):
        if number == _PIECES:
            pieces.append(_piece(_bytes(value)))
            if len(pieces) > _MOST_PIECES:
                raise _DamagedError(f"more than {_MOST_PIECES} pieces")
        elif number == _TRAINER:
            trainer = dict(_fields(_bytes(value)))
            model_type, unk_id = _integer(trainer.get(_MODEL_TYPE, UNIGRAM)), _integer(trainer.get(_UNK_ID, 0))
        elif number == _NORMALIZER:
            charsmap = _bytes(dict(_fields(_bytes(value))).get(_CHARSMAP, b""))
    if not pieces:
        raise _DamagedError("it has no pieces")
    if unk_id >= len(pieces):
        raise _DamagedError(f"the unknown piece is {unk_id}, but there are {len(pieces)}")
    return SentencePieceModel(model_type, tuple(pieces), unk_id, charsmap)


def _piece(data: bytes) -> Piece:
    values = dict(_fields(data))
    score = values.get(_SCORE, bytes(4))
    if not isinstance(score, bytes) or len(score) != 4:
        raise _DamagedError("the score of a piece is no number")
    number = struct.unpack("<f", score)[0]
    if not abs(number) < float("inf"):
        raise _DamagedError("the score of a piece is not finite")
    return Piece(_bytes(values.get(_TEXT, b"")).decode(), number, _integer(values.get(_TYPE, NORMAL)))


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yields the number and the value of each field: integers, and anything else as bytes."""
    offset = 0
    while offset < len(data):
        key, offset = _varint(data, offset)
        kind = key & 7
        if kind == _VARINT:
            value, offset = _varint(data, offset)
            yield key >> 3, value
            continue
        size = _WIDTHS.get(kind, 0)
        if kind == _BYTES:
            size, offset = _varint(data, offset)
        elif not size:
            raise _DamagedError(f"byte {offset}: a field of type {kind}")
        if size > len(data) - offset:
            raise _DamagedError(f"byte {offset}: a field of {size} bytes, but {len(data) - offset} are left")
        yield key >> 3, data[offset : offset + size]
        offset += size


def _varint(data: bytes, offset: int) -> tuple[int, int]:
    """Returns the number of 7 bits a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if offset >= len(data):
            raise _DamagedError("it ends within a number")
        value |= (data[offset] & 0x7F) << shift
        offset += 1
        if data[offset - 1] < 0x80:
            return value, offset
    raise _DamagedError(f"byte {offset}: a number of more than 64 bits")


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise _DamagedError("a number instead of a text")
    return value


def _integer(value: Value) -> int:
    if not isinstance(value, int):
        raise _DamagedError("a text instead of a number")
    return value
