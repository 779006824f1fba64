"""Turns examples into lines of predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bert_tf.batch import kept_columns
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.kept_columns import KeptChunk
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.trained import Trained
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family


class Predictor:
    """A loaded model; must be closed."""

    def __init__(self, trained: Trained, family: Family, inference: InferenceOptions) -> None:
        self._trained, self._family = trained, family
        self._computer = inference.engine()
        self._computer.load(trained)

    def read(self, examples: Sequence[Any]) -> Features:
        """Converts examples to features; may run in another thread beside `lines`."""
        return self._family.features(examples, self._trained.tokenizer, self._trained.limits)

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: OutputForm) -> bytes:
        """A line for each example of chunk `number`, which counts from 0; chunk 0 starts with the header."""
        predictions = self._family.predictions(self._computer.outputs(features), features, examples)
        layout = self._family.layout(form.form)
        lines = layout.rows(examples, predictions)
        if isinstance(examples, KeptChunk):
            return form.encode(kept_columns.joined(layout, form.form, lines, examples, first=number == 0))
        return form.encode((layout.header() if number == 0 else "") + lines)

    def close(self) -> None:
        self._computer.close()
