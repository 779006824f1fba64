"""A tiny pretrained model that kept its head, as published and in Hugging Face's layout."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np

from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.estimator.run_folder import DETERMINING
from bert_tf.head_spec import PRETRAINING, HeadSpec
from bert_tf.modeling.heads import registry as heads
from bert_tf.run_layout import RECORD
from tests import reference
from tests.tiny import TOKENS, random_weights


def weights(config: BertConfig, seed: int = 3) -> dict[str, np.ndarray]:
    """Returns encoder and head by published names."""
    rng = np.random.default_rng(seed)
    shapes = heads.of(HeadSpec(2, PRETRAINING)).variables(config)
    head = {name: rng.normal(name.endswith("gamma"), 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    return {**random_weights(config, seed), **head}


def write(folder: Path, **entries: np.ndarray) -> Path:
    """Writes bert_model.ckpt, bert_config.json and vocab.txt; the same ones on every call.

    Args:
      folder: that is new.
      **entries: in the place of those of the same name.
    """
    folder.mkdir(parents=True)
    config = dataclasses.replace(BertConfig.tiny(vocab_size=len(TOKENS)), num_hidden_layers=2)
    (folder / "vocab.txt").write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
    (folder / "bert_config.json").write_text(config.to_json(), encoding="utf-8")
    write_checkpoint(folder / "bert_model.ckpt", {**weights(config), **entries})
    return folder


def probabilities(found: dict[str, np.ndarray], config: BertConfig, ids: list[int], position: int) -> np.ndarray:
    """Returns [V] how probable each piece is in a place, in NumPy."""
    one = np.array([ids])
    sequence, _ = reference.bert(one, np.ones_like(one), np.zeros_like(one), found, config)
    transformed = reference.gelu_tanh(reference.dense(sequence[0, position], found, "cls/predictions/transform/dense"))
    normal = reference.layer_norm(transformed, found, "cls/predictions/transform", config.layer_norm_eps)
    logits = normal @ found["bert/embeddings/word_embeddings"].T + found["cls/predictions/output_bias"]
    return np.exp(logits) / np.exp(logits).sum()


def write_run(folder: Path) -> Path:
    """Writes the model as a run of pre-training leaves it."""
    write(folder)
    record = {"task_name": "Pretraining", "kind": "pretraining", "labels": [], "nsp": True, "sampled_softmax": 0}
    (folder / RECORD).write_text(json.dumps({DETERMINING: {**record, "max_seq_length": 24, "do_lower_case": True}}))
    return folder
