"""Caches converted models in the package's home, so that each is converted once.

A folder's name has a digest of everything that affects its contents; damaged files are made again.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from bert_tf import atomic, documents, files
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints import sums
from bert_tf.checkpoints.huggingface import unchanged
from bert_tf.engines.names import INT8
from bert_tf.log_form import log

FOLDER = "converted"  # beside `checkpoints` and `data`

_LAYOUT = 1  # of the graph: a greater number converts all models anew
_KEPT = 8
_ONNX, _INT8_ONNX, _INT8_OPENVINO = "model.onnx", "model.int8.onnx", "model.int8.xml"


class ConvertedModels:
    def __init__(self, home: Path) -> None:
        self._folder = home / FOLDER

    def onnx(self, trained: Trained, precision: str) -> Path:
        """Returns the ONNX file; any precision but int8 means float32."""
        if precision != INT8:
            return self._float32(trained)
        from bert_tf.conversion import onnx_model

        def make(path: Path) -> None:
            with _written(trained, path) as source:
                onnx_model.quantize(source, path)

        return self._made(trained, _INT8_ONNX, _versions("onnx", "onnxruntime"), make)

    def openvino(self, trained: Trained, precision: str) -> Path:
        """Returns OpenVINO's file; any precision but int8 means float32, which OpenVINO converts.

        CheckpointError if int8 lacks the texts of its training.
        """
        if precision != INT8:
            return self._float32(trained)
        from bert_tf.conversion import openvino_model

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
                sums.write(temporary)

        made = unchanged(folder, write) / name
        self._tidy(folder)
        return made

    def _tidy(self, used: Path) -> None:
        """Marks a folder as used, deletes the least recently used."""
        with contextlib.suppress(OSError):  # another process has deleted one, or the home is read-only
            os.utime(used)
            folders = [path for path in self._folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
            for old in sorted(folders, key=lambda path: path.stat().st_mtime_ns)[:-_KEPT]:
                shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def _written(trained: Trained, beside: Path) -> Iterator[Path]:
    path = beside.with_name(_ONNX)
    _write(trained, path)
    yield path
    path.unlink()


def _write(trained: Trained, path: Path) -> None:
    import onnx

    from bert_tf.conversion import onnx_model

    onnx.save(onnx_model.build(trained), os.fspath(path))


def _versions(*packages: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in packages}
