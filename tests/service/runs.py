"""Runs of every family with weights that nothing has trained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.modeling.heads import registry as heads
from bert_tf.run_layout import RECORD
from bert_tf.tasks import families
from tests.tiny import TinyProject, random_weights

_SPAN = {"doc_stride": 8, "max_query_length": 6, "version_2_with_negative": True}
# Records and rows of each kind.
KINDS = {
    "classification": ({"labels": ["0", "1"]}, ["rain came", ["storm", "the wind"], {"text": "a red pear", "id": "x"}]),
    "multi_label": ({"labels": ["b", "a"]}, ["rain came", {"text_a": "storm", "text_b": "wind"}]),
    "regression": ({"labels": []}, [["rain", "storm"], "bread"]),
    "span": ({"labels": [], **_SPAN}, [{"question": "a red", "context": "rain came over the old wind and soup " * 3}]),
    "tags": ({"labels": ["O", "B-W", "I-W"]}, ["Rain came.", ["storm", "over", "soup"], {"tokens": ["salt"], "id": "y"}]),
    "choice": (
        {"labels": []},
        [{"context": "rain", "question": "", "options": ["storm", "soup", "salt"]}, ["a", "b", ["rain", "pear"]]],
    ),
    "similarity": ({"labels": [], "highest_score": 5.0}, [["rain", "storm"], {"text_a": "salt", "text_b": "soup"}]),
    "contrastive": ({"labels": [], "temperature": 0.05}, [["rain", "storm"]]),
}


def write(folder: Path, project: TinyProject, kind: str, *, step: int = 20) -> Path:
    """Writes a run of a key of `KINDS`, or another checkpoint into it; weights depend on the step."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"task_name": "custom", "kind": kind, **KINDS[kind][0], "max_seq_length": 24, "do_lower_case": True}
    shutil.copy(project.vocab_file, folder)
    shutil.copy(project.bert_config_file, folder)
    config = BertConfig.from_json_file(project.bert_config_file)
    head = heads.of(families.of_record(record).head).variables(config)
    random = np.random.default_rng(step)
    weights = {name: random.normal(0, 2, shape).astype(np.float32) for name, shape in head.items()}
    entries = {**random_weights(config, seed=step), **weights, "global_step": np.int64(step)}
    write_checkpoint(folder / f"model.ckpt-{step}", entries)
    (folder / RECORD).write_text(json.dumps({DETERMINING: record}))
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{step}"\n')
    return folder
