"""Engines by name, and automatic choice; the table imports none of their packages."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf import extras
from bert_tf.batch.engine import Chosen, Compute, Engine, InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.extensions.engines import ONNXRUNTIME, OPENVINO
from bert_tf.runtime import precision as formats
from bert_tf.training.settings import INT8, TENSORFLOW

Make = Callable[[InferenceOptions, str, Path], Engine]  # from options, a precision, and the package's home

_FULL = (formats.DEFAULT, "float32")


@dataclasses.dataclass(frozen=True)
class EngineRow:
    name: str  # value of `--engine`
    make: Make
    precisions: tuple[str, ...]  # supported values of `--precision`
    extra: str  # optional dependency group of pyproject.toml
    imports: Mapping[str, tuple[str, ...]]  # modules of the extra by precision, or for all

    def missing(self, precision: str) -> list[str]:
        wanted = (*self.imports.get("", ()), *self.imports.get(precision, ()))
        return [name for name in wanted if importlib.util.find_spec(name) is None]

    def require(self, precision: str) -> None:
        """Raises FlagError if the engine lacks the precision or a package, with install instructions."""
        if precision not in self.precisions:
            raise FlagError(f"--precision={precision}: --engine={self.name} computes in {', '.join(self.precisions)}")
        missing = self.missing(precision)
        if missing:
            raise FlagError(f"--engine={self.name} needs {', '.join(missing)}: {extras.install(self.extra)}")

    def choose(self, precision: str, home: Path, *, on_gpu: bool = False, why: str = "") -> Chosen:
        del on_gpu
        return Chosen(self.name, lambda inference: self.make(inference, precision, home), why)


class Automatic:
    """What is installed and fastest."""

    def require(self, precision: str) -> None:
        """Requires nothing: TensorFlow computes if no other engine can."""

    def choose(self, precision: str, home: Path, *, on_gpu: bool) -> Chosen:
        if on_gpu:
            return Chosen(TENSORFLOW, why="a GPU computes")
        for row in (OPENVINO_ROW, ONNXRUNTIME_ROW):
            if precision in row.precisions and not row.missing(precision):
                why = f"is installed; for matrix products this CPU has {formats.cpu_units()}"
                faster = [name for name in row.precisions if name not in _FULL and formats.cpu_computes(name)]
                if precision in _FULL and faster:
                    why += f": --precision={' or '.join(faster)} would be faster"
                return row.choose(precision, home, why=why)
        return Chosen(TENSORFLOW, why=f"no other installed engine computes in {precision}; {extras.install(OPENVINO)}")


def _onnxruntime(inference: InferenceOptions, precision: str, home: Path) -> Engine:
    from bert_tf.extensions.engines import converted, converted_engine, onnxruntime_session

    def opened(trained: Trained, threads: int) -> Compute:
        return onnxruntime_session.opened(converted.ConvertedModels(home).onnx(trained, precision), threads)

    return converted_engine.ConvertedEngine(inference, precision, opened)


def _openvino(inference: InferenceOptions, precision: str, home: Path) -> Engine:
    from bert_tf.extensions.engines import converted, converted_engine

    def opened(trained: Trained, threads: int) -> Compute:
        return converted.open_openvino(converted.ConvertedModels(home).openvino(trained, precision), precision, threads)

    return converted_engine.ConvertedEngine(inference, precision, opened)


ONNXRUNTIME_ROW = EngineRow(ONNXRUNTIME, _onnxruntime, (*_FULL, INT8), "onnx", {"": ("onnx", "onnxruntime")})
OPENVINO_ROW = EngineRow(
    OPENVINO, _openvino, (*_FULL, "bfloat16", INT8), "openvino", {"": ("onnx", "openvino"), INT8: ("nncf",)}
)
AUTOMATIC = Automatic()
