"""Engines as settings: which one computes, and what the log says of it."""

from __future__ import annotations

import numpy as np
import pytest

import bert_tf
from bert_tf.batch.computer import Computer
from bert_tf.engines.base import ConvertedEngine
from bert_tf.errors import FlagError
from bert_tf.jobs import batch_machine, machine_settings
from tests.batch.runs import write_run
from tests.tiny import write_project

PAIRS = [("the old rain", "new bread"), ("a red wind .", "storm over the salt"), ("soup", "pear")]


def inference(home, **settings):
    return batch_machine.inference(machine_settings.configured(**settings), None, environment={"BERT_TF_HOME": str(home)})


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engines")
    return write_run(folder / "run", write_project(folder / "project"), (20,))


def test_tensorflow_computes_by_default(tmp_path):
    found = inference(tmp_path)
    assert isinstance(found.engine(), Computer)
    assert found.precision == "float32"


@pytest.mark.parametrize(("name", "precision"), [("onnxruntime", "int8"), ("openvino", "bfloat16")])
def test_another_engine_is_part_of_what_decides_on_rows(tmp_path, name, precision):
    found = inference(tmp_path, engine=name, precision=precision)
    assert isinstance(found.engine(), ConvertedEngine)
    assert found.precision == f"{name} {precision}"


def test_the_log_says_what_auto_takes_and_why(tmp_path, caplog):
    caplog.set_level("INFO")
    inference(tmp_path, engine="auto")
    (line,) = (message for message in caplog.messages if message.startswith("--engine=auto"))
    assert line.startswith("--engine=auto: openvino: is installed; for matrix products this CPU has ")


def test_tensorflow_has_no_int8(tmp_path):
    with pytest.raises(FlagError, match="--precision=int8: --engine=tensorflow computes in default, float32"):
        inference(tmp_path, precision="int8")


def test_a_slow_precision_is_warned_of(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("bert_tf.runtime.precision.cpu_computes", lambda name: name == "float32")
    inference(tmp_path, engine="openvino", precision="bfloat16")
    assert "--precision=bfloat16: this CPU has no instructions for it; float32 may be faster" in caplog.text


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_program_gets_the_same_rows_and_vectors(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    with bert_tf.load(run) as one, bert_tf.load(run, engine=name) as other:
        expected, found = ([row.probabilities["1"] for row in model.predict(PAIRS)] for model in (one, other))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(other.encode(["soup and salt"]), one.encode(["soup and salt"]), atol=1e-5)
