"""Examples become lines of predictions."""

from __future__ import annotations

from collections.abc import Sequence

from bert_tf.batch import computer
from bert_tf.batch.computer import Computer, Ways
from bert_tf.batch.output_form import OutputForm
from bert_tf.batch.trained import Trained
from bert_tf.features.spec import SentenceFeatures
from bert_tf.tasks.base import HeadSpec, SentenceExample
from bert_tf.tasks.predictions import Layout


class Predictor:
    """A model that is loaded; to be closed."""

    def __init__(self, trained: Trained, head: HeadSpec, labels: Sequence[str], ways: Ways) -> None:
        """Loads the model.

        Args:
          trained: the model.
          head: what its logits are.
          labels: their names.
          ways: how to compute.

        Raises:
          CheckpointError: the weights are damaged.
        """
        self._trained, self._head, self._labels = trained, head, labels
        self._computer = Computer(ways)
        self._computer.load(trained)

    def read(self, examples: Sequence[SentenceExample]) -> SentenceFeatures:
        """Returns examples as the model reads them; may run beside `lines` in another thread."""
        return computer.features(examples, self._trained)

    def lines(self, number: int, examples: Sequence[SentenceExample], features: SentenceFeatures, form: OutputForm) -> bytes:
        """Returns a line for each example of a chunk, the header before those of the first.

        Args:
          number: of the chunk, from 0.
          examples: of the chunk.
          features: of the examples, from `read`.
          form: what to write.

        Raises:
          BertError: memory is out, or the model computes what is no number.
        """
        logits = self._computer.logits(features)
        layout = Layout(self._head, self._labels, self._trained.record.get("label_separator", ","), form.form)
        header = layout.header() if number == 0 else ""
        return form.encode(header + layout.rows([example.guid for example in examples], logits))

    def close(self) -> None:
        """Frees session and memory."""
        self._computer.close()
