"""Optimizers by name."""

from __future__ import annotations

from collections.abc import Mapping

from bert_tf.optimization.adamw import AdamW, Optimizer
from bert_tf.optimization.lamb import Lamb

ADAMW = "adamw"

OPTIMIZERS: Mapping[str, type[Optimizer]] = {ADAMW: AdamW, "lamb": Lamb}
