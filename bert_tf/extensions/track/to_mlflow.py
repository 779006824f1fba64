"""MLflow: a tracking server, a database or a folder, by MLFLOW_TRACKING_URI and MLFLOW_EXPERIMENT_NAME."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bert_tf.extensions.track import MLFLOW
from bert_tf.extensions.track.trackers import RUNNING, Known, Marks, Point

TAG = "bert_tf.run"
_MOST_POINTS, _MOST_PARAMETERS = 1000, 100  # of a request
_LONGEST_PARAMETER, _LONGEST_TAG = 500, 5000  # characters that servers of every version take


class MLflow:
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
        for start in range(0, len(new), _MOST_PARAMETERS):
            self.client.log_batch(self.run, params=new[start : start + _MOST_PARAMETERS])
        self.client.log_batch(self.run, tags=[RunTag(name, text[:_LONGEST_TAG]) for name, text in tags.items()])

    def add(self, points: Sequence[Point], marks: Marks) -> None:  # noqa: ARG002
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        new = [Metric(point.name, point.value, now, point.step) for point in points]
        for start in range(0, len(new), _MOST_POINTS):
            self.client.log_batch(self.run, metrics=new[start : start + _MOST_POINTS])

    def upload(self, path: Path) -> None:
        self.client.log_artifact(self.run, os.fspath(path))

    def end(self, status: str) -> None:
        if status == RUNNING:
            self.client.update_run(self.run, status=status)
        else:
            self.client.set_terminated(self.run, status)

    def close(self) -> None:
        """Each request is complete."""

    def registered(self, name: str, digest: str) -> str:
        """Returns the version of a registered checkpoint of this run; empty if there is none."""
        versions = self.client.search_model_versions(f"name = '{name}'")
        return next(
            (str(version.version) for version in versions if version.tags.get(TAG) == digest and version.run_id == self.run), ""
        )

    def register(self, folder: Path, name: str, digest: str) -> str:
        """Uploads a model in MLflow's layout and registers it; returns its version."""
        self.client.log_artifacts(self.run, os.fspath(folder), f"models/{digest[:12]}")
        if not self.client.search_registered_models(f"name = '{name}'"):
            self.client.create_registered_model(name)
        source = f"{self.client.get_run(self.run).info.artifact_uri}/models/{digest[:12]}"
        return str(self.client.create_model_version(name, source, self.run, tags={TAG: digest}).version)


def connect(folder: Path) -> MLflow:  # noqa: ARG001
    # Requests fail within seconds, unless the user sets more: they are repeated later.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "30")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    from mlflow import MlflowClient

    return MLflow(MlflowClient())
