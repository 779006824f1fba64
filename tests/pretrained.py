"""A tiny pretrained model that kept its head, as published and as a run leaves it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bert_tf.checkpoints import names
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.run_layout import RECORD
from tests.tiny import TOKENS, random_weights


def weights(config: BertConfig, seed: int = 3) -> dict[str, np.ndarray]:
    """Returns encoder and head by published names."""
    rng = np.random.default_rng(seed)
    shapes = names.pretraining_shapes(config).items()
    head = {name: rng.normal(name.endswith("gamma"), 0.2, shape).astype(np.float32) for name, shape in shapes}
    return {**random_weights(config, seed), **head}


def write(
    folder: Path, *, tokens: Sequence[str] = TOKENS, sizes: Mapping[str, int] | None = None, **entries: np.ndarray
) -> Path:
    """Writes bert_model.ckpt, bert_config.json and vocab.txt; the same ones on every call.

    Args:
      folder: that is new.
      tokens: the vocabulary.
      sizes: fields of the configuration that differ from the tiny one's.
      **entries: instead of those of the same name.
    """
    folder.mkdir(parents=True)
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(tokens)), **{"num_hidden_layers": 2, **(sizes or {})})
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(config.to_json(), encoding="utf-8")
    write_checkpoint(folder / "bert_model.ckpt", {**weights(config), **entries})
    return folder


def write_run(folder: Path) -> Path:
    """Writes the model as a run of pre-training leaves it."""
    write(folder)
    record = {"task_name": "Pretraining", "kind": "pretraining", "labels": [], "nsp": True, "sampled_softmax": 0}
    (folder / RECORD).write_text(json.dumps({DETERMINING: {**record, "max_seq_length": 24, "do_lower_case": True}}))
    return folder
