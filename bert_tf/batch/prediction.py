"""Predictions of a trained model, and their lines in files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bert_tf.batch import kept_columns
from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.kept_columns import KeptChunk
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.session import Session
from bert_tf.batch.trained import Trained
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family


class Predictor(Session):
    """A model that predicts examples of its task; must be closed."""

    def __init__(self, trained: Trained, family: Family, inference: InferenceOptions) -> None:
        super().__init__(trained, inference)
        self.family = family

    def read(self, examples: Sequence[Any]) -> Features:
        """Converts examples to features; may run in another thread beside `lines`."""
        return self.family.features(examples, self.trained.tokenizer, self.trained.limits)

    def predictions(self, examples: Sequence[Any], features: Features | None = None) -> Any:
        features = self.read(examples) if features is None else features
        return self.family.predictions(self.outputs(features), features, examples)

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: OutputForm) -> bytes:
        """A line for each example of chunk `number`, which counts from 0; chunk 0 starts with the header."""
        layout = self.family.layout(form.form)
        lines = layout.rows(examples, self.predictions(examples, features))
        if isinstance(examples, KeptChunk):
            return form.encode(kept_columns.joined(layout, form.form, lines, examples, first=number == 0))
        return form.encode((layout.header() if number == 0 else "") + lines)
