"""Asset files: the vocabulary, and what a client needs to decide as the package does."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tensorflow as tf

from bert_tf import documents, run_layout
from bert_tf.export.exported import Exported
from bert_tf.head_spec import MULTI_LABEL
from bert_tf.tasks.base import Family
from bert_tf.tasks.sentence.scores import THRESHOLD

DECISIONS = "decisions.json"
_FOLDER = "assets"


def contents(exported: Exported) -> dict[str, str]:
    decisions = documents.to_json(_decisions(exported.family), ensure_ascii=False, indent=2) + "\n"
    return {run_layout.VOCABULARY: exported.trained.vocabulary.to_text(), DECISIONS: decisions}


def _decisions(family: Family) -> dict[str, Any]:
    rules: dict[str, Any] = dataclasses.asdict(family) if dataclasses.is_dataclass(family) else {}  # type: ignore[call-overload]
    threshold = {"threshold": THRESHOLD} if family.kind == MULTI_LABEL else {}
    return {"kind": family.kind, "labels": list(family.labels), **family.record(), **rules, **threshold}


def named(files: Mapping[str, str]) -> dict[str, tf.Tensor]:
    """A tensor of each file name in the default graph; on loading it is replaced with the file's path."""
    return {name: tf.constant(name, name=f"asset_{number}") for number, name in enumerate(files)}


def write(files: Mapping[str, str], tensors: Mapping[str, tf.Tensor], folder: Path, meta_graph: Any) -> None:
    """Writes the files and registers them in `meta_graph`; `tensors` come from `named`."""
    (folder / _FOLDER).mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / _FOLDER / name).write_bytes(text.encode())
        meta_graph.asset_file_def.add(filename=name, tensor_info={"name": tensors[name].name})
