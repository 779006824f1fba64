"""Several models in one worker process."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bert_tf import extension
from bert_tf.extensions.serve import values
from bert_tf.extensions.serve.call import PREDICT, Failed, Part
from bert_tf.extensions.serve.settings import ServeConfig, computes_several
from bert_tf.extensions.serve.worker import Description, Served
from bert_tf.features.columns import Features
from bert_tf.tasks.base import Family, Outputs

if TYPE_CHECKING:
    from bert_tf.batch.engine import SeveralModels


class ServedTogether:
    """Several models, whose predictions are computed at once; other calls have one model each."""

    def __init__(self, config: ServeConfig) -> None:
        """As `Served`."""
        self._served = [Served(dataclasses.replace(config, runs=(run,))) for run in config.runs]

    @property
    def descriptions(self) -> tuple[Description, ...]:
        return tuple(one.description for one in self._served)

    def load(self) -> None:
        models = [one.model for one in self._served]
        make = extension.load(computes_several())
        self._engine: SeveralModels = make([model.trained for model in models], models[0].inference)
        for number, one in enumerate(self._served):
            if one.description.form is not None:
                examples = one.model.reader.examples([one.description.form.example])
                self._predictions([Part(PREDICT, examples, 0, models=(number,))])
            one.load_calls()

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
        outputs = self._engine.outputs(features) if features else {}
        answers = {
            number: iter(_listed(model.family, outputs[number], features[number], examples[number]))
            for number, model in models.items()
        }
        return [
            [values.as_json(next(answers[number])) for number, of_model in part.of_models(part.examples) for _ in of_model]
            for part in parts
        ]


def _listed(family: Family, outputs: Outputs, features: Features, examples: Sequence[Any]) -> Sequence[Any]:
    return family.listed(family.predictions(outputs, features, examples), examples)
