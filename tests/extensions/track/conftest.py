import json
import sys
from pathlib import Path

import pytest

from tests.extensions.report import example

PACKAGES = Path(__file__).parent / "packages"
RESULTS = {"global_step": 20, "splits": {"dev": {"accuracy": 0.8, "loss": 0.7, "collapsed": "no", "confusion": [[1]]}}}


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A double of MLflow with a server; returns what it holds."""

    def imported():
        return [name for name in sys.modules if name.partition(".")[0] == "mlflow"]

    store = tmp_path / "server" / "store.json"
    store.parent.mkdir()
    for name in imported():
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(PACKAGES)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", str(store))
    monkeypatch.setenv("PYTHONPATH", str(PACKAGES))
    yield lambda: json.loads(store.read_text())
    for name in imported():
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path):
    """A run that has trained 20 steps."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run_config.json").write_text(json.dumps({**example.record(), "schedule": {"steps": 20}}))
    example.write_lines(folder / "metrics.jsonl", example.METRICS)
    example.write_lines(folder / "evaluations.jsonl", example.EVALUATIONS)
    (folder / "vocab.txt").write_text("[PAD]\n")
    return folder


def write_results(folder):
    (folder / "eval_results.json").write_text(json.dumps(RESULTS))
