"""Exports beside the package, in one table."""

from __future__ import annotations

import numpy as np
import pytest

from bert_tf.export.opening import OPENERS
from bert_tf.operations.export import compare
from tests import pretrained
from tests.export.runs import CASES, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return str(write_run(tmp_path_factory.mktemp("compared") / "run", CASES["pairs"].record))


def test_a_saved_model_computes_what_the_package_does(run):
    (row,) = compare([run], ["saved_model"])
    assert (row.format, row.kind, row.metric, row.change) == ("saved_model", "classification", "accuracy", 0.0)
    assert row.difference < 1e-4
    assert row.size_mb > 0.1
    assert row.load_s > 0


def test_another_model_is_seen(run, monkeypatch):
    opened = OPENERS["saved_model"]

    def turned(folder):
        compute = opened(folder)
        return lambda batch: {name: -np.asarray(values) for name, values in compute(batch).items()}

    monkeypatch.setitem(OPENERS, "saved_model", turned)
    (row,) = compare([run], ["saved_model"])
    assert row.difference > 0.1
    assert row.change != 0


@pytest.mark.parametrize("write", [lambda folder: write_run(folder, {**CASES["contrastive"].record}), pretrained.write_run])
def test_runs_whose_examples_are_elsewhere_are_written_and_opened_alone(tmp_path, write):
    run = write(tmp_path / "run")
    (row,) = compare([str(run)], ["saved_model"])
    assert (row.difference, row.change) == (None, None)
    assert row.size_mb > 0.1
