"""Warm-up requests that TensorFlow Serving runs on loading a model, so that the first client does not wait.

They are records of `tensorflow.serving.PredictionLog`, written without its package because little of it is needed:
field numbers are those of prediction_log.proto, predict.proto and model.proto of TensorFlow Serving.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from bert_tf.export.exported import Exported
from bert_tf.export.saved_model.signature import Signature
from bert_tf.fields import INPUTS

_FILE = "tf_serving_warmup_requests"
_PREDICT_LOG, _REQUEST = 6, 1  # of PredictionLog, of PredictLog
_MODEL, _INPUTS, _SIGNATURE = 1, 2, 3  # the first two of PredictRequest, the last of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map
_WORD, _OPTIONS = "text ", 2
_IDS, _MASK, _ = (field.name for field in INPUTS)


def write(folder: Path, exported: Exported, built: Mapping[str, Signature]) -> None:
    """Writes two requests per signature: a short text and one that is truncated."""
    place = folder / "assets.extra" / _FILE
    place.parent.mkdir()
    with tf.io.TFRecordWriter(str(place)) as writer:
        for tokens in (4, exported.trained.max_seq_length):
            for name, signature in sorted(built.items()):
                writer.write(_log(name, {key: _value(key, tensor, tokens) for key, tensor in sorted(signature.inputs.items())}))


def _value(name: str, tensor: tf.Tensor, tokens: int) -> Any:
    """An input value of one example with `tokens` tokens."""
    if name == "examples":
        ids = tf.train.Feature(int64_list=tf.train.Int64List(value=[0] * tokens))
        return [tf.train.Example(features=tf.train.Features(feature={_IDS: ids})).SerializeToString(deterministic=True)]
    if tensor.dtype == tf.string:
        text = (_WORD * tokens).encode()
        return [text] if tensor.shape.rank == 1 else [[text] * _OPTIONS]
    shape = [tokens if size is None else size for size in tensor.shape.as_list()[1:]]
    return np.full([1, *shape], name == _MASK, tensor.dtype.as_numpy_dtype)


def _log(signature: str, inputs: Mapping[str, Any]) -> bytes:
    model = _field(_SIGNATURE, signature.encode())
    entries = (
        _field(_KEY, name.encode()) + _field(_VALUE, tf.make_tensor_proto(value).SerializeToString(deterministic=True))
        for name, value in inputs.items()
    )
    request = _joined([(_MODEL, model), *((_INPUTS, entry) for entry in entries)])
    return _field(_PREDICT_LOG, _field(_REQUEST, request))


def _joined(fields: Iterable[tuple[int, bytes]]) -> bytes:
    return b"".join(_field(*field) for field in fields)


def _field(number: int, value: bytes) -> bytes:
    """A length-delimited field in the protocol buffers wire format."""
    return bytes([number << 3 | 2, *_varint(len(value))]) + value


def _varint(number: int) -> Iterator[int]:
    while number > 0x7F:
        yield number & 0x7F | 0x80
        number >>= 7
    yield number
