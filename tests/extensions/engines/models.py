"""Models with random weights and any head, and rows for them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import safetensors.numpy

from bert_tf import head_spec
from bert_tf.batch.trained import Trained
from bert_tf.checkpoints.reader import write_checkpoint
from bert_tf.config import BertConfig
from bert_tf.features.columns import Features
from bert_tf.head_spec import HeadSpec
from bert_tf.modeling.heads import registry
from bert_tf.tokenization.vocabulary import Vocabulary
from tests.tiny import TOKENS, random_weights

STEP = 7
_D = BertConfig.tiny(len(TOKENS)).hidden_size


def vectors(layers: tuple[int, ...] = (-1,), pooling: str | None = head_spec.MEAN) -> HeadSpec:
    return HeadSpec(_D * len(layers), head_spec.VECTORS, (("layers", layers), ("pooling", pooling)))


HEADS = {
    "classification": HeadSpec(3),
    "regression": HeadSpec(1, head_spec.REGRESSION),
    "multi_label": HeadSpec(4, head_spec.MULTI_LABEL),
    "choice": HeadSpec(1, head_spec.CHOICE),
    "tags": HeadSpec(5, head_spec.TAGS),
    "span": HeadSpec(2, head_spec.SPAN),
    "similarity": HeadSpec(1, head_spec.SIMILARITY),
    "contrastive": HeadSpec(1, head_spec.CONTRASTIVE, (("temperature", 0.05),)),
    "mean of two layers": vectors((0, -1)),
    "first of two layers": vectors((0, -1), head_spec.CLS),
    "largest": vectors(pooling=head_spec.MAX),
    "of tokens": vectors(pooling=None),
}


def trained(folder: Path, head: HeadSpec = HEADS["classification"], *, seed: int = 3, **config: object) -> Trained:
    """Writes a checkpoint, and returns it with all that belongs to it."""
    sizes = dataclasses.replace(BertConfig.tiny(len(TOKENS)), **config)
    rng = np.random.default_rng(seed)
    of_head = {
        name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in registry.make_head(head).variables(sizes).items()
    }
    folder.mkdir(parents=True, exist_ok=True)
    prefix = folder / f"model.ckpt-{STEP}"
    write_checkpoint(prefix, {**random_weights(sizes, seed), **of_head, "global_step": np.int64(STEP)})
    return Trained(str(prefix), folder, sizes, Vocabulary(TOKENS), True, 24, "truncate", {}, given_head=head)


def rows(number: int = 9, *, seed: int = 1) -> Features:
    """Returns rows of 3 to 20 tokens."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(3, 21, number).astype(np.int32)
    first = rng.integers(1, lengths + 1).astype(np.int32)
    return Features(rng.integers(0, len(TOKENS), int(lengths.sum())).astype(np.int32), lengths, first, {}, ())


def keep_training_texts(folder: Path) -> None:
    """Writes what a run keeps of the texts of its training."""
    texts = rows(30, seed=2)
    (folder / "features").mkdir()
    columns = {name: getattr(texts, name) for name in ("token_ids", "lengths", "first_lengths")}
    safetensors.numpy.save_file(columns, folder / "features" / "MRPC-train-0123456789abcdef.safetensors")
