"""Engines by name, and automatic choice; the table imports none of their packages."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf import extras
from bert_tf.batch.engine import Engine, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.engines.base import Compute
from bert_tf.engines.names import AUTO, INT8, ONNXRUNTIME, OPENVINO, TENSORFLOW
from bert_tf.errors import FlagError
from bert_tf.runtime import precision as formats

Make = Callable[[InferenceOptions, str, Path], Engine]  # from options, a precision, and the package's home

_FULL = (formats.DEFAULT, "float32")


@dataclasses.dataclass(frozen=True)
class EngineRow:
    name: str  # value of `--engine`
    make: Make
    precisions: tuple[str, ...]  # supported values of `--precision`
    extra: str | None = None  # optional dependency group of pyproject.toml; None if none
    # modules of the extra by precision, or for all
    imports: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)

    def missing(self, precision: str) -> list[str]:
        wanted = (*self.imports.get("", ()), *self.imports.get(precision, ()))
        return [name for name in wanted if importlib.util.find_spec(name) is None]

    def require(self, precision: str) -> None:
        """Raises FlagError if the engine lacks the precision or a package, with install instructions."""
        if precision not in self.precisions:
            raise FlagError(f"--precision={precision}: --engine={self.name} computes in {', '.join(self.precisions)}")
        missing = self.missing(precision)
        if self.extra and missing:
            raise FlagError(f"--engine={self.name} needs {', '.join(missing)}: {extras.install(self.extra)}")


def choose(name: str, precision: str, *, on_gpu: bool) -> tuple[EngineRow, str]:
    """Returns an engine and the reason, empty if the user chose it; FlagError if it cannot run here."""
    row, why = (ENGINES[name], "") if name != AUTO else _automatic(precision, on_gpu=on_gpu)
    row.require(precision)
    return row, why


def make(row: EngineRow, precision: str, home: Path) -> Callable[[InferenceOptions], Engine]:
    return lambda inference: row.make(inference, precision, home)


def _automatic(precision: str, *, on_gpu: bool) -> tuple[EngineRow, str]:
    if on_gpu:
        return ENGINES[TENSORFLOW], "a GPU computes"
    for row in (ENGINES[OPENVINO], ENGINES[ONNXRUNTIME]):
        if precision in row.precisions and not row.missing(precision):
            return row, f"is installed; for matrix products this CPU has {formats.cpu_units()}{_hint(row, precision)}"
    return ENGINES[TENSORFLOW], f"no other installed engine computes in {precision}; {extras.install(OPENVINO)}"


def _hint(row: EngineRow, precision: str) -> str:
    faster = [name for name in row.precisions if name not in _FULL and formats.cpu_computes(name)]
    return f": --precision={' or '.join(faster)} would be faster" if precision in _FULL and faster else ""


def _tensorflow(inference: InferenceOptions, precision: str, home: Path) -> Engine:
    del precision, home  # the encoder's execution has the precision
    from bert_tf.batch.tensorflow_engine import TensorFlowEngine

    return TensorFlowEngine(inference)


def _onnxruntime(inference: InferenceOptions, precision: str, home: Path) -> Engine:
    from bert_tf.engines import base, converted, onnxruntime_session

    def opened(trained: Trained, threads: int) -> Compute:
        return onnxruntime_session.opened(converted.ConvertedModels(home).onnx(trained, precision), threads)

    return base.ConvertedEngine(inference, precision, opened)


def _openvino(inference: InferenceOptions, precision: str, home: Path) -> Engine:
    from bert_tf.engines import base, converted

    def opened(trained: Trained, threads: int) -> Compute:
        return converted.open_openvino(converted.ConvertedModels(home).openvino(trained, precision), precision, threads)

    return base.ConvertedEngine(inference, precision, opened)


ENGINES: Mapping[str, EngineRow] = {
    row.name: row
    for row in (
        EngineRow(TENSORFLOW, _tensorflow, tuple(formats.PRECISIONS)),
        EngineRow(ONNXRUNTIME, _onnxruntime, (*_FULL, INT8), "onnx", {"": ("onnx", "onnxruntime")}),
        EngineRow(OPENVINO, _openvino, (*_FULL, "bfloat16", INT8), "openvino", {"": ("onnx", "openvino"), INT8: ("nncf",)}),
    )
}
