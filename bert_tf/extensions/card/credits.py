"""Entries of a card that no file of a run has; imports no TensorFlow."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class Credits:
    TITLE: ClassVar[str] = "Model card"

    license: str | None = setting(None, "model card: licence of the weights, as the hub names it: apache-2.0; default: TODO")
    author: str | None = setting(None, "model card: who trained the model; default: TODO")
    language: str | None = setting(None, "model card: languages of the texts, as codes with commas: en,de; default: TODO")
