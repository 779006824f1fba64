"""Writes a trained model in MLflow's layout, which `bert_tf.library.mlflow_model` loads."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import tensorflow as tf

from bert_tf import versions
from bert_tf.batch import model_copy
from bert_tf.batch.job import ModelOverrides
from bert_tf.batch.trained import Trained
from bert_tf.errors import FlagError
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.library import mlflow_model
from bert_tf.library.mlflow_model import LABEL, PAIR, PROBABILITY, TEXT
from bert_tf.tasks.sentence.rows import recorded_texts
from bert_tf.training import sources


def find(run: str | os.PathLike[str]) -> Trained:
    """Finds the model of a run; FlagError if its rows or predictions do not fit a table."""
    model = sources.find(run, ModelOverrides(), environment=os.environ)
    if model.task.family.kind not in (CLASSIFICATION, REGRESSION) or not recorded_texts(model.record):
        raise FlagError(f"--register: {model.prefix} is not a text classification or regression model")
    return model


def save(model: Trained, output: Path) -> None:
    """Writes a folder in MLflow's layout, with a copy of the model."""
    import mlflow
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    texts = TEXT if recorded_texts(model.record) == 1 else PAIR
    probabilities = [PROBABILITY + label for label in model.task.family.labels]
    label = ColSpec(DataType.string if probabilities else DataType.double, LABEL)
    outputs = [label, *(ColSpec(DataType.double, name) for name in probabilities)]
    signature = ModelSignature(Schema([ColSpec(DataType.string, name) for name in texts]), Schema(outputs))
    with tempfile.TemporaryDirectory() as temporary:
        data = Path(temporary) / "run"
        data.mkdir()
        model_copy.write(model, data)
        needed = [f"bert_tf=={versions.__version__}", f"tensorflow=={tf.__version__}"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it recommends an input example
            mlflow.pyfunc.save_model(
                str(output),
                loader_module=mlflow_model.__name__,
                data_path=str(data),
                signature=signature,
                pip_requirements=needed,
            )
