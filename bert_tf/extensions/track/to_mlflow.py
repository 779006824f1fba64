"""MLflow: a tracking server, a database or a folder, by MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bert_tf import versions
from bert_tf.errors import FlagError
from bert_tf.extensions.track import MLFLOW
from bert_tf.extensions.track.trackers import RUNNING, Known, Marks, Point, Tracker
from bert_tf.head_spec import CLASSIFICATION, REGRESSION
from bert_tf.io import scratch

if TYPE_CHECKING:
    from bert_tf.batch.trained import Trained

TAG = "bert_tf.run"
_LONGEST_PARAMETER, _LONGEST_TAG = 500, 5000  # characters that servers of every version take


class MLflow(Tracker):
    name = MLFLOW

    def __init__(self, client: Any) -> None:
        """`client` is an `MlflowClient`."""
        self.client, self.run = client, ""

    def open(self, run: str, remote: str, title: str, group: str) -> str:  # noqa: ARG002
        """Finds the run by its tag, among those of the experiment that are not deleted."""
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", "bert_tf")
        known = self.client.get_experiment_by_name(name)
        experiment = self.client.create_experiment(name) if known is None else known.experiment_id
        runs = self.client.search_runs([experiment], f"tags.`{TAG}` = '{run}'", max_results=1)
        made = runs[0] if runs else self.client.create_run(experiment, tags={TAG: run}, run_name=title)
        self.run = str(made.info.run_id)
        return self.run

    def marks(self) -> Known:
        last = {}
        for name in self.client.get_run(self.run).data.metrics:
            history = self.client.get_metric_history(self.run, name)
            point = max(history, key=lambda value: (value.step, value.timestamp))
            last[name] = Point(name, point.step, point.value)
        return last

    def describe(self, parameters: Mapping[str, str], tags: Mapping[str, str]) -> None:
        from mlflow.entities import Param, RunTag

        known = self.client.get_run(self.run).data.params  # MLflow refuses to change them
        new = [Param(name, text[:_LONGEST_PARAMETER]) for name, text in parameters.items() if name not in known]
        tagged = [RunTag(name, text[:_LONGEST_TAG]) for name, text in tags.items()]
        self.client.log_batch(self.run, params=new, tags=tagged)

    def add(self, points: Sequence[Point], marks: Marks) -> None:  # noqa: ARG002
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.client.log_batch(self.run, metrics=[Metric(point.name, point.value, now, point.step) for point in points])

    def upload(self, path: Path) -> None:
        self.client.log_artifact(self.run, os.fspath(path))

    def end(self, status: str) -> None:
        if status == RUNNING:
            self.client.update_run(self.run, status=status)
        else:
            self.client.set_terminated(self.run, status)

    def register(self, model: Trained, name: str) -> str:
        """Uploads a model in MLflow's layout and registers it, each checkpoint of the run once; returns its version."""
        for known in self.client.search_model_versions(f"name = '{name}'"):
            if known.tags.get(TAG) == model.digest and known.run_id == self.run:
                return str(known.version)
        place = f"models/{str(model.digest)[:12]}"
        with scratch.folder() as temporary:
            self.client.log_artifacts(self.run, _saved(model, Path(temporary)), place)
        if not self.client.search_registered_models(f"name = '{name}'"):
            self.client.create_registered_model(name)
        source = f"{self.client.get_run(self.run).info.artifact_uri}/{place}"
        return str(self.client.create_model_version(name, source, self.run, tags={TAG: model.digest}).version)


def find_model(run: Path) -> Trained:
    """Finds the model of a run; FlagError if its rows or predictions do not fit a table."""
    from bert_tf.batch.job import ModelOverrides  # imports TensorFlow, like the next
    from bert_tf.tasks.sentence.rows import recorded_texts
    from bert_tf.training import sources

    model = sources.find(run, ModelOverrides(), environment=os.environ)
    if model.task.family.kind not in (CLASSIFICATION, REGRESSION) or not recorded_texts(model.record):
        raise FlagError(f"--register: {model.prefix} is not a text classification or regression model")
    return model


def _saved(model: Trained, folder: Path) -> str:
    """Writes a copy of a model in MLflow's layout, which `library.mlflow_model` loads, into a folder; returns its path."""
    import mlflow
    import tensorflow as tf
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, DataType, Schema

    from bert_tf.batch import model_copy
    from bert_tf.library import mlflow_model
    from bert_tf.tasks.sentence.rows import recorded_texts

    texts = mlflow_model.TEXT if recorded_texts(model.record) == 1 else mlflow_model.PAIR
    probabilities = [mlflow_model.PROBABILITY + label for label in model.task.family.labels]
    label = ColSpec(DataType.string if probabilities else DataType.double, mlflow_model.LABEL)
    outputs = [label, *(ColSpec(DataType.double, name) for name in probabilities)]
    data, output = folder / "run", os.fspath(folder / "model")
    data.mkdir()
    model_copy.write(model, data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it recommends an input example
        mlflow.pyfunc.save_model(
            output,
            loader_module=mlflow_model.__name__,
            data_path=os.fspath(data),
            signature=ModelSignature(Schema([ColSpec(DataType.string, name) for name in texts]), Schema(outputs)),
            pip_requirements=[f"bert_tf=={versions.__version__}", f"tensorflow=={tf.__version__}"],
        )
    return output


def connect(folder: Path) -> MLflow:  # noqa: ARG001
    # Requests fail within seconds, unless the user sets more: they are repeated later.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    from mlflow import MlflowClient

    return MLflow(MlflowClient())
