"""Kinds of questions that the service answers: /predict, and those of extensions; and answers as JSON."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from bert_tf import extension
from bert_tf.errors import BertError
from bert_tf.extensions.serve.settings import ServeConfig
from bert_tf.io import documents
from bert_tf.library.reading import Reader
from bert_tf.tasks.predictions import names_of

if TYPE_CHECKING:
    from bert_tf.extensions.serve.forms import Form, Schema
    from bert_tf.library.model import Model

T = TypeVar("T")

PREDICT = "predict"
ROWS = "rows"  # key of bodies


@dataclasses.dataclass(frozen=True)
class Part:
    """The unit of a request that is computed without a pause."""

    call: str  # name of a `Call`
    examples: Sequence[Any]
    tokens: int  # total of all examples
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    models: tuple[int, ...] = (0,)  # by number; `examples` has the rows of one after those of the other

    def of_models(self, of_examples: Sequence[T]) -> Iterator[tuple[int, Sequence[T]]]:
        """Each model with its share of what there is for each example."""
        rows = len(of_examples) // len(self.models)
        return ((model, of_examples[place * rows : (place + 1) * rows]) for place, model in enumerate(self.models))


class Failed(NamedTuple):
    """Worker message: loading or a batch failed, or, within a list of answers, that a part cannot be answered."""

    problem: str  # one line
    trace: str = ""  # for the log; empty for an error that the user can fix


class Option(NamedTuple):
    """A key of a body beside the rows."""

    types: tuple[type, ...]  # of its value
    schema: Schema


class Call:
    """POST /NAME, see `bert_tf.extension`. The listening process, which has no TensorFlow, reads it; a worker answers."""

    name: ClassVar[str]
    says: ClassVar[str] = ""  # what it does, one sentence; if empty, as the form
    answer: ClassVar[str]  # name of the schema of the answer for a row
    key: ClassVar[str] = ""  # of the answers in a response; if empty, a request has one row, and its answer is the response
    options: ClassVar[Mapping[str, Option]] = {}
    remedy: ClassVar[str] = ""  # added to the message that a model does not offer it
    loads_weights: ClassVar[bool] = False  # once more, with an engine that converts checkpoints
    needs_checkpoint: ClassVar[bool] = False  # exported models do not offer it

    def is_offered(self, kind: str, config: ServeConfig) -> bool:
        """Whether a model of a kind answers it; called in a worker."""
        raise NotImplementedError

    def reader(self, reader: Reader) -> Reader:
        """What reads the rows, by default as those of predictions."""
        return reader

    def computed(self, tokens: int, options: Mapping[str, Any]) -> int:
        """How many tokens are computed at most for a row of `tokens`."""
        del options
        return tokens

    def row(self, form: Form) -> Schema:
        return form.row

    def example(self, form: Form) -> Mapping[str, Any]:
        """A body."""
        return form.example

    def schema(self, form: Form) -> Schema:
        """Schema of the answer for a row."""
        raise NotImplementedError

    def load(self, model: Model, config: ServeConfig) -> None:
        """Called before the first request, so that it does not pay for loading; nothing by default."""

    def answers(self, model: Model, parts: Sequence[Part], config: ServeConfig) -> Sequence[list[bytes] | Failed]:
        """JSON of each example, for each part."""
        raise NotImplementedError


class _Predict(Call):
    name, answer, key = PREDICT, "Prediction", "predictions"

    def is_offered(self, kind: str, config: ServeConfig) -> bool:
        del kind, config
        return True

    def schema(self, form: Form) -> Schema:
        return form.prediction

    def answers(self, model: Model, parts: Sequence[Part], config: ServeConfig) -> list[list[bytes]]:
        del config
        predictions = iter(model.answer([example for one in parts for example in one.examples]))
        return [[as_json(next(predictions)) for _ in one.examples] for one in parts]


@functools.cache
def every() -> Mapping[str, Call]:
    """Calls by name, predictions first."""
    calls: dict[str, Call] = {PREDICT: _Predict()}
    for name, one in extension.installed().items():
        if one.call:
            call = extension.load(one.call)()
            if call.name in calls:
                raise BertError(f"extension {name}: there is a call {call.name} already; correct or uninstall its package")
            calls[call.name] = call
    return calls


def as_json(prediction: Any) -> bytes:
    """A prediction with the names that `Model.predict` uses."""
    value = plain(prediction)
    if callable(getattr(prediction, "details", None)):
        value.update(prediction.details())
    return documents.to_json(value).encode()


def plain(value: Any) -> Any:
    """Converts a value to JSON types; an object becomes its fields and properties by name."""
    if dataclasses.is_dataclass(value):
        return {name: plain(getattr(value, name)) for name in names_of(type(value))}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value.item() if isinstance(value, np.generic) else value
