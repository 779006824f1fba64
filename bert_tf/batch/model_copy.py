"""A trained model in a folder of its own, for other machines: whole weights, without training state, and what they need."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bert_tf import run_layout
from bert_tf.batch.trained import Trained, digest
from bert_tf.checkpoints.names import is_training_only
from bert_tf.checkpoints.prefixes import CHECKPOINT_NAME
from bert_tf.io import atomic, documents
from bert_tf.tasks.decision import DECISION, load_decision


def write(model: Trained, folder: Path) -> None:
    """Writes a model that loads by the folder's name and predicts the same.

    Raises OutputError, and CheckpointError if another run has replaced its weights.
    """
    from bert_tf.checkpoints.reader import model_reader, write_checkpoint  # import TensorFlow

    reader = model_reader(model.prefix)
    entries = {name: reader[name] for name in reader.shapes if not is_training_only(name)}
    model.refuse_changed()
    with atomic.readable_errors(folder):
        write_checkpoint(folder / CHECKPOINT_NAME, entries)
        for name, text in {run_layout.CONFIG: model.config.to_json(), **model.vocabulary.files()}.items():
            (folder / name).write_text(text, encoding="utf-8")
        record = model.folder / run_layout.RECORD
        if record.is_file():
            shutil.copy(record, folder)
        if DECISION in model.record:
            copy_decision(model.prefix, folder / CHECKPOINT_NAME)


def decision_of(prefix: str) -> Mapping[str, Any]:
    """The decision rule of a checkpoint; empty if it has none."""
    rule = load_decision(Path(prefix).parent)
    return rule if rule is not None and rule.get("checkpoint_sha256") == digest(prefix) else {}


def copy_decision(prefix: str, copied: Path) -> bool:
    """Copies the decision rule of a checkpoint beside a file made from it; false if it has none."""
    rule = decision_of(prefix)
    if not rule:
        return False
    text = documents.to_json({**rule, "checkpoint_sha256": digest(str(copied))}, indent=2, sort_keys=True) + "\n"
    (copied.parent / run_layout.DECISION).write_text(text, encoding="utf-8")
    return True
