"""Predictions of a cluster, gathered for metrics that need all of them at once: F1, correlations, intervals.

What is gathered of an example is its label and what is predicted; texts of sentences stay where they are.
"""

from __future__ import annotations

import dataclasses
import pickle
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from bert_tf.batch.computer import InferenceOptions
from bert_tf.batch.trained import Trained
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family
from bert_tf.tasks.evaluation import Evaluation
from bert_tf.tasks.joining import joined
from bert_tf.tasks.sentence.example import SentenceExample

_SIZE = struct.Struct("<Q")


class Gathered(NamedTuple):
    """A part of a split.

    Attributes:
      number: its place among all parts.
      examples: with labels.
      predictions: of these.
    """

    number: int
    examples: Sequence[Any]
    predictions: Any


@dataclasses.dataclass(frozen=True)
class GatheredForm:
    """How parts are written: each after its size."""

    assemble = None

    def encode(self, part: Gathered) -> bytes:
        """Returns a part as bytes."""
        data = pickle.dumps(part)
        return _SIZE.pack(len(data)) + data


class Gatherer:
    """A model that is loaded, which predicts labelled examples; to be closed."""

    def __init__(self, model: Trained, family: Family, inference: InferenceOptions) -> None:
        """Loads the model.

        Args:
          model: weights, and what belongs to them.
          family: what it has learned.
          inference: how to compute.
        """
        self._model, self._family = model, family
        self._computer = inference.engine()
        self.step = self._computer.load(model)

    def read(self, examples: Sequence[Any]) -> Features:
        """See `prediction.Predictor.read`."""
        return self._family.features(examples, self._model.tokenizer, self._model.limits)

    def lines(self, number: int, examples: Sequence[Any], features: Features, form: GatheredForm) -> bytes:
        """Returns a part of a file, see `GatheredForm`.

        Args:
          number: of the part.
          examples: with labels.
          features: of these.
          form: of the file.
        """
        predictions = self._family.predictions(self._computer.outputs(features), features, examples)
        return form.encode(Gathered(number, [_without_texts(example) for example in examples], predictions))

    def close(self) -> None:
        """Frees session and memory."""
        self._computer.close()


def parts_of(file: BinaryIO) -> Iterator[Gathered]:
    """Yields the parts of a file that `GatheredForm` wrote."""
    while head := file.read(_SIZE.size):
        yield pickle.loads(file.read(*_SIZE.unpack(head)))  # noqa: S301  (the job itself wrote it)


def evaluation(parts: Iterable[Gathered], family: Family) -> Evaluation | None:
    """Returns what a model reaches on the examples of all parts, in the order of these; None where there are none.

    Args:
      parts: in any order.
      family: what the model has learned.
    """
    ordered = sorted(parts, key=lambda part: part.number)
    examples = [example for part in ordered for example in part.examples]
    if not examples:
        return None
    return family.evaluation(joined([part.predictions for part in ordered]), examples)


def _without_texts(example: Any) -> Any:
    return dataclasses.replace(example, text_a="", text_b=None) if isinstance(example, SentenceExample) else example
