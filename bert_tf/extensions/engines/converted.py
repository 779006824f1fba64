"""Converted models, on the CPU: opened in their engines, and cached in the package's home, so that each is converted once.

A folder's name has a digest of everything that affects its contents; damaged files are made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bert_tf.batch.engine import Batch, Compute
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.converted_files import unchanged, write_sums
from bert_tf.io import atomic, documents, files
from bert_tf.io.log_form import log
from bert_tf.runtime import precision as formats
from bert_tf.training.settings import INT8

FOLDER = "converted"  # beside `checkpoints` and `data`

_LAYOUT = 3  # of the graph: a greater number reconverts all models
_KEPT, _DAY_S, _OPENING_S = 8, 86_400, 600
_ONNX, _INT8_ONNX, _INT8_OPENVINO = "model.onnx", "model.int8.onnx", "model.int8.xml"
_PRECISION = "INFERENCE_PRECISION_HINT"  # of OpenVINO


class ConvertedModels:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def onnx(self, trained: Trained, precision: str) -> Path:
        """Returns the ONNX file; any precision but int8 means float32."""
        if precision != INT8:
            return self._float32(trained)
        return self._made(trained, _INT8_ONNX, _versions("onnx"), lambda path: _write(trained, path, int8=True))

    def openvino(self, trained: Trained, precision: str) -> Path:
        """Returns OpenVINO's file; any precision but int8 means float32, which OpenVINO converts.

        CheckpointError if int8 lacks the texts of its training.
        """
        if precision != INT8:
            return self._float32(trained)
        from bert_tf.extensions.engines import openvino_model

        calibration = openvino_model.Calibration(trained)
        deciding = {**_versions("onnx", "openvino", "nncf"), "texts": files.digest(calibration.path)}

        def make(path: Path) -> None:
            log.info("%s: int8 from the ranges of texts of its training; kept for the next time", trained.prefix)
            with _written(trained, path) as source:
                openvino_model.quantize(source, path, calibration)

        return self._made(trained, _INT8_OPENVINO, deciding, make)

    def _float32(self, trained: Trained) -> Path:
        return self._made(trained, _ONNX, _versions("onnx"), lambda path: _write(trained, path))

    def _made(self, trained: Trained, name: str, deciding: dict[str, str], make: Callable[[Path], None]) -> Path:
        """Returns a file in its own folder, made if missing or damaged."""
        key = [_LAYOUT, trained.digest, trained.config.to_json(), repr(trained.head), name, deciding]
        folder = self._folder / hashlib.sha256(documents.to_json(key).encode()).hexdigest()[:20]

        def write(target: Path) -> None:
            with atomic.replacing(target) as temporary:
                temporary.mkdir()
                make(temporary / name)
                write_sums(temporary)

        with contextlib.suppress(OSError):  # it is not there yet, or the home is read-only
            os.utime(folder)
        made = unchanged(folder, write) / name
        self._tidy()
        return made

    def _tidy(self) -> None:
        """Deletes the least recently used.

        Those of the last day stay if they take less than is free on the disk: a command may have many models. Those of the
        last minutes stay in any case: another process may be opening one.
        """
        with contextlib.suppress(OSError):  # another process has deleted one, or the home is read-only
            folders = [path for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
            for old in sorted(folders, key=lambda path: path.stat().st_mtime_ns)[:-_KEPT]:
                idle = time.time() - old.stat().st_mtime
                if idle > _DAY_S or (idle > _OPENING_S and not self._fits()):
                    shutil.rmtree(old, ignore_errors=True)

    def _fits(self) -> bool:
        """Whether all of them take less than is free on the disk."""
        taken = sum(path.stat().st_size for path in self._folder.rglob("*") if path.is_file())
        return taken < shutil.disk_usage(self._folder).free


@contextlib.contextmanager
def _written(trained: Trained, beside: Path) -> Iterator[Path]:
    from bert_tf.extensions.engines import onnx_model

    path = beside.with_name(_ONNX)
    _write(trained, path)
    yield path
    path.unlink()
    onnx_model.weights_of(path).unlink()


def _write(trained: Trained, path: Path, *, int8: bool = False) -> None:
    from bert_tf.extensions.engines import onnx_model

    onnx_model.save(trained, path, int8=int8)
    trained.refuse_changed()  # the file is kept by the digest


def _versions(*packages: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in packages}


def openvino_computes_bfloat16() -> bool:
    """Whether OpenVINO computes in bfloat16 here, if only by emulation (AVX-512); else it takes float32 without a word."""
    import openvino

    core = openvino.Core()
    core.set_property("CPU", {_PRECISION: "bf16"})
    return bool(core.get_property("CPU", _PRECISION) == openvino.Type.bf16)


def open_openvino(path: Path, precision: str, threads: int) -> Compute:
    """Opens an ONNX or OpenVINO model in OpenVINO; the rest of int8 is bfloat16 if the CPU supports it. `threads` in total."""
    import openvino

    half = precision == "bfloat16" or (precision == "int8" and formats.cpu_computes("bfloat16"))
    properties = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        _PRECISION: "bf16" if half else "f32",
        "ENABLE_CPU_PINNING": False,  # other processes may have been given the same cores
    }
    core = openvino.Core()
    compiled = core.compile_model(core.read_model(path), "CPU", properties)
    request, reads = compiled.create_infer_request(), [value.any_name for value in compiled.inputs]

    def compute(batch: Batch) -> dict[str, object]:
        results = request.infer({name: batch[name] for name in reads}, share_inputs=True)
        return {name: results[output] for output in results for name in output.names}

    return compute  # type: ignore[return-value]
