"""Engines as settings: which one computes, and what the log says of it."""

import numpy as np
import pytest

import bert_tf
from bert_tf.batch.tensorflow_engine import TensorFlowEngine
from bert_tf.errors import FlagError
from bert_tf.extensions.engines.converted_engine import ConvertedEngine
from bert_tf.settings import read_settings
from bert_tf.training import batch_machine
from bert_tf.training.settings import MachineSettings

PAIRS = [("the old rain", "new bread"), ("a red wind .", "storm over the salt"), ("soup", "pear")]


def inference(home, **settings):
    return batch_machine.inference(read_settings(MachineSettings, settings), None, [], environment={"BERT_TF_HOME": str(home)})


@pytest.mark.parametrize(
    ("settings", "kind", "precision", "said"),
    [
        ({}, TensorFlowEngine, "float32", ""),
        ({"engine": "onnxruntime", "precision": "int8"}, ConvertedEngine, "onnxruntime int8", ""),
        ({"engine": "openvino", "precision": "bfloat16"}, ConvertedEngine, "openvino bfloat16",
         "--precision=bfloat16: this CPU has no instructions for it; float32 may be faster"),
        ({"engine": "auto"}, ConvertedEngine, "openvino float32",
         "--engine=auto: openvino: is installed; for matrix products this CPU has "),
    ],
)  # fmt: skip
def test_the_engine_is_part_of_what_decides_on_rows(tmp_path, caplog, monkeypatch, settings, kind, precision, said):
    monkeypatch.setattr("bert_tf.runtime.precision.cpu_computes", lambda name: name in ("float32", "int8"))
    found = inference(tmp_path, **settings)
    assert isinstance(found.engine(), kind)
    assert found.precision == precision
    assert not said or any(line.startswith(said) for line in caplog.messages)
    with pytest.raises(FlagError, match="--precision=int8: --engine=tensorflow computes in default, float32"):
        inference(tmp_path, precision="int8")


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_program_gets_the_same_rows_and_vectors(run, tmp_path, monkeypatch, name):
    monkeypatch.setenv("BERT_TF_HOME", str(tmp_path))
    with bert_tf.load(run) as one, bert_tf.load(run, engine=name) as other:
        expected, found = ([row.probabilities["1"] for row in model.predict(PAIRS)] for model in (one, other))
        np.testing.assert_allclose(found, expected, atol=1e-5)
        np.testing.assert_allclose(other.encode(["soup and salt"]), one.encode(["soup and salt"]), atol=1e-5)
