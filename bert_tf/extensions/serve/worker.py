"""Worker process: holds a model, or several, and answers batches until its connection closes."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bert_tf import extension
from bert_tf.batch import model_names
from bert_tf.checkpoints import prefixes
from bert_tf.errors import BertError, FlagError
from bert_tf.extensions.serve import forms
from bert_tf.extensions.serve.call import PREDICT, Failed, Part, as_json, every
from bert_tf.extensions.serve.settings import ServeConfig, together
from bert_tf.head_spec import PRETRAINING
from bert_tf.io import log_form
from bert_tf.library.reading import Reader
from bert_tf.tasks.sentence.rows import USUAL

if TYPE_CHECKING:
    from bert_tf.batch.engine import SeveralModels
    from bert_tf.library.model import Model


@dataclasses.dataclass(frozen=True)
class Description:
    """A model as seen by a process without TensorFlow."""

    name: str  # folder of the run, by which requests name it
    checkpoint: str  # its prefix
    digest: str  # identifies the weights
    kind: str  # of the family
    labels: tuple[str, ...]  # classes or tags; may be empty
    reader: Reader
    calls: tuple[str, ...]  # supported calls
    weight_bytes: int
    example: Mapping[str, Any] | None = None  # a row of the data of the run
    trunk: str = ""  # of several models: those with an equal one compute at least the first layer once

    @property
    def form(self) -> forms.Form | None:
        """None if only the family knows the row format."""
        family = self.reader.family
        form = forms.of(self.kind, getattr(family, "texts", None), getattr(family, "columns", USUAL).named)
        return form if form is None or self.example is None else dataclasses.replace(form, example=self.example)

    @property
    def step(self) -> str:
        return Path(self.checkpoint).name


def run(connection: Connection, config: ServeConfig, verbosity: int) -> None:
    """Entry point of a worker process: computes until the connection is closed.

    The listening process decides when a worker ends, so signals to the process group such as Ctrl-C are ignored.
    If that process dies, the connection closes too.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # TensorFlow reads it when it sets up a device: several workers share one GPU, at least during a reload.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    log_form.set_up(log_form.SHORT, verbosity)
    converse(connection, lambda: served(config))


def served(config: ServeConfig) -> Served | ServedTogether:
    return Served(config) if len(config.runs) == 1 else ServedTogether(config)


def converse(connection: Connection, make: Callable[[], Served | ServedTogether]) -> None:
    """Sends the descriptions and the bytes in use. Receives lists of `Part`; sends None when one comes, then its answers.

    The answers are a list, or `Failed`. A process that ends before None has not begun.
    """
    with contextlib.ExitStack() as opened, contextlib.suppress(EOFError, OSError):  # the listener is gone
        opened.enter_context(contextlib.closing(connection))
        try:
            made = opened.enter_context(contextlib.closing(make()))
            connection.send(made.descriptions)
            made.load()
            connection.send(psutil.Process().memory_info().rss)
        except Exception as error:
            connection.send(_failed(error))
            return
        while True:
            connection.poll(None)
            connection.send(None)
            batch = connection.recv()
            try:
                answers: Any = made.answers(batch)
            except Exception as error:
                answers = _failed(error)
            connection.send(answers)


def _failed(error: Exception) -> Failed:
    line = " ".join(str(error).split())
    if isinstance(error, BertError):
        return Failed(line)
    return Failed(f"{type(error).__name__}: {line}", traceback.format_exc())


class Served:
    """A model that answers questions."""

    def __init__(self, config: ServeConfig) -> None:
        """Finds the model without reading its weights; raises BertError if there is none."""
        from bert_tf.library.loading import load

        self._config, (run,) = config, config.runs
        self.model = load(run, task=config.task_name, **config.loading)
        reader = self.model.reader
        kind = reader.family.kind
        has_checkpoint = self.model.trained.has_checkpoint
        possible = [one for one in every().values() if has_checkpoint or not one.needs_checkpoint]
        self._calls = [one for one in possible if one.is_offered(kind, config)]
        if kind == PRETRAINING and len(self._calls) == 1:
            masked = extension.advice("fill-mask", " for masked words use python -m bert_tf fill-mask;")
            vectors = extension.advice("encode", ", or text vectors with --encode")
            raise FlagError(f"{run}: pre-training models are not served;{masked} serve a fine-tuned model instead{vectors}")
        more = 0 if _shares_weights(self.model) else sum(one.loads_weights for one in self._calls)
        self.description: Description = Description(
            name=model_names.name_of(self.model.checkpoint if prefixes.may_name_several(run) else run),
            checkpoint=os.path.abspath(self.model.checkpoint),
            digest=self.model.digest,
            kind=kind,
            labels=self.model.labels,
            reader=reader,
            calls=tuple(one.name for one in self._calls),
            weight_bytes=self.model.weight_bytes * (1 + more),
            example=_example(self.model),
        )

    @property
    def descriptions(self) -> tuple[Description, ...]:
        return (self.description,)

    def load(self) -> None:
        """Reads the weights and computes once, so that the first request does not pay for that; raises BertError."""
        self.model.load_weights()
        if self.description.form is not None:
            self.model.predict([self.description.form.example])
        self.load_calls()

    def load_calls(self) -> None:
        """As `load`, for what calls other than predictions need."""
        for call in self._calls:
            call.load(self.model, self._config)

    def close(self) -> None:
        self.model.close()

    def answers(self, batch: Sequence[Part]) -> list[list[bytes] | Failed]:
        """JSON of each example, for each part; raises BertError if memory runs out or an output is not finite."""
        answers: list[list[bytes] | Failed] = [[] for _ in batch]
        for call in self._calls:
            places = [place for place, one in enumerate(batch) if one.call == call.name]
            parts = [batch[place] for place in places]
            for place, answer in zip(places, call.answers(self.model, parts, self._config) if parts else ()):
                answers[place] = answer
        return answers


