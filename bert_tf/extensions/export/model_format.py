"""Folders of `export --format=onnx` as models: found, loaded, and computed by ONNX Runtime, without TensorFlow."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.errors import CheckpointError, FlagError
from bert_tf.extensions.export import onnx_folder
from bert_tf.extensions.export.onnx_folder import FORMAT, GRAPH, RECORD, format_of

if TYPE_CHECKING:
    from bert_tf.batch.engine import InferenceOptions
    from bert_tf.batch.job import ModelOverrides
    from bert_tf.batch.trained import Trained
    from bert_tf.training.settings import MachineSettings

_READ = (FORMAT, "huggingface")
_WEIGHTS = (".index", ".safetensors", ".bin")  # suffixes of files of weights


class OnnxFormat:
    """See `checkpoints.model_formats.ModelFormat`; its file is the graph, or the record of one of several models."""

    def file_of(self, name: str | os.PathLike[str]) -> Path | None:
        folder = Path(name)
        if not os.path.isdir(folder):
            is_model = folder.name == GRAPH or (folder.name == RECORD and onnx_folder.file_of(folder.parent) == folder)
            return folder if is_model and not Path(f"{os.fspath(name)}.index").is_file() else None
        graph, recorded = folder / GRAPH, format_of(folder)
        if isinstance(recorded, str) and recorded not in _READ:
            raise CheckpointError(
                f"{folder}: an export as {recorded}, for other software; name the run, or export it as {FORMAT}"
            )
        if recorded == FORMAT:
            return onnx_folder.file_of(folder)
        return graph if graph.is_file() and not any(path.suffix in _WEIGHTS for path in folder.iterdir()) else None

    def models_in(self, folder: Path) -> list[str]:
        return onnx_folder.models_in(folder)

    def why_unread(self, folder: Path) -> str:
        if not (folder / GRAPH).is_file():
            return ""
        return f"{GRAPH} is an exported model, without a checkpoint; name the run that it was exported from"

    def load(self, file: str, overrides: ModelOverrides) -> Trained:
        from bert_tf.extensions.export import exported_model

        return exported_model.load(file, overrides)

    def inference(self, settings: MachineSettings, batch_size: int | None, files: Sequence[str]) -> InferenceOptions:
        """Raises FlagError if the flags do not suit the models."""
        precisions = sorted({onnx_folder.precision_of(graph) for graph in files})
        if len(precisions) > 1:
            raise FlagError(f"the exported models are in {' and '.join(precisions)}: name them in two commands")
        extension.needed("engines", f"{files[0]}, an exported model,")
        from bert_tf.extensions.export import onnx_engine

        return onnx_engine.inference(settings, batch_size, precisions[0], files[0])

    def joint(self, models: Sequence[Trained], inference: InferenceOptions) -> Any:
        from bert_tf.extensions.export import onnx_engine

        return onnx_engine.JointSession(models, inference)

    def share(self, file: Path) -> None:
        from bert_tf.extensions.engines import onnxruntime_session

        onnxruntime_session.share(file if file.name == GRAPH else file.parent.parent / GRAPH)


ONNX: Any = OnnxFormat()
