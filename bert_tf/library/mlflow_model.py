"""Loads a trained model in MLflow's layout: `mlflow.pyfunc.load_model` predicts what `bert_tf.load` does."""

from __future__ import annotations

from typing import Any

from bert_tf.library.loading import load

TEXT, PAIR = ("text",), ("text_a", "text_b")  # columns of the rows
LABEL, PROBABILITY = "label", "probability_"


class _Loaded:
    def __init__(self, path: str) -> None:
        self._model = load(path)

    def predict(self, data: Any, params: Any = None) -> Any:  # noqa: ARG002
        """Returns a data frame: label, and the probability of each label."""
        import pandas

        rows = list(data[TEXT[0]]) if TEXT[0] in data.columns else list(zip(*(data[name] for name in PAIR)))
        results = self._model.predict(rows)
        columns = {
            PROBABILITY + label: [prediction.probabilities[label] for prediction in results] for label in self._model.labels
        }
        return pandas.DataFrame({LABEL: [prediction.label for prediction in results], **columns}, index=data.index)


def _load_pyfunc(path: str) -> _Loaded:
    """Called by MLflow."""
    return _Loaded(path)