def _shares_weights(model: Model) -> bool:
    """Whether vectors are computed with the weights in memory that predictions use."""
    if not model.trained.has_checkpoint:
        return True
    from bert_tf.batch.tensorflow_engine import TensorFlowEngine

    return model.inference.make is TensorFlowEngine


def _example(model: Model) -> Mapping[str, Any] | None:
    """A row of the model's data; None if there is none that it reads."""
    from bert_tf.batch import sample_row  # imports TensorFlow, which the listening process does without

    row = sample_row.sample_row(model.trained)
    with contextlib.suppress(BertError):
        return row if row and model.reader.examples([row]) else None
    return None


class ServedTogether:
    """Several models, whose predictions are computed at once; other calls have one model each."""

    def __init__(self, config: ServeConfig) -> None:
        """As `Served`."""
        self._opened = contextlib.ExitStack()
        each = (Served(dataclasses.replace(config, runs=(run,))) for run in config.runs)
        self._served = [self._opened.enter_context(contextlib.closing(one)) for one in each]
        self.descriptions: tuple[Description, ...] = tuple(map(_description, self._served))

    @functools.cached_property
    def _engine(self) -> SeveralModels:
        models = [one.model for one in self._served]
        make = extension.load(together().computes_several)
        engine: SeveralModels = make([model.trained for model in models], models[0].inference)
        return self._opened.enter_context(contextlib.closing(engine))

    def load(self) -> None:
        """As `Served.load`."""
        for number, one in enumerate(self._served):
            form = one.description.form
            examples = [] if form is None else [one.model.reader.examples([form.example])]
            self._predictions([Part(PREDICT, example, 0, models=(number,)) for example in examples])
            one.load_calls()

    def close(self) -> None:
        self._opened.close()

    def answers(self, batch: Sequence[Part]) -> list[list[bytes] | Failed]:
        """As `Served.answers`; answers of a part are of one model after the other."""
        answers: list[list[bytes] | Failed] = [[] for _ in batch]
        predicted = [place for place, part in enumerate(batch) if part.call == PREDICT]
        for place, predictions in zip(predicted, self._predictions([batch[place] for place in predicted])):
            answers[place] = predictions
        for number, one in enumerate(self._served):
            others = [place for place, part in enumerate(batch) if part.call != PREDICT and part.models == (number,)]
            for place, answer in zip(others, one.answers([batch[place] for place in others])):
                answers[place] = answer
        return answers

    def _predictions(self, parts: Sequence[Part]) -> list[list[bytes]]:
        examples: dict[int, list[Any]] = {}
        for part in parts:
            for number, of_model in part.of_models(part.examples):
                examples.setdefault(number, []).extend(of_model)
        models = {number: self._served[number].model for number in examples}
        features = {number: models[number].reader.features(of_model) for number, of_model in examples.items()}
        engine = self._engine  # loads the weights, if only for `load`
        outputs = engine.outputs(features) if features else {}
        answers = {}
        for number, model in models.items():
            predictions = model.family.predictions(outputs[number], features[number], examples[number])
            answers[number] = iter(model.family.listed(predictions, examples[number]))
        return [
            [as_json(next(answers[number])) for number, of_model in part.of_models(part.examples) for _ in of_model]
            for part in parts
        ]


def _description(served: Served) -> Description:
    """With what the model shares, and the weights that calls other than predictions hold once more."""
    model, own = served.model, served.description
    copies = 2 if set(own.calls) != {PREDICT} and model.trained.has_checkpoint else 1
    trunk = extension.load(together().computes_several).trunk(model.trained)
    return dataclasses.replace(own, trunk=trunk, weight_bytes=model.weight_bytes * copies)
