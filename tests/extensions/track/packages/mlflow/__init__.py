"""A double of MLflow: its server is the JSON file that MLFLOW_TRACKING_URI names; without the file's folder there is none."""

import contextlib
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

from mlflow import entities, models, types

__all__ = ["MlflowClient", "entities", "models", "pyfunc", "types"]


class MlflowClient:
    @contextlib.contextmanager
    def _store(self):
        path = Path(os.environ["MLFLOW_TRACKING_URI"])
        if not path.parent.is_dir():
            raise ConnectionError("no server\nat this address")
        empty = {"runs": {}, "versions": [], "requests": 0, "fails_at": None}
        store = json.loads(path.read_text()) if path.exists() else empty
        store["requests"] += 1
        yield store
        path.write_text(json.dumps(store))
        if store["requests"] == store["fails_at"]:  # it was received all the same
            raise ConnectionError("reset by peer")

    def get_experiment_by_name(self, name):
        return SimpleNamespace(experiment_id=f"number of {name}")

    def create_run(self, experiment_id, tags, run_name):
        with self._store() as store:
            remote = f"remote-{len(store['runs'])}"
            run = {"experiment": experiment_id, "name": run_name, "tags": tags, "params": {}, "metrics": [], "files": []}
            store["runs"][remote] = {**run, "status": "RUNNING"}
        return self.get_run(remote)

    def get_run(self, run_id):
        with self._store() as store:
            run = store["runs"][run_id]
        data = SimpleNamespace(metrics={name: value for name, _, value in run["metrics"]}, params=run["params"])
        info = SimpleNamespace(run_id=run_id, artifact_uri=f"store/{run_id}")
        return SimpleNamespace(info=info, data=data)

    def search_runs(self, experiment_ids, filter_string, max_results):
        with self._store() as store:
            matching = [
                remote
                for remote, run in store["runs"].items()
                if f"'{run['tags']['bert_tf.run']}'" in filter_string and run["experiment"] in experiment_ids
            ]
        return [self.get_run(remote) for remote in matching[:max_results]]

    def get_metric_history(self, run_id, key):
        with self._store() as store:
            points = store["runs"][run_id]["metrics"]
        return [SimpleNamespace(step=step, value=value, timestamp=0) for name, step, value in points if name == key]

    def log_batch(self, run_id, metrics=(), params=(), tags=()):
        with self._store() as store:
            run = store["runs"][run_id]
            run["metrics"] += [[one.key, one.step, one.value] for one in metrics]
            run["params"].update({one.key: one.value for one in params})
            run["tags"].update({one.key: one.value for one in tags})

    def log_artifact(self, run_id, path):
        with self._store() as store:
            store["runs"][run_id]["files"].append(Path(path).name)

    def log_artifacts(self, run_id, folder, place):
        shutil.copytree(folder, Path(os.environ["MLFLOW_TRACKING_URI"]).parent / run_id / place)

    def set_terminated(self, run_id, status):
        with self._store() as store:
            store["runs"][run_id]["status"] = status

    update_run = set_terminated

    def search_model_versions(self, filter_string):
        with self._store() as store:
            return [SimpleNamespace(**one) for one in store["versions"] if f"'{one['name']}'" in filter_string]

    def search_registered_models(self, filter_string):
        return self.search_model_versions(filter_string)

    def create_registered_model(self, name):
        pass

    def create_model_version(self, name, source, run_id, tags):
        with self._store() as store:
            number = str(len(store["versions"]) + 1)
            version = {"name": name, "source": source, "run_id": run_id, "tags": tags, "version": number}
            store["versions"].append(version)
        return SimpleNamespace(**version)


def _save_model(path, loader_module, data_path, signature, pip_requirements):
    shutil.copytree(data_path, Path(path) / "data")
    (Path(path) / "MLmodel").write_text(json.dumps([loader_module, signature, pip_requirements]))


pyfunc = SimpleNamespace(save_model=_save_model)
