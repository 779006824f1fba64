"""Card: writes the model card of a run, and that of an exported folder (docs/card.md)."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from bert_tf.extension import Extension, NewCommand
from bert_tf.settings import setting


@dataclasses.dataclass(frozen=True)
class Credits:
    """Entries of a card that no file of a run has."""

    TITLE: ClassVar[str] = "Model card"

    license: str | None = setting(None, "model card: licence of the weights, as the hub names it: apache-2.0; default: TODO")
    author: str | None = setting(None, "model card: who trained the model; default: TODO")
    language: str | None = setting(None, "model card: languages of the texts, as codes with commas: en,de; default: TODO")


EXTENSION = Extension(
    commands={
        "card": NewCommand(
            f"{__name__}.command:COMMAND",
            "Use elsewhere",
            "writes the model card of a run: data, metrics, limits, how to use it",
            computes=True,
        )
    }
)
