"""TensorBoard: scalars, and settings for its HParams page, in RUN/tracking/tensorboard."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import tensorflow as tf
from google.protobuf import struct_pb2

from bert_tf.extensions.track import TENSORBOARD
from bert_tf.extensions.track.trackers import FINISHED, RUNNING, Marks, Point, Tracker
from bert_tf.runtime import noise

tf1 = tf.compat.v1

_START, _END = 3, 4  # fields of HParamsPluginData (tensorboard/plugins/hparams/plugin_data.proto)
_STATUS = {FINISHED: 1, RUNNING: 3}  # others are failures


class TensorBoard(Tracker):
    name = TENSORBOARD

    def __init__(self, folder: Path) -> None:
        """Writes nothing yet."""
        self._folder = folder / TENSORBOARD
        self._opened: tf1.summary.FileWriter | None = None

    def _write(self, values: Iterable[tuple[int, tf1.Summary.Value]]) -> None:
        if self._opened is None:
            with tf.Graph().as_default():  # a new writer requires and writes a default graph
                self._opened = tf1.summary.FileWriter(os.fspath(self._folder))
        with noise.quiet_event_writer():
            for step, value in values:
                self._opened.add_summary(tf1.Summary(value=[value]), step)
            self._opened.flush()

    def open(self, run: str, remote: str, title: str, group: str) -> str:  # noqa: ARG002
        """Without a state all files are written anew: this folder holds nothing else."""
        if not remote and self._folder.exists():
            shutil.rmtree(self._folder)
        return str(self._folder.relative_to(self._folder.parents[1]))

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        values = (_field(1, _field(1, name.encode()) + _field(2, _value(text))) for name, text in parameters.items())
        self._write([_hparams("session_start_info", _START, b"".join(values))])
        self._write((0, tf1.Summary.Value(tag=name, tensor=tf.make_tensor_proto(text))) for name, text in tags.items())

    def add(self, points: Sequence[Point], marks: Marks) -> None:  # noqa: ARG002
        self._write((point.step, tf1.Summary.Value(tag=point.name, simple_value=point.value)) for point in points)

    def end(self, status: str) -> None:
        if status != RUNNING:
            self._write([_hparams("session_end_info", _END, b"\x08" + bytes([_STATUS.get(status, 2)]))])

    def close(self) -> None:
        if self._opened is not None:
            with noise.quiet_event_writer():
                self._opened.close()


def _hparams(tag: str, field: int, content: bytes) -> tuple[int, tf1.Summary.Value]:
    plugin = tf1.SummaryMetadata.PluginData(plugin_name="hparams", content=_field(field, content))
    metadata = tf1.SummaryMetadata(plugin_data=plugin)
    return 0, tf1.Summary.Value(tag=f"_hparams_/{tag}", tensor=tf.make_tensor_proto(0.0), metadata=metadata)


def _value(text: str) -> bytes:
    """Encodes a setting as google.protobuf.Value, so that numbers are shown on an axis."""
    try:
        return bytes(struct_pb2.Value(number_value=float(text)).SerializeToString())
    except ValueError:
        return bytes(struct_pb2.Value(string_value=text).SerializeToString())


def _field(number: int, content: bytes) -> bytes:
    """Encodes a field of bytes, a string or a message of protobuf: key, length, content."""
    length, size = len(content), bytearray()
    while length > 127:
        size.append(length & 127 | 128)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + content


def connect(folder: Path) -> TensorBoard:
    return TensorBoard(folder)
