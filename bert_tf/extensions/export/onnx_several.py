"""Exports several models to one ONNX folder, whose graphs compute equal layers once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bert_tf.batch.trained import Trained
from bert_tf.extensions.export import onnx, onnx_folder
from bert_tf.extensions.export.formats import Target
from bert_tf.extensions.export.write import job_of, record_of, write_record, writing
from bert_tf.extensions.together.engine import TRUNK, Together
from bert_tf.extensions.together.joint import refuse_others
from bert_tf.io import files
from bert_tf.io.log_form import log
from bert_tf.tasks.base import Task


def write(models: Mapping[str, Trained], target: Target, *, find_data: Callable[[Task], str]) -> Path:
    """Writes models by their names, whole or not at all; CheckpointError if they do not read texts alike."""
    refuse_others(list(models.values()))
    jobs = {f"{name}/": job_of(model, target, find_data) for name, model in models.items()}
    with writing(target, list(models.values())) as folder:
        for scope in jobs:
            (folder / scope).mkdir()
        onnx.write_graphs(jobs, folder)
        sums = {name: files.digest(folder / name) for name in onnx_folder.OF_GRAPHS}
        for scope, exported in jobs.items():
            onnx.write_files(exported, folder / scope)
            facts = onnx.record(exported, folder / scope)
            own = {
                "version": onnx_folder.VERSION_OF_SEVERAL,
                "scope": scope,
                "model": {**facts["model"], TRUNK: Together.trunk(exported.trained)},
                "sha256": {**facts["sha256"], **sums},
            }
            write_record(folder / scope, {**record_of(exported, onnx_folder.FORMAT), **facts, **own})
        onnx.write_requirements(next(iter(models.values())).vocabulary, folder)  # that of all
        record = {"format": onnx_folder.FORMAT, "version": onnx_folder.VERSION_OF_SEVERAL, "models": list(models)}
        write_record(folder, {**record, "precision": target.options.precision})
    log.info("%s: %s of %s", target.output, onnx_folder.FORMAT, ", ".join(model.prefix for model in models.values()))
    return Path(target.output)
