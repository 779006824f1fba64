"""Folders as runs leave them, without training."""

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from bert_tf.batch.engine import InferenceOptions
from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.batch.trained import digest
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.features.batching import TO_LONGEST
from bert_tf.modeling.heads import registry as heads
from bert_tf.run_layout import DECISION, RECORD
from bert_tf.tasks import families
from tests.tiny import TinyProject, held, random_weights

LENGTH = 24
MRPC = {"task_name": "MRPC", "kind": "classification", "labels": ["0", "1"]}
ALBERT = {"model_type": "albert", "layer_groups": 1, "embedding_size": 4}  # layers share their weights


def inference(**changed) -> InferenceOptions:
    """How the tests compute."""
    usual = {"precision": "float32", "threads": 1, "batch_size": 4}
    return InferenceOptions(TensorFlowEngine, lambda *_: TO_LONGEST, **{**usual, **changed})


def write_run(
    folder: Path,
    project: TinyProject,
    steps: Iterable[int] = (20, 100, 40),
    *,
    layers: int = 1,
    record: Mapping[str, object] = MRPC,
    sizes: Mapping[str, object] = {},
) -> Path:
    """Writes a run; its weights differ from step to step.

    Args:
      folder: of the run.
      project: whose vocabulary and configuration it has.
      steps: of its checkpoints, the newest last.
      layers: of its encoder.
      record: task, kind and names of labels.
      sizes: fields of its configuration that differ from the project's.
    """
    folder.mkdir(parents=True)
    shutil.copy(project.vocab_file, folder)
    values = {**json.loads(project.bert_config_file.read_text()), "num_hidden_layers": layers, **sizes}
    config = BertConfig.from_dict(values)
    (folder / "bert_config.json").write_text(config.to_json())
    shapes = heads.make_head(families.of_record({**MRPC, **record}).head).variables(config)
    for step in steps:
        drawn = {name: np.random.default_rng(step).normal(0, 2, shape) * (len(shape) > 1) for name, shape in shapes.items()}
        entries = {"global_step": np.int64(step), **{name: values.astype(np.float32) for name, values in drawn.items()}}
        write_checkpoint(folder / f"model.ckpt-{step}", {**random_weights(config, seed=step), **entries})
        (folder / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{step}"\n')
    trained = {**record, "max_seq_length": LENGTH, "do_lower_case": True}
    (folder / RECORD).write_text(json.dumps({DETERMINING: trained}))
    return folder


def decide(run: Path, step: int) -> Path:
    """Gives the checkpoint of a run a decision rule, as `calibrate` does."""
    rule = {"checkpoint_sha256": digest(str(run / f"model.ckpt-{step}")), "temperatures": [2.5], "thresholds": [0.9]}
    (run / DECISION).write_text(json.dumps(rule))
    return run


def changed(folder: Path, run: Path, step: int, **entries: np.ndarray) -> Path:
    """Writes a copy of a run with other entries in one of its checkpoints."""
    shutil.copytree(run, folder)
    write_checkpoint(folder / f"model.ckpt-{step}", {**held(run / f"model.ckpt-{step}"), **entries})
    return folder


def torn(folder: Path, run: Path, step: int) -> Path:
    """Writes a copy of a run in which a checkpoint breaks off, as on a full disk."""
    shutil.copytree(run, folder)
    data = folder / f"model.ckpt-{step}.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    return folder


class Counting:
    """Computes as another does, notes which chunks it computed, and is killed before one of them."""

    def __init__(self, computes, killed_at=None, note=lambda _: None):
        self._computes, self._killed_at, self._note = computes, killed_at, note
        self.chunks, self.read = [], computes.read

    def lines(self, number, *chunk):
        if number == self._killed_at:
            raise KeyboardInterrupt
        self.chunks.append(number)
        self._note(number)
        return self._computes.lines(number, *chunk)
