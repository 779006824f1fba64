"""Examples become lines of predictions."""

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
    """A model that is loaded; to be closed."""

    def __init__(self, trained: Trained, family: Family, inference: InferenceOptions) -> None:
        """Loads the model.

        Args:
          trained: the model.
          family: what it has learned.
          inference: how to compute.

        Raises:
          CheckpointError: the weights are damaged.
        """
        self._trained, self._family = trained, family
        self._computer = inference.engine()
        self._computer.load(trained)

    def read(self, examples: Sequence[Any]) -> Features:
        """Returns examples as the model reads them; may run beside `lines` in another thread."""
        return self._family.features(examples, self._trained.tokenizer, self._trained.limits)

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: OutputForm) -> bytes:
        """Returns a line for each example of a chunk, the header before those of the first.

        Args:
          number: of the chunk, from 0.
          examples: of the chunk.
          features: of the examples, from `read`.
          form: what to write.

        Raises:
          BertError: memory is out, or the model computes what is no number.
        """
        predictions = self._family.predictions(self._computer.outputs(features), features, examples)
        layout = self._family.layout(form.form)
        lines = layout.rows(examples, predictions)
        if isinstance(examples, KeptChunk):
            return form.encode(kept_columns.joined(layout, form.form, lines, examples, first=number == 0))
        return form.encode((layout.header() if number == 0 else "") + lines)

    def close(self) -> None:
        """Frees session and memory."""
        self._computer.close()
