"""Several models in one worker process."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.extensions.serve.call import PREDICT, Failed, Part, as_json
from bert_tf.extensions.serve.settings import ServeConfig, together
from bert_tf.extensions.serve.worker import Description, Served
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family, Outputs

if TYPE_CHECKING:
    from bert_tf.batch.engine import SeveralModels


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
        answers = {
            number: iter(_listed(model.family, outputs[number], features[number], examples[number]))
            for number, model in models.items()
        }
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


def _listed(family: Family, outputs: Outputs, features: Features, examples: Sequence[Any]) -> Sequence[Any]:
    return family.listed(family.predictions(outputs, features, examples), examples)
