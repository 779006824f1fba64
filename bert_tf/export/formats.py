"""Formats by name; the table imports none of them, so --help is fast and optional packages may be missing."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf import extras
from bert_tf.errors import FlagError

if TYPE_CHECKING:
    from bert_tf.export.exported import Exported


@dataclasses.dataclass(frozen=True)
class Extra:
    """A group of optional packages."""

    name: str  # group in pyproject.toml
    imports: tuple[str, ...]  # modules that must be importable


@dataclasses.dataclass(frozen=True)
class Format:
    """An export format. `write` fills an empty folder deterministically.

    The folder is temporary: its name must not appear in the output.
    """

    name: str  # value of `--format`
    write: Callable[[Exported, Path], None]
    extra: Extra | None = None  # optional packages, besides requirements.txt
    precisions: tuple[str, ...] = ("float32",)

    def require(self, precision: str) -> None:
        """Raises FlagError if the format lacks the precision or an optional package is missing; says how to install it."""
        if precision not in self.precisions:
            raise FlagError(f"--precision={precision}: --format={self.name} has {', '.join(self.precisions)}")
        missing = [name for name in self.extra.imports if importlib.util.find_spec(name) is None] if self.extra else []
        if self.extra and missing:
            raise FlagError(f"--format={self.name} needs {', '.join(missing)}: {extras.install(self.extra.name)}")


def _saved_model(exported: Exported, folder: Path) -> None:
    from bert_tf.export.saved_model import writer

    writer.write(exported, folder)


def _huggingface(exported: Exported, folder: Path) -> None:
    from bert_tf.export.huggingface import writer

    writer.write(exported, folder)


def _onnx(exported: Exported, folder: Path) -> None:
    from bert_tf.export import onnx

    onnx.write(exported, folder)


def _openvino(exported: Exported, folder: Path) -> None:
    from bert_tf.export import openvino

    openvino.write(exported, folder)


def _tensorrt(exported: Exported, folder: Path) -> None:
    del exported, folder
    raise FlagError(
        "--format=tensorrt: TensorFlow 2.15 wants TensorRT 8.6, whose packages are no longer published;"
        " take --format=onnx, and build the engine by trtexec (docs/export.md)"
    )


FORMATS: Mapping[str, Format] = {
    row.name: row
    for row in (
        Format("saved_model", _saved_model),
        Format("huggingface", _huggingface),
        Format("onnx", _onnx, Extra("onnx", ("onnx", "onnxruntime")), ("float32", "int8")),
        Format("openvino", _openvino, Extra("openvino", ("onnx", "openvino", "nncf")), ("float32", "bfloat16", "int8")),
        Format("tensorrt", _tensorrt),
    )
}
PRECISIONS = tuple(dict.fromkeys(name for row in FORMATS.values() for name in row.precisions))
