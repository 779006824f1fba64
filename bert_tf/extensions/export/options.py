"""Options of an export; imports no TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import Any

from bert_tf import extension
from bert_tf.io import files
from bert_tf.settings import group, setting

PRECISIONS = ("float32", "int8", "bfloat16")


def has_card() -> bool:
    """Whether the card of a model can be written."""
    return {"card", "report"} <= extension.installed().keys()


def _credits() -> type:
    """What the card in the folder says besides; nothing if there is no extension that writes it."""
    return extension.load("bert_tf.extensions.card:Credits") if has_card() else extension.Settings


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """How to export a model; each format takes some of them."""

    precision: str = setting("float32", f"precision of onnx and openvino: {', '.join(PRECISIONS)}", choices=PRECISIONS)
    pairs: bool | None = setting(None, "inputs are sentence pairs, text_a and text_b; default: as in training")
    gate_data: str | None = setting(
        None,
        "labelled examples to measure reduced precision or long texts; default: the task's dev split",
        refuse_missing=files.refuse_missing,
    )
    max_loss_of_metric: float = setting(0.5, "maximum loss of a metric by reduced precision, in points", lowest=0.0)
    credits: Any = group(_credits)
