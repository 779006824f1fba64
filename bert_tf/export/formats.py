"""Formats by name; the table imports none of them, so --help is fast and optional packages may be missing."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bert_tf import extras
from bert_tf.errors import FlagError
from bert_tf.settings import group, setting

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


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """How to export a model; each format takes some of them."""

    precision: str = setting("float32", f"of onnx and openvino: {', '.join(PRECISIONS)}", choices=PRECISIONS)
    pairs: bool | None = setting(None, "sentences come in pairs, text_a and text_b; by default as in training")
    gate_data: str | None = setting(
        None, "labelled examples that measure reduced precision or long texts; else the task's dev split"
    )
    max_loss_of_metric: float = setting(0.5, "points of a metric that reduced precision may cost", lowest=0.0)


@dataclasses.dataclass(frozen=True)
class Target:
    """What to write, and where."""

    format: str = setting(None, f"what to write: {', '.join(FORMATS)}", choices=tuple(FORMATS), required=True)
    output: str = setting(None, "folder to write; an export of the same format that is there is replaced", required=True)
    overwrite: bool = setting(False, "replace whatever the folder holds, but for a run")
    options: ExportOptions = group(ExportOptions)
